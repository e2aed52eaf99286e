package summary

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kvfleet/traces"
)

const ms = int64(time.Millisecond)

// answered is a request sent at sentMS and answered with the given TTFT, gap and
// length in ms; 64 output tokens, 1000 prompt tokens, half of them cached.
func answered(sentMS, ttftMS, itlMS, e2eMS int64) traces.Row {
	r := traces.NewRow()
	r.ScheduledAt, r.SentAt = sentMS*ms, sentMS*ms
	r.FirstTokenAt, r.EndedAt = (sentMS+ttftMS)*ms, (sentMS+e2eMS)*ms
	r.ITLP50 = itlMS * ms
	r.OutputTokens = 64
	r.EnginePromptTokens, r.CachedTokens = 1000, 500
	r.Outcome, r.Replica, r.Reason = traces.Success, "replica-0", "COLD"
	return r
}

func fold(t *testing.T, o Options, rows ...traces.Row) Summary {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		a.Add(&rows[i])
	}
	return a.Summary()
}

func TestWindowBySentTime(t *testing.T) {
	flagged := answered(150, 1, 1, 9)
	flagged.Warmup = true
	never := traces.NewRow()
	never.Outcome = traces.Dropped
	s := fold(t, Options{Warmup: 100 * time.Millisecond, Window: 200 * time.Millisecond},
		answered(99, 1, 1, 900), answered(100, 1, 1, 900), answered(199, 1, 1, 900),
		answered(200, 1, 1, 900), flagged, never, answered(50, 1, 1, 100))
	if s.Requests != 2 || s.OutsideWarmup != 3 || s.OutsideWindow != 2 {
		t.Errorf("got %d counted, %d warm-up, %d outside; want 2, 3, 2", s.Requests, s.OutsideWarmup, s.OutsideWindow)
	}
	// Two ended in the window, and neither is of those sent in it.
	if want := 2 / 0.1; s.ThroughputRPS != want {
		t.Errorf("throughput: got %v, want %v", s.ThroughputRPS, want)
	}
}

// A fleet that is sent more than it can do gets done what it can do.
func TestThroughputUnderOverload(t *testing.T) {
	var rows []traces.Row
	for i := range int64(100) { // one per ms, and one done per 2 ms
		rows = append(rows, answered(i, 1, 1, i+2))
	}
	if s := fold(t, Options{Window: 100 * time.Millisecond}, rows...); s.ThroughputRPS != 490 || s.GoodputRPS != 1000 {
		t.Errorf("of a window: got %v, goodput %v, want 490, 1000", s.ThroughputRPS, s.GoodputRPS)
	}
	if s := fold(t, Options{}, rows...); s.ThroughputRPS != 500 {
		t.Errorf("open-ended: got %v, want 500", s.ThroughputRPS)
	}
}

func TestOutcomesAddUp(t *testing.T) {
	with := func(o traces.Outcome) traces.Row {
		r := answered(1, 1, 1, 1)
		r.Outcome = o
		return r
	}
	slow, stuttering, single := answered(1, 101, 1, 200), answered(1, 100, 11, 200), answered(1, 100, 0, 100)
	single.ITLP50 = traces.None
	silent := answered(1, 1, 1, 1)
	silent.FirstTokenAt = traces.None
	s := fold(t, Options{Window: time.Second, SLO: traces.SLO{TTFT: 100 * time.Millisecond, ITL: 10 * time.Millisecond}},
		answered(1, 100, 10, 200), slow, stuttering, single, silent,
		with(traces.Failed), with(traces.Dropped), with(traces.Cancelled), with(traces.Pending))
	got := [7]int64{s.Requests, s.Success, s.SLOViolation, s.Failed, s.Dropped, s.Cancelled, s.Unfinished}
	if want := [7]int64{9, 5, 3, 1, 1, 1, 1}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if s.GoodputRPS != 2 || s.ThroughputRPS != 5 {
		t.Errorf("got goodput %v, throughput %v; want 2, 5", s.GoodputRPS, s.ThroughputRPS)
	}
	if want := 2. / 9; s.Attainment != want {
		t.Errorf("attainment: got %v, want %v", s.Attainment, want)
	}
}

func TestDivergenceIsNeverNetted(t *testing.T) {
	over, under, blind := answered(1, 1, 1, 1), answered(2, 1, 1, 1), answered(3, 1, 1, 1)
	over.MatchTokens, over.CachedTokens = 800, 500
	under.MatchTokens, under.CachedTokens = 200, 500
	s := fold(t, Options{}, over, under, blind)
	if s.OverPredicted != 150 || s.UnderPredicted != 150 {
		t.Errorf("got over %v, under %v; want 150, 150", s.OverPredicted, s.UnderPredicted)
	}
	if s.HonouredShare != 0.7 {
		t.Errorf("honoured share: got %v, want 0.7", s.HonouredShare)
	}
}

