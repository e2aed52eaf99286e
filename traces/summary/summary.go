package summary

import (
	"math"
	"slices"
	"time"

	"kvfleet/traces"
)

// A Summary is one cell's figures over its counted rows. Figures that are not
// known are NaN.
type Summary struct {
	// Counted is the length of time the rates are over.
	Counted time.Duration
	SLO     traces.SLO

	// Requests is the counted rows. It is the sum of Success, Failed, Dropped,
	// Cancelled and Unfinished.
	Requests int64
	// Success counts answered requests, whether or not they met the SLO.
	Success int64
	// SLOViolation counts the answered requests that missed the SLO. It is a part
	// of Success.
	SLOViolation int64
	Failed       int64
	Dropped      int64
	Cancelled    int64
	// Unfinished counts requests sent in the window that never ended. A run that
	// drains has none.
	Unfinished int64
	// OutsideWarmup and OutsideWindow count rows left out: sent in the opening or
	// flagged as warm-up; sent after the window or at no known time.
	OutsideWarmup, OutsideWindow int64

	GoodputRPS float64 // sent in the window and answered within the SLO, per second
	// ThroughputRPS is answers that ended in the window, whenever sent, per second
	// of it: what the fleet got done, which under overload is less than what was
	// sent. It is no whole of which goodput is a part: that is Attainment.
	ThroughputRPS float64
	// Attainment is the share of all counted requests answered within the SLO:
	// failed, dropped, cancelled and unfinished ones are in the denominator.
	Attainment     float64
	OutputTokensPS float64 // tokens of the answers of ThroughputRPS, per second

	// Times are milliseconds, from sent, over answered rows.
	TTFTP50, TTFTP90, TTFTP99 float64
	// ITLP50 and ITLP99 are percentiles over rows of each row's own median gap
	// between tokens.
	ITLP50, ITLP99 float64
	E2EP50, E2EP99 float64
	// MaxScheduleLag is the largest time a request was sent after it was due, in
	// ms.
	MaxScheduleLag float64

	// HitRate is cached tokens over prompt tokens, as the engines counted them.
	HitRate float64
	// RecomputedPerRequest is the prompt tokens an engine computed per request
	// whose cached tokens are known.
	RecomputedPerRequest float64
	BusiestShare         float64 // of placed requests, on the replica given most
	SpillShare           float64 // of decisions, those with a SPILL_ reason
	Reroutes             int64   // placements after the first
	Rerouted             int64   // requests placed more than once

	// OverPredicted and UnderPredicted are tokens per request by which the
	// router's match was above, or below, what the engine found cached. They are
	// over rows where both are known and are never netted.
	OverPredicted, UnderPredicted float64
	// HonouredShare is the share of the tokens the router claimed that the
	// engine really held.
	HonouredShare float64

	// IdleBeforeEvictP90 is the 90th percentile, in seconds, of how long evicted
	// KV blocks had lain unused. Rows do not hold it: whoever ran the engines
	// sets it.
	IdleBeforeEvictP90 float64

	Placement []Placement
	Decisions []Decision
}

// Rows is the number of rows added, counted or not.
func (s *Summary) Rows() int64 { return s.Requests + s.OutsideWarmup + s.OutsideWindow }

// Good is the number of requests answered within the SLO.
func (s *Summary) Good() int64 { return s.Success - s.SLOViolation }

// Summary reduces what was added so far. More rows may be added afterwards.
func (a *Accumulator) Summary() Summary {
	c := &a.counts
	s := Summary{
		Counted: a.counted(), SLO: a.opts.SLO,
		Requests: c.requests, Success: c.success, SLOViolation: c.violation,
		Failed: c.failed, Dropped: c.dropped, Cancelled: c.cancelled, Unfinished: c.unfinished,
		OutsideWarmup: c.warmup, OutsideWindow: c.outside,
		Attainment:     ratio(c.success-c.violation, c.requests),
		MaxScheduleLag: float64(c.maxLag) / 1e6,
		HitRate:        ratio(c.cached, c.prompt), RecomputedPerRequest: ratio(c.prompt-c.cached, c.known),
		SpillShare: ratio(c.spills, c.decisions),
		Reroutes:   c.reroutes, Rerouted: c.rerouted,
		OverPredicted: ratio(c.over, c.compared), UnderPredicted: ratio(c.under, c.compared),
		HonouredShare:      ratio(c.matched-c.over, c.matched),
		IdleBeforeEvictP90: math.NaN(),
		Placement:          a.replicas.list(c.placed), Decisions: a.reasons.list(c.decisions),
	}
	seconds := s.Counted.Seconds()
	s.GoodputRPS = perSecond(c.success-c.violation, seconds)
	s.ThroughputRPS = perSecond(c.ended, seconds)
	s.OutputTokensPS = perSecond(c.endedTokens, seconds)
	for _, values := range [][]float32{a.ttft, a.itl, a.e2e} {
		slices.Sort(values)
	}
	s.TTFTP50, s.TTFTP90, s.TTFTP99 = traces.Quantile(a.ttft, 0.5), traces.Quantile(a.ttft, 0.9), traces.Quantile(a.ttft, 0.99)
	s.ITLP50, s.ITLP99 = traces.Quantile(a.itl, 0.5), traces.Quantile(a.itl, 0.99)
	s.E2EP50, s.E2EP99 = traces.Quantile(a.e2e, 0.5), traces.Quantile(a.e2e, 0.99)
	var busiest int64
	for i := range s.Placement {
		busiest = max(busiest, s.Placement[i].Requests)
	}
	s.BusiestShare = ratio(busiest, c.placed)
	return s
}

// counted is the time the rates are over: the stated window, or from the first
// counted send to the last counted end.
func (a *Accumulator) counted() time.Duration {
	if a.opts.Window > 0 {
		return a.opts.Window - a.opts.Warmup
	}
	if a.counts.requests == 0 {
		return 0
	}
	return time.Duration(max(0, a.counts.lastEnd-a.counts.firstSent))
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}

func perSecond(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return math.NaN()
	}
	return float64(n) / seconds
}
