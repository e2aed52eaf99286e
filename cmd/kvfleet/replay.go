package main

import (
	"errors"
	"fmt"
	"slices"
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

// change says whether other rows, or rows at other times, come of the trace than
// it has.
func (o *convertOptions) change() bool {
	return o.limit > 0 || len(o.sessions) > 0 || o.rateScale > 0 || o.spreadBin > 0 || o.stagger > 0
}

// options are for traces whose rows without arrival times come at the rate.
func (o *convertOptions) options(rate float64) convert.Options {
	return convert.Options{
		Limit: o.limit, Sessions: o.sessions, RateScale: o.rateScale, SpreadBin: o.spreadBin,
		Rate: rate, Stagger: o.stagger, MaxErrors: o.maxErrors,
	}
}

// sessionsMet tells which of the sessions asked for a trace holds.
type sessionsMet struct {
	asked []string
	seen  map[string]bool
	whole bool // the trace was read to its end
}

func (o *convertOptions) meet() *sessionsMet {
	return &sessionsMet{asked: o.sessions, seen: map[string]bool{}, whole: o.limit == 0}
}

func (m *sessionsMet) see(session string) {
	if len(m.asked) > 0 {
		m.seen[session] = true
	}
}

// read says how a pass over the trace ended. That no row is of the sessions asked
// for is an error of the pass, but a reading to the end.
func (m *sessionsMet) read(t *convert.Trace, err error) {
	report := t.Report()
	none := report.Yielded == 0 && report.Filtered > 0
	if err != nil && !none {
		m.whole = false
	}
	if none {
		m.whole = true
	}
}

// missing names the sessions asked for that the trace does not hold.
func (m *sessionsMet) missing(path string) error {
	var all []error
	for _, session := range m.asked {
		if m.whole && !m.seen[session] {
			all = append(all, fmt.Errorf("%s: --only-session %s: no such session", path, session))
		}
	}
	return errors.Join(all...)
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
	if err := noSteps(o.trace); err != nil {
		return err
	}
	t, err := convert.Open(o.trace, o.convert.options(o.cell.rate))
	if err == nil {
		err = t.NeedTimes()
	}
	if err != nil {
		return err
	}
	prompts, report, err := sim.PromptsFromRows(t.Rows())
	met := o.convert.meet()
	for i := range prompts {
		met.see(prompts[i].Session)
	}
	met.read(t, err)
	if err := met.missing(o.trace); err != nil {
		return err
	}
	if cut := new(traces.TruncatedError); errors.As(err, &cut) {
		return fmt.Errorf("%w; `kvfleet trace convert` saves the whole rows", err)
	}
	if err != nil {
		return readError(o.trace, err)
	}
	j.cfg.Trace = prompts
	v := readVersions()
	passed := t.Report()
	evidence := append(t.Meta.Evidence, passed.Remarks()...)
	if report.Distinct == report.Rows {
		j.warnings = append(j.warnings, "the trace does not say which prompts share a prefix: every prompt counts as distinct, and the hit rate says nothing")
	}
	j.warnings = append(j.warnings, passed.Remarks()...)
	if text := closedLoop(t.Meta.Cell); text != "" {
		j.aloud = append(j.aloud, text)
		evidence = append(evidence, text)
	}
	if text := unnamed(j.meta.Cell.Policy, prompts); text != "" {
		j.warnings = append(j.warnings, text)
	}
	if report.Shift > 0 {
		j.warnings = append(j.warnings, fmt.Sprintf("the first request was due %v before the trace's origin: every time is moved by that", report.Shift))
	}
	cell := j.meta.Cell
	cell.Driver = sim.DriverTrace
	j.meta = traces.Meta{
		Producer: "kvfleet " + v.KVFleet, Commit: v.Commit, Seed: o.cell.load.seed, Clock: traces.ClockVirtual,
		Workload: t.Meta.Workload, SLO: j.fleet.SLO.Limit(), Fleet: j.fleet.meta(), Cell: cell, Evidence: evidence,
	}
	return nil
}

// closedLoop says what a replay of closed-loop rows is not.
func closedLoop(recorded traces.Cell) string {
	if recorded.Driver != sim.DriverClosed {
		return ""
	}
	users := "users"
	if recorded.Load > 0 {
		users = plural(int64(recorded.Load), "user")
	}
	return "recorded in a closed loop of " + users + "; it is replayed at the times it was sent, whatever the answers do"
}

// bySession are the policies that place by session id alone.
var bySession = [...]string{"session_affinity", "bounded_session_affinity"}

// unnamed says that a policy that places by session id is not given any.
func unnamed(policy string, prompts []sim.Prompt) string {
	if !slices.Contains(bySession[:], policy) {
		return ""
	}
	without := 0
	for i := range prompts {
		if prompts[i].Session == "" {
			without++
		}
	}
	if without == 0 {
		return ""
	}
	if without == len(prompts) {
		return "the trace names no sessions: " + policy + " places like round_robin"
	}
	return fmt.Sprintf("%s of %s without a session id: %s places them like round_robin", grouped(int64(without)), plural(int64(len(prompts)), "request"), policy)
}
