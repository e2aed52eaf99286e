package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"kvfleet/sim"
	"kvfleet/traces"
	"kvfleet/traces/convert"
)

// convertOptions say what of a trace is taken.
type convertOptions struct {
	limit     int
	sessions  []string
	rateScale float64
	spreadBin time.Duration
	stagger   time.Duration
	maxErrors int
}

func (o *convertOptions) declare(f *flags) {
	one(f, &o.limit, counts(1), "limit", "trace: take the first rows only", "")
	texts(f, &o.sessions, "ID", "only-session", "trace: take this session only, repeatable")
	one(f, &o.rateScale, positive(), "rate-scale", "trace: multiply the arrival rate", "")
	one(f, &o.spreadBin, positiveTime(), "spread-bin", "trace: spread arrivals of one time evenly over this long", "")
	one(f, &o.stagger, positiveTime(), "stagger", "trace: start each Weka session this long after the one before", "")
	one(f, &o.maxErrors, signed(), "max-errors", "trace: unreadable rows to skip and count before giving up; -1 is no limit", "0")
}

func (o *convertOptions) names() []string {
	return []string{"limit", "only-session", "rate-scale", "spread-bin", "stagger", "max-errors"}
}

// options are for traces whose rows without arrival times come at the rate.
func (o *convertOptions) options(rate float64) convert.Options {
	return convert.Options{
		Limit: o.limit, Sessions: o.sessions, RateScale: o.rateScale, SpreadBin: o.spreadBin,
		Rate: rate, Stagger: o.stagger, MaxErrors: o.maxErrors,
	}
}

// replay makes the job a trace's, which readTrace then reads.
func (o *runOptions) replay(f *flags, j *job) {
	l := &o.cell.load
	if f.given("window") {
		j.cfg.Window = l.window
	}
	if f.given("warmup") {
		j.cfg.Warmup = l.warmup
	}
	if j.cfg.Window > 0 && j.cfg.Warmup >= j.cfg.Window {
		f.fault("--warmup: got %v of a window of %v, want it to leave something to count", j.cfg.Warmup, j.cfg.Window)
	}
}

// readTrace reads the job's prompts.
func (o *runOptions) readTrace(j *job) error {
	t, err := convert.Open(o.trace, o.convert.options(o.cell.rate))
	if err != nil {
		return err
	}
	prompts, report, err := sim.PromptsFromRows(t.Rows())
	if cut := new(traces.TruncatedError); errors.As(err, &cut) {
		return fmt.Errorf("%w; `kvfleet trace convert` saves the whole rows", err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.trace, err)
	}
	j.cfg.Trace = prompts
	v := readVersions()
	passed := t.Report()
	evidence := append(t.Meta.Evidence, passed.Remarks()...)
	if report.Distinct == report.Rows {
		j.warnings = append(j.warnings, "the trace does not say which prompts share a prefix: every prompt counts as distinct, and the hit rate says nothing")
	}
	j.warnings = append(j.warnings, passed.Remarks()...)
	cell := j.meta.Cell
	cell.Driver = sim.DriverTrace
	j.meta = traces.Meta{
		Producer: "kvfleet " + v.KVFleet, Commit: v.Commit, Seed: o.cell.load.seed, Clock: traces.ClockVirtual,
		Workload: t.Meta.Workload, SLO: j.fleet.SLO.Limit(), Fleet: j.fleet.meta(), Cell: cell, Evidence: evidence,
	}
	return nil
}

// runID names a run by what went into it, so that equal runs have equal names.
func runID(m *traces.Meta) string {
	h := sha256.New()
	for _, kv := range m.KeyValues() {
		fmt.Fprintf(h, "%q=%q\n", kv.Key, kv.Value)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
