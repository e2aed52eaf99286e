package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvfleet/sim/engine"
	"kvfleet/traces"
	"kvfleet/traces/seed"
)

// driverNames are the ways a run is driven, as the tests below call them.
var driverNames = [...]string{DriverClosed, DriverOpen, DriverTrace}

// lawful is a run of ten seconds on the small fleet, full and faulty.
func lawful(t testing.TB, driver string, rng *rand.Rand) Config {
	f := smallFleet(t)
	cfg := Config{Fleet: f, Seed: seed.Seed(rng.Uint64()), Epoch: 3, Window: 10 * time.Second, KeepIDs: true, Audit: true}
	switch driver {
	case DriverClosed:
		cfg.Workload, cfg.Users = smallLoad(t, f), 16
	case DriverOpen:
		cfg.Workload, cfg.Rate, cfg.Arrivals, cfg.Think = smallLoad(t, f), 30, "poisson", time.Second
	case DriverTrace:
		cfg.Trace = randomTrace(rng, 250, cfg.Window)
	}
	return cfg
}

// randomTrace is n prompts over the time, of every kind: with trace blocks of
// several sizes, distinct, and some longer than a replica holds.
func randomTrace(rng *rand.Rand, n int, over time.Duration) []Prompt {
	sizes := [...]int{512, 64, 16, 100}
	ats := make([]int64, n)
	for i := range ats {
		ats[i] = rng.Int64N(int64(over))
	}
	slices.Sort(ats)
	var trace []Prompt
	for i, at := range ats {
		p := Prompt{
			RequestID: fmt.Sprint("r", i), ScheduledAt: at, Tokens: 1 + rng.IntN(600), Stop: 1 + rng.IntN(60), Turn: -1, User: -1,
		}
		if rng.IntN(4) > 0 {
			p.Session, p.Source = fmt.Sprint("s", rng.IntN(20)), traces.SessionSupplied
		}
		if rng.IntN(40) == 0 {
			p.Tokens = 2200 + rng.IntN(3000)
		}
		p.Max = p.Stop + rng.IntN(3)
		if rng.IntN(5) == 0 {
			p.Distinct = true
		} else {
			size := rng.IntN(len(sizes))
			p.TraceBlock = sizes[size]
			family := uint64(size)<<40 | uint64(rng.IntN(3))<<20
			common := rng.IntN(8)
			for b := range (p.Tokens + p.TraceBlock - 1) / p.TraceBlock {
				id := family | uint64(b+1)
				if b > common {
					id = uint64(i+1)<<50 | id
				}
				p.Trace = append(p.Trace, id)
			}
		}
		trace = append(trace, p)
	}
	return trace
}

// randomFaults is a dozen things that happen to the fleet, most of which end.
func randomFaults(rng *rand.Rand, f *Fleet, over time.Duration) []Fault {
	var faults []Fault
	for range 12 {
		r := f.Replicas[rng.IntN(len(f.Replicas))].Name
		x := Fault{At: time.Duration(rng.Int64N(int64(over))), Replica: r, Kind: faultKinds[rng.IntN(len(faultKinds))]}
		switch x.Kind {
		case "slow":
			x.Factor, x.For = 0.5+4*rng.Float64(), time.Duration(rng.Int64N(int64(over)/4))
		case "event_gap":
			x.For = time.Duration(rng.Int64N(int64(over) / 4))
		case "kill":
			faults = append(faults, Fault{At: x.At + time.Duration(rng.Int64N(int64(over)/8)), Replica: r, Kind: "restart"})
		case "drain":
			faults = append(faults, Fault{At: x.At + time.Duration(rng.Int64N(int64(over)/8)), Replica: r, Kind: "restore"})
		}
		if len(overlaps(append(faults[:len(faults):len(faults)], x))) == 0 {
			faults = append(faults, x)
		}
	}
	return faults
}

