package heat

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvfleet/calibrate/fit"
	"kvfleet/sim"
)

// A Residual is how far the replay is from one card's wholly loaded bins.
type Residual struct {
	GPU      int    // in the telemetry
	Quantity string // temp_c, sm_mhz or power_w
	Unit     string
	Bins     int
	Median   float64 // of the absolute differences
	P90      float64
}

// Result is a fit.
type Result struct {
	// Thermal is the base with what the telemetry tells of its cards.
	Thermal *sim.Thermal
	// Estimates are the parameters, with cards[*] in the paths of those that all cards
	// share. Intervals are for the priors as they are held: how far those may be off is
	// in their How.
	Estimates []fit.Estimate
	Residuals []Residual
	// Cost is the sum of squared differences per bin, in units of what a bin is
	// good for: 1 K, 30 MHz, 5 W and all of the throttled share when loaded, less
	// where bins straddle or rest.
	Cost     float64
	Evals    int // replays
	Warnings []string
}

// Draws are the bootstrap draws by path of the fleet file, card by card, as a fleet
// file's draws have them; the outer index of the values is the draw.
func (r *Result) Draws() (paths []string, values [][]float64) {
	for _, e := range r.Estimates {
		for i := range r.Thermal.Cards {
			path := strings.Replace(e.Path, "[*]", fmt.Sprintf("[%d]", i), 1)
			if e.Draws == nil || path == e.Path && i > 0 {
				continue
			}
			paths = append(paths, path)
			for k, v := range e.Draws {
				if k == len(values) {
					values = append(values, nil)
				}
				values[k] = append(values[k], v)
			}
		}
	}
	return paths, values
}

// wide is the half-width of a 95% interval, as a share of the value, from which
// the telemetry is held to say nothing.
const wide = 0.5

// Fit searches for the constants of the base's cards whose replay of the
// telemetry's loads is nearest to it. While it searches it holds the ladder's top
// at the boost clock that idle cards hold just after work, which the power limit
// keeps working cards under; the result's top is that of work on a cool card.
// Equal inputs give equal results on any number of processors. Errors are those of
// the options, the base or the context.
func Fit(ctx context.Context, t *Telemetry, base *sim.Thermal, o Options) (*Result, error) {
	if err := o.check(t, base); err != nil {
		return nil, err
	}
	o = o.filled(len(base.Cards))
	f := &fitter{t: t, base: base, o: o, result: &Result{}}
	f.read = t.settings(base.Cards[0])
	held := f.held()
	f.coupled = len(t.Alike) > 1 && !flat(held.coupling)
	f.search = newSearch(t, held, f.coupled)
	if err := f.solve(ctx); err != nil {
		return nil, err
	}
	if err := f.dropUntold(ctx); err != nil {
		return nil, err
	}
	if err := f.refit(ctx); err != nil {
		return nil, err
	}
	f.report()
	return f.result, nil
}

// A fitter is a fit under way.
type fitter struct {
	t        *Telemetry
	base     *sim.Thermal
	o        Options
	read     settings
	coupled  bool
	search   *search
	solution *fit.Solution
	away     [][]float64 // of nearly as good ends from the solution
	draws    [][]float64 // of the search's slots
	beliefs  []fit.Estimate
	result   *Result
}

// solve searches from every start. A staircase has many ends: those nearly as good as
// the best are kept, since their scatter is what the search itself does not know.
func (f *fitter) solve(ctx context.Context) error {
	starts := append([][]float64{nil}, f.search.starts(f.o.Starts-1, f.o.Seed)...)
	var ends []*fit.Solution
	for k, x := range starts {
		p := f.search.problem(x)
		if f.o.Progress != nil {
			p.Progress = func(_, round int, cost float64) { f.o.Progress(k, round, cost) }
		}
		s, err := f.from(ctx, p)
		if err != nil {
			return err
		}
		ends = append(ends, s)
		if f.solution == nil || f.t.cost(s.Residuals) < f.t.cost(f.solution.Residuals) {
			f.solution = s
		}
	}
	// The truth is expected to cost more than the best by its share of slots in
	// residuals: no end within that is refuted.
	nearly := 1 + float64(len(f.search.slots))/float64(len(f.solution.Residuals))
	for _, s := range ends {
		if f.t.cost(s.Residuals) <= nearly*f.t.cost(f.solution.Residuals) {
			away := make([]float64, len(s.X))
			for j := range away {
				away[j] = s.X[j] - f.solution.X[j]
			}
			f.away = append(f.away, away)
		}
	}
	return nil
}

