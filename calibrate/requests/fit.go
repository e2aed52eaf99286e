package requests

import (
	"context"
	"fmt"
	"math"
	"slices"

	"kvfleet/calibrate/fit"
	"kvfleet/calibrate/replay"
	"kvfleet/sim"
	"kvfleet/traces"
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

// expected is the relative error that a metric of one request is good for before
// any fit: two runs of one workload differ by about that. They are replaced by
// what the first fit leaves.
const (
	expectedTTFT   = 0.07
	expectedDecode = 0.01
)

// A target is one measured time: of one row, or the mean of some. A closed loop
// of several users is chaotic: who waits for whom is another matter in every run,
// and only means say something.
type target struct {
	trace, row int
	rows       []int // whose mean it is; nil is row alone
	metric     metric
	measured   float64 // ns
	origin     int64   // of a progress
	block      int     // rows that stand or fall together
	group      int     // rows that the same constants move alike
	regime     regime
}

// A regime is rows of one trace and metric that the model is right or wrong about
// together, and that scatter alike: prompts that had as much to compute.
type regime struct {
	trace, work int
	metric      metric
}

type metric uint8

const (
	metricTTFT metric = iota
	metricDecode
	metricITL
	metricMeanTTFT // of blockRows requests in a row
	metricMeanDecode
	metricProgress // of a closed loop: when the rows had ended on average, since the start
	metrics
)

// problem is the search's view of the traces.
type problem struct {
	base    *sim.Fleet
	knobs   []knob
	traces  []Trace
	targets []target
	scale   map[regime]float64
	seed    seed.Seed
	start   []float64 // of the search; nil is the base's
	rounds  int       // of the search; 0 is fit's own
	starts  [][]float64
	polish  int
}

// mostlyLate is the share of late rows from which leaving them out would leave
// too little: the load that ran beside them is guessed instead.
const mostlyLate = 0.2

// blockRows is how many rows in a row of time stand or fall together in the
// bootstrap: a queue's error lasts.
const blockRows = 20

func newProblem(base *sim.Fleet, knobs []knob, all []Trace, s seed.Seed) *problem {
	p := &problem{base: base, knobs: knobs, traces: all, seed: s, scale: map[regime]float64{}}
	block := 0
	for t, trace := range all {
		if trace.Closed && trace.Users() > 1 {
			block = p.means(t, block, trace.Rows[len(trace.Rows)-1].SentAt, true) + 1
			continue
		}
		served := trace.Served()
		if trace.Late() > mostlyLate {
			served = math.MaxInt64 // how the load went on is part of the search
		}
		p.means(t, block, served, false)
		n := 0
		for i := range trace.Rows {
			r := &trace.Rows[i]
			if !trace.Judged[i] || r.EndedAt == traces.None {
				continue
			}
			if n++; n > blockRows {
				n = 1
				block++
			}
			add := func(m metric, v int64) {
				if v > 0 {
					p.targets = append(p.targets, target{trace: t, row: i, metric: m, measured: float64(v), block: block})
				}
			}
			add(metricTTFT, r.TTFT())
			if r.EndedAt == traces.None || r.EndedAt > served || r.OutputTokens < 2 {
				continue // what ran beside it later may not be in the trace
			}
			add(metricDecode, r.EndedAt-r.FirstTokenAt)
			if r.ITLP50 != traces.None {
				add(metricITL, r.ITLP50)
			}
		}
		block++
	}
	p.group()
	for i := range p.targets {
		t := &p.targets[i]
		p.scale[t.regime] = expectedDecode
		if t.metric == metricTTFT || t.metric == metricMeanTTFT {
			p.scale[t.regime] = expectedTTFT
		}
	}
	return p
}

// means adds the mean times of every blockRows requests in a row that ended by the
// time served; of a closed loop, with its quietest gaps. It returns the last
// block's number.
func (p *problem) means(t, block int, served int64, closed bool) int {
	trace := &p.traces[t]
	var rows []int
	flush := func() {
		ttft, decode, whole := 0.0, 0.0, 0
		for _, i := range rows {
			r := &trace.Rows[i]
			ttft += float64(r.TTFT()) / float64(len(rows))
			decode += float64(r.EndedAt-r.FirstTokenAt) / float64(len(rows))
			if r.EndedAt <= served && r.OutputTokens > 1 {
				whole++
			}
		}
		add := func(m metric, v float64) {
			p.targets = append(p.targets, target{trace: t, row: rows[0], rows: rows, metric: m, measured: v, block: block, origin: trace.Rows[0].SentAt})
		}
		add(metricMeanTTFT, ttft)
		if whole == len(rows) {
			add(metricMeanDecode, decode)
		}
		if closed {
			end := 0.0
			for _, i := range rows {
				end += float64(trace.Rows[i].EndedAt-trace.Rows[0].SentAt) / float64(len(rows))
			}
			add(metricProgress, end)
			if quiet := quietGap(rows, func(i int) float64 { return float64(trace.Rows[i].ITLP50) }); quiet > 0 {
				add(metricITL, quiet)
			}
		}
		block++
		rows = nil
	}
	for i := range trace.Rows {
		r := &trace.Rows[i]
		if !trace.Judged[i] || r.EndedAt == traces.None || closed && (r.EndedAt > served || r.OutputTokens < 2) {
			continue
		}
		if rows = append(rows, i); len(rows) == blockRows {
			flush()
		}
	}
	if len(rows) > blockRows/2 {
		flush()
	}
	return block
}

// fleet is the base with the knobs at x.
func (p *problem) fleet(x []float64) *sim.Fleet {
	f := p.base.Copy()
	for j, k := range p.knobs {
		k.set(f, x[j])
	}
	f.Step.NoiseShare = 0 // common random numbers are none at all
	return f
}

// simulate runs every trace; nil if the fleet cannot.
func (p *problem) simulate(x []float64) [][]replay.Outcome {
	f := p.fleet(x)
	if f.Validate() != nil {
		return nil
	}
	all := make([][]replay.Outcome, len(p.traces))
	for t := range p.traces {
		out, err := p.traces[t].Simulate(context.Background(), f, p.traces[t].Policy, p.seed)
		if err != nil {
			return nil
		}
		all[t] = out
	}
	return all
}

// missed is the residual of a request that was measured and not served in
// simulation: far off.
const missed = 5.0

// residuals are relative errors in units of their scale.
func (p *problem) residuals(x []float64) []float64 {
	all := p.simulate(x)
	if all == nil {
		return nil
	}
	r := make([]float64, len(p.targets))
	for k := range p.targets {
		t := &p.targets[k]
		r[k] = t.error(all[t.trace]) / p.scale[t.regime]
	}
	return r
}

// error is the logarithm of simulated over measured, which a queue twice as long
// and one half as long are equally far from.
func (t *target) error(out []replay.Outcome) float64 {
	v := t.of(&out[t.row])
	if t.rows != nil && t.metric == metricITL {
		v = quietGap(t.rows, func(i int) float64 { return t.of(&out[i]) })
	} else if t.rows != nil {
		v = 0
		for _, i := range t.rows {
			v += max(0, t.of(&out[i])) / float64(len(t.rows))
		}
	}
	if v <= 0 {
		return missed
	}
	return math.Log(v / t.measured)
}

// quietGap is the lowest decile of the requests' median gaps: of those that
// mostly ran beside answers and not beside prompts. 0 if that is not known.
func quietGap(rows []int, gap func(i int) float64) float64 {
	var all []float64
	for _, i := range rows {
		if g := gap(i); g > 0 {
			all = append(all, g)
		}
	}
	if len(all) < len(rows)/2 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/10]
}

