package judge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kvfleet/calibrate/replay"
	"kvfleet/traces"
)

const milli = int64(time.Millisecond)

// A made request: due and sent then, with those times measured and simulated, ms.
type made struct {
	sent            int64
	ttft, e2e       int64
	simTTFT, simE2E int64
}

// record makes a recording of requests of 100 prompt tokens and 11 of answer, and
// what a simulation says of them.
func record(requests ...made) (*replay.Recording, []replay.Outcome) {
	rec := &replay.Recording{Path: "made"}
	var out []replay.Outcome
	for i, m := range requests {
		r := traces.NewRow()
		r.RequestID, r.Outcome = fmt.Sprint("r", i), traces.Success
		r.ScheduledAt, r.SentAt = m.sent*milli, m.sent*milli
		r.FirstTokenAt, r.LastTokenAt, r.EndedAt = (m.sent+m.ttft)*milli, (m.sent+m.e2e)*milli, (m.sent+m.e2e)*milli
		r.EnginePromptTokens, r.OutputTokens = 100, 11
		rec.Rows = append(rec.Rows, r)
		rec.Judged = append(rec.Judged, true)
		o := replay.None()
		if m.simTTFT > 0 {
			o.TTFT, o.E2E, o.ITLMean = m.simTTFT*milli, m.simE2E*milli, (m.simE2E-m.simTTFT)*milli/10
			o.Sent, o.Ended = m.sent*milli, (m.sent+m.simE2E)*milli
		}
		out = append(out, o)
	}
	return rec, out
}

func near(t testing.TB, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) < 1e-9) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// By hand: first tokens after 100, 200 and 400 ms, simulated 110, 180 and 400, are
// off by 10, 10 and 0%.
func TestMAPE(t *testing.T) {
	rec, out := record(made{0, 100, 200, 110, 300}, made{10, 200, 400, 180, 500}, made{20, 400, 1000, 400, 700})
	c := Compare("by hand", rec, out, nil)
	m := c.Metric(TTFT)
	near(t, "MAPE", m.MAPE, 0.2/3)
	near(t, "error of the mean", m.MeanError(), 690.0/700-1)
	near(t, "end-to-end MAPE", c.Metric(E2E).MAPE, (0.5+0.25+0.3)/3)
	if m.N != 3 || c.Requests != 3 || c.Missing != 0 {
		t.Errorf("%d in the metric of %d requests, %d missing; want 3, 3, 0", m.N, c.Requests, c.Missing)
	}
	if m.Measured != (Figures{700.0 / 3, 200, 400, 400}) || m.Simulated != (Figures{230, 180, 400, 400}) {
		t.Errorf("measured %+v, simulated %+v", m.Measured, m.Simulated)
	}
	if c.Metric("colour") != nil || c.Metric(Queue) != nil {
		t.Error("a metric that nobody knows was compared")
	}
	late := Compare("late", rec, out, func(i int) bool { return i > 0 })
	near(t, "MAPE of the last two", late.Metric(TTFT).MAPE, 0.05)
}

// Percentiles are times that occurred: the least with at least that share at or
// under it.
func TestFigures(t *testing.T) {
	var all []made
	for i := range int64(1000) {
		all = append(all, made{0, (i*7)%1000 + 1, 2000, (i*7)%1000 + 11, 2000})
	}
	rec, out := record(all...)
	m := Compare("", rec, out, nil).Metric(TTFT)
	if m.Measured != (Figures{500.5, 500, 900, 990}) || m.Simulated != (Figures{510.5, 510, 910, 1000}) {
		t.Errorf("measured %+v, simulated %+v, of 1 to 1000 and 10 more", m.Measured, m.Simulated)
	}
}

// A mean of ratios and a ratio of means are not the same thing: here requests are
// off by two thirds, and their mean by nothing.
func TestRatiosAreKeptApart(t *testing.T) {
	rec, out := record(made{0, 100, 100, 200, 100}, made{0, 300, 300, 200, 300})
	m := Compare("", rec, out, nil).Metric(TTFT)
	near(t, "mean of ratios", m.MAPE, (1+1.0/3)/2)
	near(t, "ratio of means", m.MeanError(), 0)
}

// The time per output token is over the gaps, one fewer than the tokens; an answer
// of one token has none. What the row states itself comes first.
func TestTimePerOutputToken(t *testing.T) {
	rec, out := record(made{0, 100, 1100, 100, 1100}, made{0, 100, 600, 100, 1100}, made{0, 100, 1100, 100, 1100}, made{0, 100, 900, 100, 1100})
	rec.Rows[1].LastTokenAt = traces.None // the end stands for it
	rec.Rows[2].OutputTokens = 1
	out[2].ITLMean = traces.None
	rec.Rows[3].ITLMean = 60 * milli
	m := Compare("", rec, out, nil).Metric(TPOT)
	if m.N != 3 {
		t.Errorf("%d requests have gaps, want 3", m.N)
	}
	near(t, "measured", m.Measured.Mean, (100+50+60)/3.0)
	near(t, "simulated", m.Simulated.Mean, 100)
}

