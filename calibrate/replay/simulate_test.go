package replay

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvfleet/sim"
	"kvfleet/traces"
	"kvfleet/traces/workload"
)

// simulated is a run of the published workload, much of which a fleet's cache does
// not hold, as rows of a trace in order of being sent: an open loop, or a closed one
// of so many users.
func simulated(t testing.TB, f *sim.Fleet, policy string, users int) ([]traces.Row, traces.Meta) {
	t.Helper()
	choice, err := sim.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	load, err := workload.Published(2, 0.5, f.KVTokens(), 1).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	var rows []traces.Row
	cfg := sim.Config{
		Fleet: f, Policy: choice, Seed: 3, Workload: load, Rate: 7, Arrivals: "poisson", Window: 40 * time.Second, KeepIDs: true,
		Rows: func(r *traces.Row) {
			row := *r
			row.Blocks = slices.Clone(r.Blocks)
			rows = append(rows, row)
		},
	}
	m := traces.Meta{Cell: traces.Cell{Driver: sim.DriverOpen, Policy: choice.Spec.Name}}
	if users > 0 {
		cfg.Rate, cfg.Arrivals, cfg.Users, m.Cell.Driver = 0, "", users, sim.DriverClosed
	}
	if _, err := sim.Run(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(rows, func(a, b traces.Row) int {
		return cmp.Or(cmp.Compare(a.SentAt, b.SentAt), cmp.Compare(a.VirtualUser, b.VirtualUser))
	})
	return rows, m
}

// The law of replay: a trace that a fleet made, simulated on that fleet, takes the
// very same times and finds the very same tokens cached, to the nanosecond, whatever
// policy placed it, in an open loop and in a closed one, with scheduling ahead or
// without, on cards whose clocks move.
func TestReplayIsExact(t *testing.T) {
	for _, policy := range []string{"round_robin", "session_affinity", "prefix_affinity", "exact_residency"} {
		for _, async := range []bool{false, true} {
			for _, users := range []int{0, 60} {
				t.Run(fmt.Sprintf("%s/async %v/%d users", policy, async, users), func(t *testing.T) {
					f, err := sim.LoadFleet("rtx3090x5")
					if err != nil {
						t.Fatal(err)
					}
					f = f.Scale(3)
					f.Engine.Blocks, f.Engine.Async, f.Step.NoiseShare = 2000, async, 0
					f.Thermal.Warm = 0
					rows, m := simulated(t, f, policy, users)
					r := open(t, m, rows...)
					if !r.Identified || len(r.Rows) != len(rows) || len(r.Rows) < 200 {
						t.Fatalf("%d rows of %d, identified %v", len(r.Rows), len(rows), r.Identified)
					}
					exact(t, r, simulate(t, r, f, ""))
				})
			}
		}
	}
}

// exact wants the outcomes to be what was recorded.
func exact(t *testing.T, r *Recording, out []Outcome) {
	t.Helper()
	cached, evicted, differ := 0, 0, 0
	for i, o := range out {
		row := &r.Rows[i]
		want := Outcome{
			TTFT: row.TTFT(), E2E: row.E2E(), ITLMean: row.ITLMean, ITLP50: row.ITLP50, Queue: row.QueueTime,
			Cached: row.CachedTokens, Ended: row.EndedAt, Sent: row.SentAt,
		}
		if o != want {
			if differ++; differ == 1 {
				t.Errorf("request %d: got\n%+v, want\n%+v", i, o, want)
			}
		}
		if row.CachedTokens > 100 {
			cached++
		} else if row.Turn > 0 {
			evicted++
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d requests differ", differ, len(out))
	}
	if cached < 20 || evicted < 20 {
		t.Errorf("%d requests found their past cached and %d did not: too few to show anything", cached, evicted)
	}
}

// Without block ids a trace does not tell which prompts share what; what it found
// cached is taken as cached. Times stay close, and placement stays the same.
func TestRecordedCachingStands(t *testing.T) {
	f := madeFleet(t)
	f.Engine.Blocks = 4000
	var rows []traces.Row
	for i := range 40 {
		r := answered(fmt.Sprint("r", i), time.Duration(i)*200*ms, 300*ms)
		r.EnginePromptTokens, r.CachedTokens, r.Replica = 500, int64(i*12), []string{"a", "b"}[i%3/2]
		rows = append(rows, r)
	}
	rows[7].CachedTokens, rows[8].CachedTokens = traces.None, 500 // not told; more than an engine can
	r := open(t, traces.Meta{}, rows...)
	out := simulate(t, r, f, "round_robin")
	for i, o := range out {
		want := min(rows[i].CachedTokens, 499)
		if i == 7 {
			want = 0
		}
		if o.Cached != want {
			t.Errorf("request %d: %d tokens cached, recorded %d", i, o.Cached, want)
		}
	}
	if out[39].TTFT >= out[0].TTFT/2 {
		t.Errorf("first token after %d ns with 468 of 500 tokens cached, %d ns with none", out[39].TTFT, out[0].TTFT)
	}
}

// placed is where the simulation puts each request.
func placed(t testing.TB, r *Recording, f *sim.Fleet, policy string) string {
	t.Helper()
	policy, err := r.policy(policy)
	if err != nil {
		t.Fatal(err)
	}
	choice, err := sim.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	if _, err := sim.Run(context.Background(), sim.Config{Fleet: f, Policy: choice, Trace: r.prompts, KeepIDs: true,
		Rows: func(row *traces.Row) { at[row.RequestID] = row.Replica }}); err != nil {
		t.Fatal(err)
	}
	where := ""
	for i := range r.prompts {
		where += at[fmt.Sprint(i)]
	}
	return where
}

// Requests go where they went; those of which that is not known go where the
// trace's own policy puts them, or the one that was asked for.
func TestPlacement(t *testing.T) {
	f := madeFleet(t)
	var rows []traces.Row
	for i := range 8 {
		r := answered(fmt.Sprint("r", i), time.Duration(i)*time.Second, 300*ms)
		r.Session, r.SessionSource = "one", traces.SessionSupplied
		r.Replica = []string{"a", "a", "", ""}[i%4]
		rows = append(rows, r)
	}
	r := open(t, traces.Meta{Cell: traces.Cell{Policy: "session_affinity"}}, rows...)
	if err := r.FitTo(f); err != nil {
		t.Fatal(err)
	}
	if got := placed(t, r, f, ""); got != "aabbaabb" {
		t.Errorf("by session: placed %s, want the free ones on b, whose the session is", got)
	}
	if got := placed(t, r, f, "round_robin"); got[:2] != "aa" || got[4:6] != "aa" || got[2] == got[3] || got[6] == got[7] {
		t.Errorf("in turn: placed %s, want the free ones on either", got)
	}
	r.Free()
	if got := placed(t, r, f, "round_robin"); got != "abababab" {
		t.Errorf("free, in turn: placed %s, want abababab", got)
	}
	odd := open(t, traces.Meta{Cell: traces.Cell{Policy: "by_moonlight", Parameters: "phase=3"}}, rows...)
	_, err := odd.Simulate(t.Context(), f, "", 1)
	wantError(t, err, odd.Path, "was placed by policy by_moonlight:phase=3, which is not known here")
	if _, err := odd.Simulate(t.Context(), f, "round_robin", 1); err != nil {
		t.Errorf("an unknown policy that is not needed: %v", err)
	}
	for i := range rows {
		rows[i].Replica = "b"
	}
	odd = open(t, odd.Meta, rows...)
	if got := placed(t, odd, f, ""); got != "bbbbbbbb" {
		t.Errorf("all placed: %s", got)
	}
}

// A replica that the fleet does not have is an error that names it, once; a fleet
// of one takes all.
func TestFitTo(t *testing.T) {
	f := madeFleet(t)
	var rows []traces.Row
	for i, name := range []string{"a", "gpu-7", "", "gpu-9", "gpu-7"} {
		r := answered(fmt.Sprint("r", i), time.Duration(i)*ms, 300*ms)
		r.Replica = name
		rows = append(rows, r)
	}
	r := open(t, traces.Meta{}, rows...)
	wantError(t, r.FitTo(f), r.Path+": requests went to [gpu-7 gpu-9], which fleet made does not have")
	r = open(t, traces.Meta{}, rows...)
	one := *f
	one.Replicas = f.Replicas[1:]
	for i, o := range simulate(t, r, &one, "") {
		if o.TTFT <= 0 {
			t.Errorf("request %d was not served", i)
		}
	}
}

// A user's next request leaves when the simulated answer has ended and the recorded
// pause is over. On a fleet half as fast the whole loop takes twice as long.
func TestClosedLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const users, each = 3, 8
	var rows []traces.Row
	gap := map[string]int64{}
	for u := range users {
		at := time.Duration(u) * 7 * ms
		for k := range each {
			took := time.Duration(100+rng.IntN(200)) * ms
			r := answered(fmt.Sprint(u, "/", k), at, took)
			r.ScheduledAt, r.VirtualUser, r.Replica = traces.None, int32(u), "a"
			pause := time.Duration(rng.IntN(50)) * ms
			gap[fmt.Sprint(u, "/", k+1)] = int64(pause)
			at += took + pause
			rows = append(rows, r)
		}
	}
	r := open(t, closedLoop, rows...)
	if !r.Closed || r.Users() != users {
		t.Fatalf("closed %v, %d users, want %d", r.Closed, r.Users(), users)
	}
	end := map[float64]int64{}
	for _, slow := range []float64{1, 2} {
		f := madeFleet(t)
		f.FrontEnd = sim.FrontEnd{}
		f.Step.DenseTokenMS *= slow
		f.Step.DecodeLadder[0].MS *= slow
		f.Step.DecodeLadder[0].ContextMS *= slow
		before := map[int32]Outcome{}
		for i, o := range simulate(t, r, f, "") {
			row := &r.Rows[i]
			want := row.SentAt
			if b, ok := before[row.VirtualUser]; ok {
				want = b.Ended + gap[row.RequestID]
			}
			if o.Sent != want {
				t.Errorf("slow by %v: %s was sent at %v, want %v", slow, row.RequestID, time.Duration(o.Sent), time.Duration(want))
			}
			before[row.VirtualUser] = o
			end[slow] = max(end[slow], o.Ended)
		}
	}
	if ratio := float64(end[2]) / float64(end[1]); ratio < 1.5 || ratio > 2 {
		t.Errorf("on a fleet half as fast the loop takes %.2f times as long, want nearly 2 (pauses stay)", ratio)
	}
	if r.Continued(3) != r {
		t.Error("a closed loop goes on by itself and was continued")
	}
}

// A request of unknown end lets nobody go: the next one leaves when it left.
func TestClosedLoopWithHoles(t *testing.T) {
	lost, overlapping := answered("lost", 0, 300*ms), answered("overlapping", 450*ms, 300*ms)
	lost.Outcome, lost.FirstTokenAt, lost.LastTokenAt, lost.EndedAt = traces.Dropped, traces.None, traces.None, traces.None
	after := answered("after", 400*ms, 300*ms)
	rows := []traces.Row{lost, after, overlapping}
	for i := range rows {
		rows[i].VirtualUser = 1
	}
	for i, o := range simulate(t, open(t, closedLoop, rows...), madeFleet(t), "") {
		if o.Sent != rows[i].SentAt {
			t.Errorf("%s was sent at %v, want %v as recorded", rows[i].RequestID, time.Duration(o.Sent), time.Duration(rows[i].SentAt))
		}
	}
}

// A probe begins with cold cards, whatever the fleet file says of what they did
// before; another trace does not.
func TestRest(t *testing.T) {
	warm, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		t.Fatal(err)
	}
	cold, heat := *warm, *warm.Thermal
	heat.Warm = 0
	cold.Thermal = &heat
	r, err := Open(probe(t))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := simulate(t, r, warm, ""), simulate(t, r, &cold, ""); !slices.Equal(a, b) {
		t.Errorf("warm %+v, cold %+v", a, b)
	}
	r.Rest = false
	if a, b := simulate(t, r, warm, ""), simulate(t, r, &cold, ""); slices.Equal(a, b) {
		t.Error("heat makes no difference here")
	}
	if warm.Thermal.Warm == 0 {
		t.Error("the caller's fleet was cooled")
	}
}

// A simulation stops when it is told to.
func TestSimulateStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := open(t, traces.Meta{}, answered("a", 0, ms))
	if _, err := r.Simulate(ctx, madeFleet(t), "", 1); err == nil {
		t.Error("got no error of a context that is over")
	}
}
