package requests

import (
	"context"
	"fmt"
	"slices"

	"kvfleet/calibrate/fit"
	"kvfleet/calibrate/replay"
	"kvfleet/sim"
)

// effort is how many further points the last search starts from, scattered about
// where it ended, and how many evaluations a simplex search may add: more where
// they are cheap.
func (p *problem) effort() (starts, polishing int) {
	rows := 0
	for _, t := range p.traces {
		rows += len(t.Rows)
	}
	return min(max(6000/rows, 2), 6), min(max(600_000/rows, 200), 1500)
}

// scatter searches from points about a solution and returns the best end,
// polished: a staircase has many places that look like the bottom.
func (p *problem) scatter(ctx context.Context, s *fit.Solution, o Options) (*fit.Solution, error) {
	rng := o.Seed.Stream("calibrate/starts")
	q := *p
	starts, polishing := p.effort()
	for range starts {
		x := slices.Clone(s.X)
		for j, k := range p.knobs {
			x[j] += 2 * k.width * rng.NormFloat64()
		}
		q.starts = append(q.starts, x)
	}
	q.starts = append(q.starts, s.X)
	q.polish = polishing
	return q.solve(ctx, "requests, from scattered points", o.Progress)
}

// settling is how often the scales are taken anew before the last search.
const settling = 2

// triedRounds bounds the search of a hypothesis: enough to tell it from others.
const triedRounds = 12

// refitRounds bounds the search of a fit without some of its rows, which starts
// where the one with them ended.
const refitRounds = 6

// Refit fits again without some rows, from where the fit ended. without says
// which.
func (r *Result) Refit(ctx context.Context, without func(trace, row int) bool) (*sim.Fleet, error) {
	p := *r.problem
	p.start, p.rounds = r.solution.X, refitRounds
	p.targets = slices.DeleteFunc(slices.Clone(p.targets), func(t target) bool { return without(t.trace, t.row) })
	if len(p.targets) < 2*len(p.knobs) {
		return nil, fmt.Errorf("calibrate: %d measured times are left of %d, too few for %d constants", len(p.targets), len(r.problem.targets), len(p.knobs))
	}
	s, err := p.solve(ctx, "requests, without some rows", nil)
	if err != nil {
		return nil, err
	}
	return p.fleet(s.X), nil
}

// A hypothesis is what is tried besides constants: whether scheduling runs
// ahead, and how long the load of cut traces went on.
type hypothesis struct {
	async bool
	spans float64
	p     *problem
	s     *fit.Solution
}

// odd is what the hypothesis' loss is multiplied by: what is unusual must fit
// better by more than searches of one hypothesis differ. A trace is usually cut in
// the middle, and an engine schedules as its fleet file says.
func (h *hypothesis) odd(base *sim.Fleet, late bool) float64 {
	odd := 1.0
	if late && h.spans != usualSpans {
		odd *= 1.25
	}
	if h.async != base.Engine.Async {
		odd *= 1.1
	}
	return odd
}

// usualSpans is for how many spans of a cut trace its load went on, when the trace
// does not say.
const usualSpans = 1

func (h *hypothesis) String() string {
	text := "scheduling in step"
	if h.async {
		text = "scheduling one step ahead"
	}
	if h.spans > 0 {
		text += fmt.Sprintf(", arrivals going on for %g spans of the trace", h.spans)
	}
	return text
}

func hypotheses(base *sim.Fleet, all []Trace, o Options) []*hypothesis {
	var out []*hypothesis
	late := anyLate(all)
	for _, async := range []bool{base.Engine.Async, !base.Engine.Async} {
		if o.Async && async != base.Engine.Async {
			continue
		}
		out = append(out, &hypothesis{async: async})
		if late {
			for _, spans := range []float64{0.5, usualSpans, 2} {
				out = append(out, &hypothesis{async: async, spans: spans})
			}
		}
	}
	return out
}

func anyLate(all []Trace) bool {
	return slices.ContainsFunc(all, func(t Trace) bool { return isLate(t.Recording) })
}

func isLate(r *replay.Recording) bool { return !r.Closed && r.Late() > mostlyLate }

func continued(all []Trace, spans float64) []Trace {
	all = slices.Clone(all)
	for i := range all {
		if isLate(all[i].Recording) {
			all[i].Recording = all[i].Continued(spans)
		}
	}
	return all
}

// Beside is a recording with the load beside it that the fit found likely: what
// went on after the recording was cut.
func (r *Result) Beside(rec *replay.Recording) *replay.Recording {
	if !isLate(rec) {
		return rec
	}
	return rec.Continued(r.spans)
}

// at is where the search starts.
func (p *problem) at() []float64 {
	if p.start != nil {
		return p.start
	}
	x := make([]float64, len(p.knobs))
	for j, k := range p.knobs {
		x[j] = k.get(p.base)
	}
	return x
}

// solve searches with expected scales, then with those that the first search
// leaves.
func (p *problem) solve(ctx context.Context, stage string, progress func(string, int, float64)) (*fit.Solution, error) {
	problem := &fit.Problem{Residuals: p.residuals, Huber: 3, Rounds: p.rounds}
	for i := range p.targets {
		problem.Blocks = append(problem.Blocks, p.targets[i].block)
		problem.Groups = append(problem.Groups, p.targets[i].group)
	}
	problem.Weights = p.weights()
	for _, k := range p.knobs {
		problem.Parameters = append(problem.Parameters, fit.Parameter{
			Name: k.path, Start: k.get(p.base), Low: k.low, High: k.high, Width: k.width, PriorSD: k.prior, PriorMean: k.mean,
		})
	}
	problem.Starts, problem.Polish = p.starts, p.polish
	if problem.Starts == nil {
		problem.Starts = [][]float64{p.at()}
	}
	if progress != nil {
		problem.Progress = func(_, round int, cost float64) { progress(stage, round, cost) }
	}
	s, err := problem.Solve(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}
