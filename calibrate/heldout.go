package calibrate

import (
	"fmt"
	"path/filepath"

	"kvfleet/calibrate/judge"
	"kvfleet/calibrate/replay"
	"kvfleet/traces/seed"
)

// judge compares the calibrated fleet with what it was fitted to and with what it
// was not.
func (r *run) judge() error {
	for i, rec := range r.Recordings {
		r.o.Progress("judging", rec.Path)
		if err := rec.FitTo(r.Fleet); err != nil {
			return err
		}
		whole := rec
		if r.Requests != nil && i < len(r.Inputs.Traces) {
			whole = r.Requests.Beside(rec)
		}
		out, err := whole.Simulate(r.ctx, r.Fleet, "", seed.Seed(r.o.Seed))
		if err != nil {
			return err
		}
		r.Outcomes = append(r.Outcomes, out)
		c := judge.Compare(filepath.Base(rec.Path), rec, out, nil)
		r.floor(c, rec)
		if i < len(r.Inputs.Traces) {
			r.InSample = append(r.InSample, c)
		} else {
			r.Held = append(r.Held, c)
		}
	}
	if len(r.Inputs.Hold) > 0 || r.o.Folds < 2 || r.Requests == nil {
		return nil
	}
	return r.folds()
}

// floor looks for a second run of a recording's workload.
func (r *run) floor(c *judge.Comparison, rec *replay.Recording) {
	for _, other := range r.Recordings {
		if c.AddFloor(rec, other) {
			return
		}
	}
}

// folds predicts each part of the traces' time from a fit to the other parts.
func (r *run) folds() error {
	outs := make([][]replay.Outcome, len(r.traces))
	for t, trace := range r.traces {
		outs[t] = make([]replay.Outcome, len(trace.Rows))
	}
	for k := range r.o.Folds {
		r.o.Progress("judging", fmt.Sprintf("part %d of %d predicted from the others", k+1, r.o.Folds))
		without := func(t, row int) bool { return r.fold(t, row) == k }
		f, err := r.Requests.Refit(r.ctx, without)
		if err != nil {
			return err
		}
		for t, trace := range r.traces {
			out, err := r.Requests.Beside(trace.Recording).Simulate(r.ctx, f, "", seed.Seed(r.o.Seed))
			if err != nil {
				return err
			}
			for i := range out {
				if r.fold(t, i) == k {
					outs[t][i] = out[i]
				}
			}
		}
	}
	for t, trace := range r.traces {
		c := judge.Compare(fmt.Sprintf("%s, %d parts of its time", filepath.Base(trace.Path), r.o.Folds), trace.Recording, outs[t], nil)
		r.floor(c, trace.Recording)
		r.Held = append(r.Held, c)
	}
	return nil
}

// fold is the part of time that a row is of.
func (r *run) fold(t, row int) int {
	return row * r.o.Folds / len(r.traces[t].Rows)
}