// TestConservation holds every policy under every driver to the laws at the end
// of engine-model.md, on a fleet that evicts, preempts, dies and comes back. The
// audit looks at engines and ledger after every event; here the rows are held
// against what was asked for.
func TestConservation(t *testing.T) {
	schedules := 3
	if testing.Short() {
		schedules = 1
	}
	var evicted, preempted, rerouted, gaps int
	outcomes := map[string]int{}
	for _, driver := range driverNames {
		for _, p := range catalog(t) {
			t.Run(driver+"/"+p.Spec.Name, func(t *testing.T) {
				for s := range schedules {
					rng := rand.New(rand.NewPCG(uint64(s), 77))
					cfg := lawful(t, driver, rng)
					cfg.Policy = p
					cfg.Faults = randomFaults(rng, cfg.Fleet, cfg.Window)
					l := &laws{t: t, cfg: &cfg, seen: map[string]bool{}, planned: map[string]*Prompt{}}
					for i := range cfg.Trace {
						l.planned[cfg.Trace[i].RequestID] = &cfg.Trace[i]
					}
					cfg.Decided = l.decided
					result := drive(t, cfg, l.row, func(c *cluster) { l.c = c })
					l.total(&result)
					evicted += int(result.IdleBeforeEvict.N())
					preempted += result.Preemptions
					rerouted += l.rerouted
					gaps += int(result.EventGaps)
					for o, n := range l.outcomes {
						outcomes[traces.Outcome(o).String()] += n
					}
					if t.Failed() {
						t.Fatalf("schedule %d", s)
					}
				}
			})
		}
	}
	t.Logf("%v; %d blocks evicted, %d preemptions, %d rerouted, %d event gaps", outcomes, evicted, preempted, rerouted, gaps)
	if evicted == 0 || preempted == 0 || rerouted == 0 || gaps == 0 || outcomes["success"] == 0 || outcomes["dropped"] == 0 {
		t.Error("the schedules do not reach everything they are for")
	}
}

// laws watches one run.
type laws struct {
	t        *testing.T
	cfg      *Config
	c        *cluster
	seen     map[string]bool
	planned  map[string]*Prompt // of a trace
	outcomes [traces.Cancelled + 1]int
	rerouted int
}

func (l *laws) decided(d DecisionRecord) {
	if d.At != l.c.loop.Now() {
		l.t.Errorf("request %s: decided at %v, it is %v", d.Request, d.At, l.c.loop.Now())
	}
	for _, n := range l.c.replicas {
		if n.name == d.Replica && !n.rotation {
			l.t.Errorf("at %v: request %s was placed on %s, which is out of rotation", d.At, d.Request, n.name)
		}
	}
}

func (l *laws) row(r *traces.Row) {
	fault := func(format string, args ...any) {
		l.t.Errorf("%s, %s: "+format, append([]any{r.RequestID, r.Outcome}, args...)...)
	}
	if l.seen[r.RequestID] {
		fault("ended twice")
	}
	l.seen[r.RequestID] = true
	l.outcomes[r.Outcome]++
	if r.Reroutes > 0 {
		l.rerouted++
	}
	p := l.planned[r.RequestID]
	tooLong := p != nil && l.cfg.Fleet.tooLong(p) != ""
	if (r.Outcome == traces.Failed) != tooLong || (r.Status == 400) != tooLong {
		fault("status %d, the prompt is too long: %v", r.Status, tooLong)
	}
	if r.Outcome == traces.Cancelled {
		fault("the fleet cancels nothing")
	}
	if (r.Outcome == traces.Success) == (r.Error != "") {
		fault("with error %q", r.Error)
	}
	if r.CachedTokens != traces.None && (r.CachedTokens < 0 || r.CachedTokens > r.PromptTokens-1) {
		fault("%d of %d tokens cached", r.CachedTokens, r.PromptTokens)
	}
	last, before := int64(0), "the start"
	for _, at := range []struct {
		name string
		at   int64
	}{
		{"scheduled", r.ScheduledAt}, {"sent", r.SentAt}, {"received", r.ReceivedAt}, {"decided", r.DecidedAt}, {"dispatched", r.DispatchedAt},
		{"first byte", r.FirstByteAt}, {"first token", r.FirstTokenAt}, {"last token", r.LastTokenAt}, {"ended", r.EndedAt},
	} {
		if at.at == traces.None {
			continue
		}
		if at.at < last {
			fault("%s at %d ns, before %s at %d ns", at.name, at.at, before, last)
		}
		last, before = at.at, at.name
	}
	if r.Outcome != traces.Success {
		return
	}
	// Answers of the small fleet's workload do not stop early.
	want := r.MaxTokens
	if p != nil {
		want = int64(p.Stop)
	}
	if r.OutputTokens != want || r.Chunks != want {
		fault("%d tokens out in %d chunks, want %d", r.OutputTokens, r.Chunks, want)
	}
	if r.QueueTime < 0 || r.PrefillTime <= 0 || r.FirstTokenAt == traces.None || r.EndedAt != r.LastTokenAt {
		fault("queue %d ns, prefill %d ns, first token at %d, last at %d, ended at %d", r.QueueTime, r.PrefillTime, r.FirstTokenAt, r.LastTokenAt, r.EndedAt)
	}
	if want > 1 && !(r.ITLP50 <= r.ITLP99 && r.ITLP99 <= r.ITLMax && r.ITLMean <= r.ITLMax && r.ITLP50 > 0) {
		fault("gaps of mean %d, p50 %d, p99 %d, most %d", r.ITLMean, r.ITLP50, r.ITLP99, r.ITLMax)
	}
	// The gaps are all of the time between the first and the last token.
	if span := r.LastTokenAt - r.FirstTokenAt; want > 1 && (r.ITLMean > span/(want-1)+1 || r.ITLMean < span/(want-1)-1) {
		fault("a mean gap of %d ns, %d tokens within %d ns", r.ITLMean, want, span)
	}
}