func TestPlacementAndDecisions(t *testing.T) {
	place := func(replica, reason string) traces.Row {
		r := answered(1, 1, 1, 1)
		r.Replica, r.Reason = replica, reason
		return r
	}
	moved := place("b", "SPILL_LOAD")
	moved.Reroutes = 2
	s := fold(t, Options{Window: time.Second, Replicas: []string{"b", "idle"}},
		place("z", "COLD"), place("a", "SPILL_HIT_RATE"), place("b", "COLD"), moved, place("", ""))
	var names []string
	for _, p := range s.Placement {
		names = append(names, p.Replica)
	}
	if got, want := strings.Join(names, " "), "b idle a z"; got != want {
		t.Errorf("placement order: got %q, want %q", got, want)
	}
	if s.BusiestShare != 0.5 || s.SpillShare != 0.5 || s.Reroutes != 2 || s.Rerouted != 1 {
		t.Errorf("got busiest %v, spill %v, reroutes %d of %d; want 0.5, 0.5, 2 of 1",
			s.BusiestShare, s.SpillShare, s.Reroutes, s.Rerouted)
	}
	if s.Decisions[0].Reason != "COLD" || s.Decisions[0].Share != 0.5 || len(s.Decisions) != 3 {
		t.Errorf("decisions: got %+v, want COLD at 0.5 first of three", s.Decisions)
	}
}

func TestOpenEndedWindowIsToTheLastEnd(t *testing.T) {
	s := fold(t, Options{}, answered(0, 1, 1, 1), answered(500, 1, 1, 1), answered(1000, 1, 1, 1))
	if want := 1001 * time.Millisecond; s.Counted != want {
		t.Errorf("counted: got %v, want %v", s.Counted, want)
	}
	if s = fold(t, Options{}, answered(5, 1, 1, 250)); s.Counted != 250*time.Millisecond {
		t.Errorf("one request: got %v, want its own 250ms", s.Counted)
	}
	// Every rate is of the counted rows and over their time: a burst in the opening
	// is not in it.
	rows := []traces.Row{answered(2000, 1, 1, 1000)}
	for i := range int64(600) {
		rows = append(rows, answered(i, 1, 1, 2500))
	}
	if s = fold(t, Options{Warmup: time.Second}, rows...); s.GoodputRPS != 1 || s.ThroughputRPS != 1 || s.OutputTokensPS != 64 {
		t.Errorf("after a burst: goodput %v, throughput %v, %v tokens/s, want 1, 1, 64", s.GoodputRPS, s.ThroughputRPS, s.OutputTokensPS)
	}
}

func TestOrderOfRowsDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var rows []traces.Row
	for range 500 {
		r := answered(rng.Int64N(1000), rng.Int64N(300), rng.Int64N(30), 400)
		r.Replica = string(rune('a' + rng.IntN(4)))
		rows = append(rows, r)
	}
	one, _ := json.Marshal(fold(t, Options{}, rows...))
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	two, _ := json.Marshal(fold(t, Options{}, rows...))
	if string(one) != string(two) {
		t.Errorf("got different summaries of shuffled rows:\n%s\n%s", one, two)
	}
}

func TestNothingCountedIsUnknownNotZero(t *testing.T) {
	s := fold(t, Options{Window: time.Second})
	for _, m := range s.Metrics() {
		switch m.Name {
		case "ttft_p50_ms", "prefix_cache_hit_rate", "busiest_replica_share", "spill_share", "attainment":
			if m.Text() != "" {
				t.Errorf("%s: got %q, want empty", m.Name, m.Text())
			}
		}
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}

func TestOptionsFaultsComeTogether(t *testing.T) {
	_, err := New(Options{Warmup: -1, Window: -2, SLO: traces.SLO{TTFT: -1}, Replicas: []string{"a", "a"}})
	for _, want := range []string{"warmup", "window", "SLO", "twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to speak of %q", err, want)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	rows := make([]traces.Row, 64)
	for i := range rows {
		rows[i] = answered(int64(i), 10, 10, 20)
		rows[i].Replica = "replica-" + string(rune('0'+i%5))
	}
	a, _ := New(Options{Expect: b.N})
	b.ReportAllocs()
	for i := range b.N {
		a.Add(&rows[i%64])
	}
}

func TestTTFTByReplica(t *testing.T) {
	other := answered(3, 40, 1, 50)
	other.Replica = "replica-1"
	s := fold(t, Options{Replicas: []string{"replica-0", "replica-1", "idle"}}, answered(1, 10, 1, 20), answered(2, 20, 1, 30), other)
	if p := s.Placement; p[0].TTFTP50 != 15 || p[1].TTFTP50 != 40 || !math.IsNaN(p[2].TTFTP50) {
		t.Errorf("got %+v, want 15, 40 and none", p)
	}
	text, err := json.Marshal(s.Placement)
	if err != nil || !strings.Contains(string(text), `"ttft_p50_ms":15}`) || !strings.Contains(string(text), `"ttft_p50_ms":null}`) {
		t.Errorf("got %s, %v", text, err)
	}
}
