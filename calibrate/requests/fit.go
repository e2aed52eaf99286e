package requests

import (
	"context"
	"fmt"

	"kvfleet/calibrate/fit"
	"kvfleet/calibrate/replay"
	"kvfleet/sim"
	"kvfleet/traces/seed"
)

// A Trace is a recording and how it is simulated.
type Trace struct {
	*replay.Recording
	Policy string // as replay.Recording.Simulate takes it
}

// Options of a fit. The zero value fits everything with the defaults.
type Options struct {
	Seed seed.Seed
	// Steps says that the base's step times are measured: one scale on all of them
	// is fitted, and what a step log does not show.
	Steps bool
	// Async says that the base states whether scheduling runs ahead; otherwise both
	// are tried.
	Async bool
	// StepSD is the standard deviation that a step log leaves of a constant, by its
	// path: these move along, about what the log says.
	StepSD map[string]float64
	// Ambient lets the room's temperature move, about the base's: telemetry does not
	// tell it, and requests of a warm fleet beside those of a cold card may.
	Ambient bool
	// Draws is how many bootstrap draws intervals rest on; 0 is 200.
	Draws    int
	Progress func(stage string, round int, cost float64)
}

// A Result is a fitted fleet and what is known of its constants.
type Result struct {
	Fleet     *sim.Fleet
	Estimates []fit.Estimate
	// Tried is the hypotheses and the mean loss each was left with; Chosen the one
	// of the least, an unusual one only if it is less by a margin.
	Tried          []Tried
	Chosen         string
	Targets, Evals int
	Cost           float64 // mean loss at the end, in units of what the targets are good for

	problem  *problem
	solution *fit.Solution
	spans    float64 // for which the load of cut traces went on
	draws    [][]float64
}

// Tried is a hypothesis and its mean loss after a search.
type Tried struct {
	Hypothesis string
	Cost       float64
}

// Fit moves the base's constants until the traces' requests agree.
func Fit(ctx context.Context, base *sim.Fleet, all []Trace, o Options) (*Result, error) {
	if o.Draws == 0 {
		o.Draws = 200
	}
	knobs := engineKnobs(base)
	if o.Steps {
		knobs = append(append(jointKnobs(base, o.StepSD), scaleKnob(base)), hostKnobs(base)...)
	}
	knobs = append(knobs, frontEndKnobs(base)...)
	if o.Ambient && base.Thermal != nil {
		knobs = append(knobs, ambientKnob())
	}
	var best *hypothesis
	var scale map[regime]float64
	result, late := &Result{}, anyLate(all)
	for _, h := range hypotheses(base, all, o) {
		b := base.Copy()
		b.Engine.Async = h.async
		h.p = newProblem(b, knobs, continued(all, h.spans), o.Seed)
		if len(h.p.targets) < 5*len(knobs) {
			return nil, fmt.Errorf("calibrate: %d measured times are too few for %d constants; want at least %d", len(h.p.targets), len(knobs), 5*len(knobs))
		}
		var err error
		// Costs compare in one scale, whatever the hypothesis.
		if scale == nil {
			if r := h.p.residuals(h.p.at()); r != nil {
				h.p.rescale(r)
			}
			scale = h.p.scale
		}
		h.p.scale, h.p.rounds = scale, triedRounds
		if h.s, err = h.p.solve(ctx, h.String(), o.Progress); err != nil {
			return nil, err
		}
		result.Evals += h.s.Evals
		result.Tried = append(result.Tried, Tried{h.String(), h.s.Cost})
		if best == nil || h.s.Cost*h.odd(base, late) < best.s.Cost*best.odd(base, late) {
			best = h
		}
	}
	result.Targets = len(best.p.targets)
	result.Chosen, result.spans = best.String(), best.spans
	return result, result.finish(ctx, best, o)
}

// finish searches again with the scales that the chosen hypothesis left. What the
// rows hardly tell stays in the search, held by its prior or by nothing moving it:
// put back to a base that is only a guess, it would spoil the rest. A stretch of
// measured steps that they do not tell is none.
func (r *Result) finish(ctx context.Context, best *hypothesis, o Options) error {
	p, s := best.p, best.s
	var err error
	for {
		p.start, p.rounds = s.X, 0
		if residuals := p.residuals(s.X); residuals != nil {
			p.rescale(residuals)
		}
		if s, err = p.solve(ctx, "requests, "+best.String()+", again", o.Progress); err != nil {
			return err
		}
		r.Evals += s.Evals
		kept, x := p.knobs[:0:0], s.X[:0:0]
		for j, judgement := range s.Judge() {
			k := p.knobs[j]
			if judgement.Identified() || !k.optional {
				kept, x = append(kept, k), append(x, s.X[j])
				continue
			}
			r.Estimates = append(r.Estimates, k.untold(p.base, judgement))
		}
		if len(kept) == len(p.knobs) {
			break
		}
		p.knobs, s = kept, &fit.Solution{X: x}
	}
	for range settling {
		p.start = s.X
		p.rescale(p.residuals(s.X))
		if s, err = p.solve(ctx, "requests, settling", o.Progress); err != nil {
			return err
		}
		r.Evals += s.Evals
	}
	if s, err = p.scatter(ctx, s, o); err != nil {
		return err
	}
	r.Evals += s.Evals
	r.problem, r.solution = p, s
	r.Cost = s.Cost
	r.draws = s.Draws(o.Draws, o.Seed.Stream("calibrate/draws"))
	r.Fleet = p.fleet(s.X)
	r.Fleet.Step.NoiseShare = p.base.Step.NoiseShare
	r.told(p, s)
	return nil
}

// Draws counts the bootstrap draws.
func (r *Result) Draws() int { return len(r.draws) }

// Apply sets what the requests told to the k-th draw, on a fleet whose step times
// are those of the base or a draw of them.
func (r *Result) Apply(k int, f *sim.Fleet) {
	for j, knob := range r.problem.knobs {
		knob.set(f, r.draws[k][j])
	}
}

// untold is the estimate of a constant that the rows do not tell.
func (k *knob) untold(base *sim.Fleet, j fit.Judgement) fit.Estimate {
	v := k.get(base)
	e := fit.Estimate{Path: k.path, Unit: k.unit, Value: v, Low: v, High: v, Verdict: fit.Prior, Advice: k.advice,
		How: "kept from the base: " + j.String()}
	if len(j.Partners) > 0 {
		e.Verdict = fit.Refused
	}
	return e
}

// told adds the estimates of what was searched. What the rows hardly tell is
// marked a prior: it stayed near the base's value, and was free to move so that
// others need not make up for it.
func (r *Result) told(p *problem, s *fit.Solution) {
	for j, judgement := range s.Judge() {
		k := p.knobs[j]
		e := fit.Estimate{Path: k.path, Unit: k.unit, Value: s.X[j], How: "replay of the requests through the simulated fleet"}
		if k.joint {
			e.How += ", about what was known before"
		}
		if !judgement.Identified() && !k.joint {
			e.Verdict, e.Advice = fit.Prior, k.advice
			e.How = "near the base's value, which the rows hardly move: " + judgement.String()
			if len(judgement.Partners) > 0 {
				e.Verdict = fit.Refused
			}
		}
		for d := range r.draws {
			e.Draws = append(e.Draws, r.draws[d][j])
		}
		e.Low, e.High = fit.Interval(e.Draws)
		r.Estimates = append(r.Estimates, e)
	}
}