// Requests that are not judged do not count, and those that the simulation did not
// serve are counted as missing.
func TestWhatIsCompared(t *testing.T) {
	rec, out := record(made{0, 100, 200, 110, 200}, made{0, 100, 200, 0, 0}, made{0, 100, 200, 900, 990}, made{0, 0, 0, 100, 200})
	rec.Judged[2] = false
	c := Compare("", rec, out, nil)
	if c.Requests != 2 || c.Missing != 1 {
		t.Errorf("%d requests, %d missing; want 2 and 1", c.Requests, c.Missing)
	}
	// A measured time of 0 has no ratio, and is in the mean.
	near(t, "MAPE", c.Metric(TTFT).MAPE, 0.1)
	near(t, "mean", c.Metric(TTFT).Measured.Mean, 50)
}

// The distance of two distributions: none of one from itself in any order, all of
// two that do not meet, and by hand half of two that overlap by half.
func TestKS(t *testing.T) {
	of := func(measured, simulated []int64) float64 {
		var all []made
		for i := range measured {
			all = append(all, made{0, measured[i], 1000, simulated[i], 1000})
		}
		rec, out := record(all...)
		return Compare("", rec, out, nil).Metric(TTFT).KS
	}
	near(t, "equal", of([]int64{1, 2, 3, 4}, []int64{3, 1, 4, 2}), 0)
	near(t, "disjoint", of([]int64{1, 2, 3, 4}, []int64{8, 6, 7, 5}), 1)
	near(t, "by half", of([]int64{1, 2, 3, 4}, []int64{3, 4, 5, 6}), 0.5)
}

// Tokens per second count from the first request sent to the last answer's end, in
// simulation too: a closed loop that is faster also sends sooner.
func TestThroughput(t *testing.T) {
	rec, out := record(made{1000, 100, 1000, 50, 500}, made{2000, 100, 1000, 50, 500})
	c := Compare("", rec, out, nil)
	near(t, "measured", c.Throughput, 22/2.0)
	near(t, "simulated, open loop", c.SimulatedThroughput, 22/1.5)
	// The second waited for the first, and all of it is later on the simulation's own
	// clock.
	out[0].Sent, out[0].Ended, out[1].Sent, out[1].Ended = 1700*milli, 2200*milli, 2200*milli, 2700*milli
	near(t, "simulated, closed loop", Compare("", rec, out, nil).SimulatedThroughput, 22/1.0)
	rec.Rows[0].EndedAt, rec.Rows[1].EndedAt = traces.None, traces.None
	near(t, "ends not known", Compare("", rec, out, nil).Throughput, 0)
}

// Cached tokens are compared where both say them, over the prompts' tokens, which
// the engine counted or the workload planned.
func TestHitRate(t *testing.T) {
	rec, out := record(made{0, 100, 200, 100, 200}, made{0, 100, 200, 100, 200}, made{0, 100, 200, 100, 200}, made{0, 100, 200, 100, 200})
	for i, cached := range []int64{64, 80, traces.None, 10} {
		rec.Rows[i].CachedTokens = cached
		out[i].Cached = 64
	}
	out[3].Cached = traces.None
	rec.Rows[1].EnginePromptTokens, rec.Rows[1].PromptTokens = traces.None, 60
	rec.Identified = true
	c := Compare("", rec, out, nil)
	near(t, "measured", float64(c.HitRate), 144.0/160)
	near(t, "simulated", float64(c.SimulatedHitRate), 128.0/160)
	near(t, "equal", float64(c.CachedEqual), 0.5)
	if c.CachedRows != 2 || c.CachedGiven {
		t.Errorf("%d rows, given %v; want 2, which the simulation found itself", c.CachedRows, c.CachedGiven)
	}
	rec.Identified = false
	if !Compare("", rec, out, nil).CachedGiven {
		t.Error("the trace does not say which prompts share a prefix: what was cached is its own word")
	}
}

