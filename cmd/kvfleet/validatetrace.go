package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"kvfleet/calibrate/judge"
	"kvfleet/calibrate/replay"
	"kvfleet/policies"
	"kvfleet/sim"
	"kvfleet/traces/seed"
)

// A traceCheck holds a fleet file against captured traces.
type traceCheck struct {
	fleet   string
	traces  []string
	repeats []string
	policy  string
	after   time.Duration
	out     string
	seed    uint64

	maxTTFTMAPE, maxE2EMAPE, maxTTFTMean, maxE2EMean, minCachedEqual float64
}

func (o *traceCheck) declare(f *flags) {
	texts(f, &o.traces, "FILE", "trace", "a captured trace, repeatable: its own requests are simulated on --fleet and compared one by one")
	one(f, &o.fleet, named("NAME|FILE", "a fleet or a fleet file"), "fleet", "the fleet that simulates a trace", defaultFleet)
	p := words()
	p.kind = "NAME[:k=v,...]"
	one(f, &o.policy, p, "policy", "trace: places the requests whose replica the trace does not name; otherwise the trace's own policy, or least_outstanding", "")
	texts(f, &o.repeats, "FILE", "repeat", "trace: a second run of the same workload, whose distance is the noise floor; traces that repeat each other are found")
	one(f, &o.after, positiveTime(), "after", "trace: simulate all, but compare only what was sent from this time on", "")
	one(f, &o.out, files(), "out", "trace: one line a request, CSV", "")
	one(f, &o.seed, seeds(), "seed", "trace: seed of the simulation", "1")
	one(f, &o.maxTTFTMAPE, positive(), "max-ttft-mape", "trace: limit on the mean over requests of the relative TTFT error", "")
	one(f, &o.maxE2EMAPE, positive(), "max-e2e-mape", "trace: limit on that of the end-to-end time", "")
	one(f, &o.maxTTFTMean, positive(), "max-ttft-mean", "trace: limit on the error of the mean TTFT, either way", "")
	one(f, &o.maxE2EMean, positive(), "max-e2e-mean", "trace: limit on that of the mean end-to-end time", "")
	one(f, &o.minCachedEqual, positive(), "min-cached-equal", "trace: least share of requests with the very same cached tokens", "")
}

// names are the flags that only traces need.
func (o *traceCheck) names() []string {
	return []string{"fleet", "policy", "repeat", "after", "out", "seed", "max-ttft-mape", "max-e2e-mape", "max-ttft-mean", "max-e2e-mean", "min-cached-equal"}
}

// run simulates every trace and prints how far off the simulation is.
func (a *app) validateTraces(ctx context.Context, f *flags, o *traceCheck, asJSON bool) error {
	f.output("out", o.out, csvForm())
	if o.out != "" && len(o.traces) > 1 {
		f.fault("--out: has one line a request of one trace, got %d traces", len(o.traces))
	}
	if o.policy != "" {
		if _, err := policies.ParseChoice(o.policy); err != nil {
			f.fault("--policy: %w", err)
		}
	}
	fleet, err := loadFleet(o.fleet)
	if err != nil {
		f.fault("--fleet: %w", err)
	}
	if err := f.err(); err != nil {
		return err
	}
	var opened, repeats []*replay.Recording
	for _, path := range o.traces {
		r, err := a.openRecording(path, fleet.Fleet)
		if err != nil {
			return err
		}
		opened = append(opened, r)
	}
	for _, path := range o.repeats {
		r, err := a.openRecording(path, fleet.Fleet)
		if err != nil {
			return err
		}
		repeats = append(repeats, r)
	}
	var all []*judge.Comparison
	var broken []error
	for _, r := range opened {
		c, out, err := o.compare(ctx, fleet.Fleet, r, append(opened, repeats...))
		if err != nil {
			return readError(r.Path, err)
		}
		all = append(all, c)
		broken = append(broken, o.check(c)...)
		if o.out != "" {
			if err := writeOut(o.out, func(w io.Writer) error { return judge.WriteRequests(w, r, out) }); err != nil {
				return err
			}
		}
	}
	if asJSON {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		err = e.Encode(all)
	} else {
		for i, c := range all {
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			if _, err = a.stdout.WriteString(c.Table()); err != nil {
				break
			}
		}
	}
	if len(broken) > 0 {
		broken = append(broken, fmt.Errorf("validate: %s broken", plural(int64(len(broken)), "limit")))
	}
	return errors.Join(append([]error{err}, broken...)...)
}

// openRecording reads a trace and tells what was left out of it.
func (a *app) openRecording(path string, fleet *sim.Fleet) (*replay.Recording, error) {
	if err := noSteps(path); err != nil {
		return nil, err
	}
	r, err := replay.Open(path)
	if err != nil {
		return nil, err
	}
	if err := r.FitTo(fleet); err != nil {
		return nil, err
	}
	for i, e := range r.Excluded {
		if i == 5 {
			a.talk("warning: %s: and %d more rows", path, len(r.Excluded)-i)
			break
		}
		a.talk("warning: %s: %v: left out", path, e)
	}
	for _, text := range r.Remarks {
		a.talk("warning: %s: %s", path, text)
	}
	return r, nil
}

func (o *traceCheck) compare(ctx context.Context, fleet *sim.Fleet, r *replay.Recording, others []*replay.Recording) (*judge.Comparison, []replay.Outcome, error) {
	out, err := r.Simulate(ctx, fleet, o.policy, seed.Seed(o.seed))
	if err != nil {
		return nil, nil, err
	}
	var keep func(int) bool
	if o.after > 0 {
		keep = func(i int) bool { return r.Rows[i].SentAt >= int64(o.after) }
	}
	c := judge.Compare(r.Path, r, out, keep)
	if c.Requests == 0 {
		return nil, nil, errors.New("no request can be compared: none succeeded after the warm-up with a known first token")
	}
	for _, other := range others {
		if c.AddFloor(r, other) {
			break
		}
	}
	return c, out, nil
}

// check says which limits a comparison breaks.
func (o *traceCheck) check(c *judge.Comparison) []error {
	var broken []error
	limit := func(what string, got, most float64) {
		if most > 0 && !(got <= most) {
			broken = append(broken, fmt.Errorf("%s: %s is %.4f, at most %g allowed", c.Name, what, got, most))
		}
	}
	abs := func(x float64) float64 { return max(x, -x) }
	if m := c.Metric(judge.TTFT); m != nil {
		limit("TTFT MAPE", m.MAPE, o.maxTTFTMAPE)
		limit("error of the mean TTFT", abs(m.MeanError()), o.maxTTFTMean)
	}
	if m := c.Metric(judge.E2E); m != nil {
		limit("end-to-end MAPE", m.MAPE, o.maxE2EMAPE)
		limit("error of the mean end-to-end time", abs(m.MeanError()), o.maxE2EMean)
	}
	if o.minCachedEqual > 0 && !(float64(c.CachedEqual) >= o.minCachedEqual) {
		broken = append(broken, fmt.Errorf("%s: cached tokens are equal in %.4f of the requests, at least %g wanted", c.Name, float64(c.CachedEqual), o.minCachedEqual))
	}
	return broken
}