// from searches, and on from there with wider and narrower differences in turn: the
// steps of the staircase differ in size, and each ends another search early.
func (f *fitter) from(ctx context.Context, p *fit.Problem) (*fit.Solution, error) {
	var s *fit.Solution
	for _, widths := range []float64{1, 2, 0.5, 0.2, 1} {
		if s != nil {
			p = f.search.problem(s.X)
		}
		for j := range p.Parameters {
			p.Parameters[j].Width *= widths
		}
		var err error
		if s, err = p.Solve(ctx); err != nil {
			return nil, fmt.Errorf("heat: %s: %w", f.t.Path, err)
		}
		f.result.Evals += s.Evals
	}
	return s, nil
}

// dropUntold draws, and for as long as there is a slot of which the telemetry tells
// too little, holds the worst at its card's constant and searches on.
func (f *fitter) dropUntold(ctx context.Context) error {
	for {
		f.draw()
		worst, at := wide, -1
		for j, told := range f.solution.Judge() {
			s := f.search.slots[j]
			if s.get == nil || s.Name == "static_w" {
				continue
			}
			low, high := fit.Interval(column(f.draws, j))
			half := (high - low) / 2 / math.Abs(f.solution.X[j])
			if !told.Identified() {
				half = math.Inf(1) // the rows do not move it, so neither do the draws
			}
			if half > worst {
				worst, at = half, j
			}
		}
		if at < 0 {
			return nil
		}
		f.drop(at)
		var err error
		if f.solution, err = f.from(ctx, f.search.problem(slices.Delete(f.solution.X, at, at+1))); err != nil {
			return err
		}
	}
}

// draw takes bootstrap draws of the slots, each about one of the ends.
func (f *fitter) draw() {
	f.draws = f.solution.Draws(f.o.Draws, stream(f.o.Seed, "draws"))
	rng := stream(f.o.Seed, "ends")
	for _, d := range f.draws {
		for j, away := range f.away[rng.IntN(len(f.away))] {
			d[j] = min(max(d[j]+away, f.search.slots[j].Low), f.search.slots[j].High)
		}
	}
}

// refit searches with each belief moved by what is not known of it, to say what the
// telemetry makes of that. Intervals are for the beliefs as they are held.
func (f *fitter) refit(ctx context.Context) error {
	cost := f.t.cost(f.solution.Residuals)
	for _, b := range f.search.beliefs(f.coupled) {
		e := fit.Estimate{Path: b.path, Unit: b.unit, Value: b.Start, Low: b.Start, High: b.Start, Verdict: fit.Prior, Rows: "none", Advice: b.advice}
		var to, by [2]float64
		for k := range to {
			to[k] = b.Start + float64(2*k-1)*b.PriorSD
			moved := *f.search
			x := &trial{setup: moved.held}
			x.cards = slices.Clone(x.cards)
			b.put(x, to[k])
			moved.held = x.setup
			s, err := moved.problem(f.solution.X).Solve(ctx)
			if err != nil {
				return fmt.Errorf("heat: %s: %w", f.t.Path, err)
			}
			f.result.Evals += s.Evals
			by[k] = 100 * (f.t.cost(s.Residuals)/cost - 1)
		}
		e.How = fmt.Sprintf("held at the base's; with %.4g the best cost moves by %+.1f%%, with %.4g by %+.1f%%", to[0], by[0], to[1], by[1])
		if best := min(by[0], by[1]); best < -10 {
			f.warn("%s: the telemetry prefers another value than the base's %.4g: %s", b.path, b.Start, e.How)
		}
		f.beliefs = append(f.beliefs, e)
	}
	return nil
}

func (f *fitter) warn(format string, args ...any) {
	f.result.Warnings = append(f.result.Warnings, fmt.Sprintf(format, args...))
}

func column(draws [][]float64, j int) []float64 {
	out := make([]float64, len(draws))
	for k, d := range draws {
		out[k] = d[j]
	}
	return out
}