// What is not known is null, also where a repeat has nothing to divide by.
func TestJSON(t *testing.T) {
	rec, out := record(made{0, 100, 200, 100, 200}, made{5, 100, 200, 100, 200})
	again, _ := record(made{0, 100, 200, 100, 200}, made{5, 100, 200, 100, 200})
	for i := range rec.Rows {
		rec.Rows[i].QueueTime, again.Rows[i].QueueTime, out[i].Queue = 0, 0, 0
	}
	for _, wait := range []int64{0, 7 * milli} {
		again.Rows[1].QueueTime = wait
		c := Compare("", rec, out, nil)
		if !c.AddFloor(rec, again) {
			t.Fatal("the repeat is none")
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"hit_rate":null`, `"cached_equal":null`, `"name":"queue time","n":2,`, `"ks":0,"floor":{"mape":null,"mean":null,"ks":`, `},"mape":null}]`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("got %s, want %s in it", text, want)
			}
		}
	}
}

// Two runs of one workload are paired by when requests were due, whatever order
// they were sent in. By hand: 100 and 300 ms against 110 and 240 are off by 10 and
// 20%; paired by place, 100 and 300 against 240 and 110 would be off by 102%.
func TestNoiseFloor(t *testing.T) {
	rec, out := record(made{0, 100, 500, 100, 500}, made{10, 300, 500, 300, 500})
	repeat, _ := record(made{1010, 240, 600, 1, 1}, made{1000, 110, 700, 1, 1})
	repeat.Rows[0].SentAt, repeat.Rows[0].FirstTokenAt = 1011*milli, 1251*milli // sent late, as far as sending goes
	repeat.Rows[1].SentAt, repeat.Rows[1].FirstTokenAt = 1020*milli, 1130*milli
	c := Compare("", rec, out, nil)
	if !c.AddFloor(rec, repeat) {
		t.Fatal("the repeat is none")
	}
	f := c.Metric(TTFT).Floor
	near(t, "MAPE", f.MAPE, 0.15)
	near(t, "mean", float64(f.Mean), 350.0/400-1)
	near(t, "KS", f.KS, 0.5)
	if m := c.Metric(TTFT); m.MAPE != 0 || m.KS != 0 {
		t.Errorf("the comparison itself has changed: %+v", m)
	}
	repeat.Judged[1] = false
	c.AddFloor(rec, repeat)
	near(t, "MAPE without the pair that is not judged", c.Metric(TTFT).Floor.MAPE, 0.2)
}

// hundred is a workload of a hundred requests.
func hundred(from int64) *replay.Recording {
	var all []made
	for i := range int64(100) {
		all = append(all, made{from + 10*i, 100, 200, 100, 200})
	}
	rec, _ := record(all...)
	return rec
}

// Runs of one workload have as many requests, due at the same times within a
// millisecond from the first on, as long in all but one of a hundred. Everything
// else is another workload, and a run is no repeat of itself.
func TestSameWorkload(t *testing.T) {
	a := hundred(0)
	same := map[string]func(*replay.Recording){
		"later as a whole":     func(r *replay.Recording) { *r = *hundred(5000) },
		"due within 1 ms":      func(r *replay.Recording) { r.Rows[50].ScheduledAt += milli },
		"sent late":            func(r *replay.Recording) { r.Rows[50].SentAt += 500 * milli },
		"one of another size":  func(r *replay.Recording) { r.Rows[7].OutputTokens = 5 },
		"other words for them": func(r *replay.Recording) { r.Rows[7].RequestID = "another" },
	}
	other := map[string]func(*replay.Recording){
		"one fewer":            func(r *replay.Recording) { r.Rows, r.Judged = r.Rows[1:], r.Judged[1:] },
		"due 2 ms apart":       func(r *replay.Recording) { r.Rows[50].ScheduledAt += 2 * milli },
		"two of another size":  func(r *replay.Recording) { r.Rows[7].OutputTokens, r.Rows[8].EnginePromptTokens = 5, 5 },
		"a closed loop":        func(r *replay.Recording) { r.Closed = true },
		"due times not known":  func(r *replay.Recording) { r.Rows[0].ScheduledAt = traces.None },
		"a faster open loop":   func(r *replay.Recording) { *r = *hundred(0); squeeze(r) },
		"of an other workload": func(r *replay.Recording) { slices.Reverse(r.Rows); r.Rows[0].ScheduledAt += 3000 * milli },
	}
	for name, change := range same {
		b := hundred(0)
		change(b)
		if !SameWorkload(a, b) || !SameWorkload(b, a) {
			t.Errorf("%s: taken for another workload", name)
		}
	}
	for name, change := range other {
		b := hundred(0)
		change(b)
		if SameWorkload(a, b) || SameWorkload(b, a) {
			t.Errorf("%s: taken for the same workload", name)
		}
	}
	if SameWorkload(a, a) {
		t.Error("a run is taken for its own repeat")
	}
	c := &Comparison{Metrics: []Metric{{Name: TTFT}}}
	if c.AddFloor(a, a) || c.Metrics[0].Floor != nil {
		t.Error("a run is its own noise floor")
	}
}

func squeeze(r *replay.Recording) {
	for i := range r.Rows {
		r.Rows[i].ScheduledAt = r.Rows[i].ScheduledAt * 9 / 10
	}
}