// of is the target's time of one simulated request, ns; 0 or less if there is
// none.
func (t *target) of(o *replay.Outcome) float64 {
	switch {
	case o.TTFT == traces.None:
		return 0
	case t.metric == metricTTFT, t.metric == metricMeanTTFT:
		return float64(o.TTFT)
	case t.metric == metricProgress:
		return float64(o.Ended - t.origin)
	case t.metric == metricDecode, t.metric == metricMeanDecode:
		return float64(o.E2E - o.TTFT)
	}
	return float64(o.ITLP50)
}

// rescale sets each regime's scale to the spread of its errors about the median of
// each group: what the rows scatter by, whatever the model gets wrong of them all.
func (p *problem) rescale(r []float64) {
	type key struct {
		regime
		group int
	}
	by := map[key][]float64{}
	for k := range p.targets {
		t := &p.targets[k]
		g := key{t.regime, t.group}
		by[g] = append(by[g], r[k]*p.scale[t.regime])
	}
	spread := map[regime][]float64{}
	for g, e := range by {
		slices.Sort(e)
		middle := e[len(e)/2]
		for _, v := range e {
			spread[g.regime] = append(spread[g.regime], math.Abs(v-middle))
		}
	}
	scale := map[regime]float64{}
	for g, e := range spread {
		slices.Sort(e)
		scale[g] = min(max(1.4826*e[len(e)/2], leastSpread), mostSpread)
	}
	p.scale = scale
}

