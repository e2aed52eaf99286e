package convert

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Options say what of a trace is taken and how. The zero Options take all of it,
// as recorded, and stop at the first row that cannot be read.
type Options struct {
	// Limit is the most rows to yield; 0 means all.
	Limit int
	// Sessions keeps only the rows of these sessions; empty keeps all.
	Sessions []string
	// RateScale multiplies the arrival rate: every time between arrivals is
	// divided by it. 0 means 1.
	RateScale float64
	// SpreadBin spreads rows that share one arrival time evenly over this much
	// time from it. Mooncake's conversation trace has its arrivals in bins of 3 s,
	// which would otherwise arrive as bursts. 0 means as recorded.
	SpreadBin time.Duration
	// Rate gives a trace without arrival times even ones, in requests per
	// second; 0 leaves them unknown. It is an error for any other trace.
	Rate float64
	// Stagger starts the k-th of several Weka sessions, in order of file name,
	// k*Stagger after the first. 0 starts all at once.
	Stagger time.Duration
	// MaxErrors is how many unreadable rows are skipped, counted and named before
	// one ends the pass: 0 skips none, a negative number any.
	MaxErrors int
}

func (o *Options) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("convert: "+format, args...)) }
	if o.Limit < 0 {
		fault("limit is %d rows, want 0 or more", o.Limit)
	}
	if !(o.RateScale >= 0) || math.IsInf(o.RateScale, 0) {
		fault("rate scale is %v, want a finite number, 0 or more", o.RateScale)
	}
	if !(o.Rate >= 0) || math.IsInf(o.Rate, 0) {
		fault("rate is %v req/s, want a finite number, 0 or more", o.Rate)
	}
	if o.SpreadBin < 0 {
		fault("spread bin is %v, want 0 or more", o.SpreadBin)
	}
	if o.Stagger < 0 {
		fault("stagger is %v, want 0 or more", o.Stagger)
	}
	return errors.Join(faults...)
}

// validateFor checks the options against the format of the trace at path.
func (o *Options) validateFor(path string, f Format) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fileError(path, fmt.Errorf(format, args...)))
	}
	if f == VidurLengths && o.Rate == 0 && (o.RateScale != 0 || o.SpreadBin != 0) {
		fault("%s traces have no arrival times to scale or spread; give a rate", f)
	}
	if f != VidurLengths && o.Rate != 0 {
		fault("%s traces have arrival times of their own; scale them instead of giving a rate", f)
	}
	if f != Weka && o.Stagger != 0 {
		fault("only Weka sessions can be staggered, this one is in %s form", f)
	}
	if len(o.Sessions) > 0 && (f == Mooncake || f == Azure || f == Vidur || f == VidurLengths || f == KvrouteProbe || f == LLMServingSim) {
		fault("%s traces have no sessions to choose from", f)
	}
	if f.finished() && (o.SpreadBin != 0 || o.RateScale != 0) {
		fault("rows in %s form are finished: their times cannot be spread or scaled", f)
	}
	return errors.Join(faults...)
}