func (l *laws) total(result *Result) {
	rows := 0
	for _, n := range l.outcomes {
		rows += n
	}
	if int64(rows) != l.c.serial {
		l.t.Errorf("%d rows, %d requests sent", rows, l.c.serial)
	}
	if l.planned != nil && len(l.cfg.Trace) != 0 && rows != len(l.cfg.Trace) {
		l.t.Errorf("%d rows, the trace has %d", rows, len(l.cfg.Trace))
	}
	s := &result.Summary
	if got := s.Requests + s.OutsideWarmup + s.OutsideWindow; got != int64(rows) {
		l.t.Errorf("the summary knows %d rows, want %d", got, rows)
	}
	if got := s.Success + s.Failed + s.Dropped + s.Cancelled; got != s.Requests || s.SLOViolation > s.Success {
		l.t.Errorf("outcomes add up to %d, want %d; %d of %d successes missed the SLO", got, s.Requests, s.SLOViolation, s.Success)
	}
	for _, n := range l.c.replicas {
		if in, pending := l.c.router.InFlight(n.id), l.c.router.PendingPrefill(n.id); in != 0 || pending != 0 {
			l.t.Errorf("%s: %d in flight and %d tokens pending at the end", n.name, in, pending)
		}
		if refs := n.engine.Pool().References(); refs != 0 {
			l.t.Errorf("%s: %d references to blocks at the end", n.name, refs)
		}
	}
}

// Every token a row tells of came out of a step: one for each request that
// decodes in it, and one for each prompt that it completes.
func TestTokensAreSteps(t *testing.T) {
	cfg := lawful(t, DriverClosed, rand.New(rand.NewPCG(1, 1)))
	cfg.Fleet.Engine.Blocks *= 8 // nothing is computed twice
	cfg.Policy = choice(t, "least_outstanding")
	decoded, prefilled := 0, 0
	cfg.Steps = func(_ string, s engine.Step) {
		decoded += s.DecodeReqs
		prefilled += s.PrefillTokens
	}
	rows, result := rowsOf(t, cfg)
	out, computed := 0, 0
	for _, r := range rows {
		out += int(r.OutputTokens)
		computed += int(r.EnginePromptTokens - r.CachedTokens)
	}
	if result.Preemptions != 0 {
		t.Fatalf("%d preemptions, the test wants none", result.Preemptions)
	}
	if got := decoded + len(rows); got != out || prefilled != computed {
		t.Errorf("steps give %d tokens and compute %d of prompts, rows have %d and %d", got, prefilled, out, computed)
	}
}