// mostRows is how many rows of one regime count in full. The model's form is off
// by a share of what the rows scatter by, and that error all of them have in
// common, however many they are: n rows weigh as 1/(1/n + 1/mostRows).
const mostRows = 25

func (p *problem) weights() []float64 {
	n := map[regime]float64{}
	for i := range p.targets {
		n[p.targets[i].regime]++
	}
	w := make([]float64, len(p.targets))
	for i := range p.targets {
		w[i] = 1 / (1 + n[p.targets[i].regime]/mostRows)
	}
	return w
}

// leastSpread and mostSpread bound what a metric is taken to be good for: below
// the first, the model's own form is what is off; above the second, the base is.
const (
	leastSpread = 0.01
	mostSpread  = 0.3
)

// A Result is a fitted fleet and what is known of its constants.
type Result struct {
	Fleet     *sim.Fleet
	Estimates []fit.Estimate
	// Tried is the hypotheses and the mean loss each was left with; Chosen the one
	// of the least.
	Tried          []Tried
	Chosen         string
	Targets, Evals int
	Cost           float64 // mean loss at the end, in units of what the targets are good for

	problem  *problem
	solution *fit.Solution
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
	result := &Result{}
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
		if best == nil || h.s.Cost < best.s.Cost {
			best = h
		}
	}
	result.Targets = len(best.p.targets)
	result.Chosen = best.String()
	return result, result.finish(ctx, best, o)
}

// finish searches again with the scales that the chosen hypothesis left. Constants
// that the rows do not tell go back to the base's value, unless a prior holds
// them near it.
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
			if judgement.Identified() || k.prior > 0 {
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

// Draws counts the bootstrap draws.
func (r *Result) Draws() int { return len(r.draws) }

// Apply sets what the requests told to the k-th draw, on a fleet whose step times
// are those of the base or a draw of them.
func (r *Result) Apply(k int, f *sim.Fleet) {
	for j, knob := range r.problem.knobs {
		knob.set(f, r.draws[k][j])
	}
}

// A hypothesis is what is tried besides constants: whether scheduling runs
// ahead, and how long the load of cut traces went on.
type hypothesis struct {
	async bool
	spans float64
	p     *problem
	s     *fit.Solution
}

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
	late := slices.ContainsFunc(all, func(t Trace) bool { return !t.Closed && t.Late() > mostlyLate })
	for _, async := range []bool{base.Engine.Async, !base.Engine.Async} {
		if o.Async && async != base.Engine.Async {
			continue
		}
		out = append(out, &hypothesis{async: async})
		if late {
			for _, spans := range []float64{0.5, 1, 2} {
				out = append(out, &hypothesis{async: async, spans: spans})
			}
		}
	}
	return out
}

func continued(all []Trace, spans float64) []Trace {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Late() > mostlyLate {
			all[i].Recording = all[i].Continued(spans)
		}
	}
	return all
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
