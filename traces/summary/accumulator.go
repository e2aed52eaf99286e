package summary

import (
	"errors"
	"fmt"
	"math"
	"time"

	"kvfleet/traces"
)

// Options say which rows count and how they are judged. The zero Options count
// every row and judge by no SLO.
type Options struct {
	// Warmup is the uncounted opening of the run.
	Warmup time.Duration
	// Window is the run's whole length, opening included: rows sent in
	// [Warmup, Window) count, and rates are per second of Window - Warmup. 0
	// means open-ended: rows sent from Warmup on count, and rates are over the
	// time from the first counted send to the last counted end.
	Window time.Duration
	// SLO judges answered rows; its zero value is met by every one.
	SLO traces.SLO
	// Replicas lists the fleet in display order, so that a replica that was
	// given nothing is shown. Replicas met in rows and not listed follow in
	// order of name.
	Replicas []string
	// Expect is about how many rows will count; 0 if unknown. It only saves
	// growing buffers.
	Expect int
}

func (o Options) validate() error {
	var faults []error
	if o.Warmup < 0 {
		faults = append(faults, fmt.Errorf("summary: warmup is %v, want 0 or more", o.Warmup))
	}
	if o.Window != 0 && o.Window <= o.Warmup {
		faults = append(faults, fmt.Errorf("summary: window is %v, want more than the warmup of %v", o.Window, o.Warmup))
	}
	if o.SLO.TTFT < 0 || o.SLO.ITL < 0 {
		faults = append(faults, fmt.Errorf("summary: SLO is ttft %v, itl %v, want 0 or more", o.SLO.TTFT, o.SLO.ITL))
	}
	seen := make(map[string]bool, len(o.Replicas))
	for _, name := range o.Replicas {
		if name == "" || seen[name] {
			faults = append(faults, fmt.Errorf("summary: replica %q is listed twice or has no name", name))
		}
		seen[name] = true
	}
	return errors.Join(faults...)
}

// An Accumulator folds finished rows, in any order, into a Summary. It is not
// safe for concurrent use.
type Accumulator struct {
	opts     Options
	window   int64 // ns; MaxInt64 when open-ended
	counts   counts
	ttft     []float32 // ms, of answered rows
	e2e      []float32 // ms
	itl      []float32 // ms, the median gap of each row that has one
	replicas placements
	reasons  tally
}

// counts are the sums over counted rows. Token sums fit an int64 for any run
// that fits a disk.
type counts struct {
	requests, success, violation, failed, dropped, cancelled, unfinished int64
	outside, warmup, decisions, spills, placed, reroutes, rerouted       int64
	firstSent, lastSent, lastEnd, maxLag                                 int64
	known, prompt, cached                                                int64 // rows and tokens the engine spoke of
	compared, matched, over, under                                       int64 // rows and tokens of belief against fact
	ended, endedTokens                                                   int64 // answers that ended in the window, whenever sent
}

// New returns an empty Accumulator, or every fault of the options at once.
func New(o Options) (*Accumulator, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	a := &Accumulator{opts: o, window: int64(o.Window)}
	if o.Window == 0 {
		a.window = math.MaxInt64
	}
	a.counts.firstSent, a.counts.lastSent, a.counts.lastEnd = math.MaxInt64, traces.None, traces.None
	a.ttft = make([]float32, 0, o.Expect)
	a.e2e = make([]float32, 0, o.Expect)
	a.itl = make([]float32, 0, o.Expect)
	a.replicas = newPlacements(o.Replicas)
	return a, nil
}

// Add folds in one finished row. It keeps nothing of r but its replica and
// reason names.
func (a *Accumulator) Add(r *traces.Row) {
	c := &a.counts
	if a.opts.Window > 0 {
		a.addEnd(r)
	}
	// A request that was never sent belongs where it was received or due.
	sent := r.SentAt
	if sent == traces.None {
		sent = r.ReceivedAt
	}
	if sent == traces.None {
		sent = r.ScheduledAt
	}
	if r.Warmup || sent != traces.None && sent < int64(a.opts.Warmup) {
		c.warmup++
		return
	}
	if sent == traces.None || sent >= a.window {
		c.outside++
		return
	}
	c.requests++
	if a.opts.Window == 0 {
		a.addEnd(r)
	}
	c.firstSent, c.lastSent = min(c.firstSent, sent), max(c.lastSent, sent)
	c.lastEnd = max(c.lastEnd, r.EndedAt)
	if r.ScheduledAt != traces.None {
		c.maxLag = max(c.maxLag, sent-r.ScheduledAt)
	}
	a.addOutcome(r)
	a.addDecision(r)
	a.addEngine(r)
}

// addEnd counts an answer that came to its end in the window; open-ended, it is
// given counted rows only.
func (a *Accumulator) addEnd(r *traces.Row) {
	if r.Outcome != traces.Success || r.EndedAt == traces.None || r.EndedAt < int64(a.opts.Warmup) || r.EndedAt >= a.window {
		return
	}
	a.counts.ended++
	a.counts.endedTokens += max(0, r.OutputTokens)
}

func (a *Accumulator) addOutcome(r *traces.Row) {
	c := &a.counts
	switch r.Outcome {
	case traces.Success:
		c.success++
		if !a.opts.SLO.Meets(r) {
			c.violation++
		}
		a.addLatency(r)
	case traces.Failed:
		c.failed++
	case traces.Dropped:
		c.dropped++
	case traces.Cancelled:
		c.cancelled++
	default:
		c.unfinished++
	}
}

func (a *Accumulator) addLatency(r *traces.Row) {
	if ttft := r.TTFT(); ttft != traces.None {
		a.ttft = append(a.ttft, millis(ttft))
	}
	if e2e := r.E2E(); e2e != traces.None {
		a.e2e = append(a.e2e, millis(e2e))
	}
	if r.ITLP50 != traces.None {
		a.itl = append(a.itl, millis(r.ITLP50))
	}
}

func millis(ns int64) float32 { return float32(float64(ns) / 1e6) }

func (a *Accumulator) addDecision(r *traces.Row) {
	c := &a.counts
	c.reroutes += int64(r.Reroutes)
	if r.Reroutes > 0 {
		c.rerouted++
	}
	if r.Reason != "" {
		c.decisions++
		if a.reasons.add(r.Reason) {
			c.spills++
		}
	}
}

func (a *Accumulator) addEngine(r *traces.Row) {
	c := &a.counts
	var p *placement
	if r.Replica != "" {
		c.placed++
		p = a.replicas.of(r.Replica)
		p.Requests++
		if r.Outcome == traces.Success {
			p.Success++
			if ttft := r.TTFT(); ttft != traces.None {
				p.ttft = append(p.ttft, millis(ttft))
			}
		}
	}
	if r.CachedTokens == traces.None {
		return
	}
	if r.EnginePromptTokens > 0 {
		c.known++
		c.prompt += r.EnginePromptTokens
		c.cached += r.CachedTokens
		if p != nil {
			p.PromptTokens += r.EnginePromptTokens
			p.CachedTokens += r.CachedTokens
		}
	}
	if r.MatchTokens != traces.None {
		over, under := max(0, r.MatchTokens-r.CachedTokens), max(0, r.CachedTokens-r.MatchTokens)
		c.compared++
		c.matched += r.MatchTokens
		c.over += over
		c.under += under
		if p != nil {
			p.OverPredicted += over
			p.UnderPredicted += under
		}
	}
}
