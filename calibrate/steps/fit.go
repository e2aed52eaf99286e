package steps

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"kvfleet/calibrate/fit"
	"kvfleet/sim/latency"
)

// Options say how a fit is judged.
type Options struct {
	Seed  uint64 // of the folds and the draws
	Folds int    // parts of the shapes that are held out in turn; 0 is 10
	Draws int    // bootstrap draws; 0 is 200
	// NoWaves keeps the base file's waves of decode attention, mostly none, instead
	// of looking for them.
	NoWaves bool
	// Progress, if not nil, is told what begins.
	Progress func(what string)
}

func (o Options) validate() error {
	var faults []error
	if o.Folds != 0 && o.Folds < 2 {
		faults = append(faults, fmt.Errorf("folds: got %d, want at least 2, or 0 for 10", o.Folds))
	}
	if o.Draws != 0 && o.Draws < 20 {
		faults = append(faults, fmt.Errorf("draws: got %d, want at least 20, or 0 for 200", o.Draws))
	}
	return errors.Join(faults...)
}

// A Result is a step-time model and how far it is to be trusted.
type Result struct {
	// Params are the base file's with what the log tells in their place.
	Params latency.Params
	// Estimates are one for every constant of the model, in the fleet file's order.
	// A rung goes by its batch size: step.decode_ladder[8].ms. Draw k of all belongs
	// together.
	Estimates []fit.Estimate
	// Regions are the errors by kind of step, at last of all steps. For each fold all
	// numbers are fitted anew; what is chosen (tile, ladder, curve, waves) is chosen
	// once.
	Regions []Region
	// Tiles are the compared sizes of a tile; none without steps that prefill.
	Tiles  []TileSize
	Ladder Ladder
	// Refused says in words what the log cannot separate, and the run that would.
	Refused []string
	// Warnings are doubts about what was fitted; Remarks are what else the log shows.
	Warnings []string
	Remarks  []string
	// Residuals are the relative errors in sample, by shape.
	Residuals []Residual
}

// A Residual is a shape's error: predicted by measured time, less one.
type Residual struct {
	Row     Row // of the shape; Steps is how many it pools
	Error   float64
	HeldOut float64
}

// ErrTooFew is what Fit reports for a log that cannot carry a fit.
var ErrTooFew = errors.New("too few different steps for a fit")

// fewInRegion is how many shapes judge a region.
const fewInRegion = 5

// leastRows is how many rows refuse a fit.
const leastRows = 10

// Fit fits base's step-time model to a log: constants of steps that prefill, the
// decode ladder and the noise. The host's share, cold_start_ms, prefill_mixed_ms,
// small_mixed_ms, decode_compute_share and sustained_ms are not in busy times and
// stay. Times are as the log has them. A step in which every request computes one
// token counts as one that only decodes. Equal arguments give equal results on any
// number of processors. The error is ErrTooFew, ctx's, or of base or options.
func Fit(ctx context.Context, l *Log, base latency.Params, o Options) (*Result, error) {
	if err := errors.Join(base.Validate(), o.validate()); err != nil {
		return nil, err
	}
	if o.Folds == 0 {
		o.Folds = 10
	}
	if o.Draws == 0 {
		o.Draws = 200
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for i := range l.Rows {
		if fault := l.Rows[i].fault("busy"); fault != "" {
			return nil, fmt.Errorf("%s: row %d of %d: %s", l.Path, i+1, len(l.Rows), fault)
		}
	}
	prefill, decode, warnings := l.shapesOf()
	if n := len(l.Rows); n <= leastRows {
		return nil, fmt.Errorf("%s: %d rows, want more than %d: %w", l.Path, n, leastRows, ErrTooFew)
	}
	if groups(prefill)+groups(decode) < 2 {
		return nil, fmt.Errorf("%s: all %d rows have one shape: %w; vary the batch size, the context and the new tokens", l.Path, len(l.Rows), ErrTooFew)
	}
	r := &Result{Warnings: append(append([]string{}, l.Warnings...), warnings...)}
	rng := rand.New(rand.NewPCG(o.Seed, 0x57e95))
	folds := [][]int{foldsOf(prefill, o.Folds, rng), foldsOf(decode, o.Folds, rng)}
	start := base
	if l.Pooled {
		// A traced engine's busy time does not hold them.
		start.PrefillMixedMS, start.SmallMixedMS = 0, 0
	}
	m, err := fitMixed(ctx, prefill, start, folds[0], &o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.Path, err)
	}
	in := mixedErrors(prefill, m.params)
	held := append([]float64{}, m.heldOut...)
	r.Params = m.params
	r.Params.PrefillMixedMS, r.Params.SmallMixedMS = base.PrefillMixedMS, base.SmallMixedMS
	var d *decodeFit
	if len(decode) >= few/2 && groups(decode) > 1 {
		if d, err = fitDecode(ctx, decode, base, m.params.TileTokens, folds[1], &o); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Path, err)
		}
		r.Ladder = d.report
		r.Params.DecodeWave, r.Params.DecodeWaveShare = d.report.Wave, d.report.WaveShare
		r.Params.DecodeLadder = nil
		for i, b := range d.sizes {
			r.Params.DecodeLadder = append(r.Params.DecodeLadder, latency.Rung{Batch: b, MS: d.values.ms[i], ContextMS: d.values.context[i]})
		}
		held = append(held, d.heldOut...)
	} else {
		r.Ladder = Ladder{Chosen: ladderBase}
		for _, rung := range base.DecodeLadder {
			r.Ladder.Sizes = append(r.Ladder.Sizes, rung.Batch)
		}
	}
	full, err := latency.New(r.Params)
	if err != nil {
		return nil, fmt.Errorf("%s: the fitted model is impossible: %w", l.Path, err)
	}
	for i := range decode {
		in = append(in, decodeMS(full, &decode[i].Row)/decode[i].BusyMS-1)
	}
	if d == nil {
		held = append(held, in[len(prefill):]...)
	}
	list := append(append([]shape{}, prefill...), decode...)
	r.Regions = regions(r.Params.TileTokens, list, in, held)
	for i := range list {
		r.Residuals = append(r.Residuals, Residual{list[i].Row, in[i], held[i]})
	}
	r.Tiles = m.tiles
	for _, g := range r.Regions {
		if n := g.HeldOut.Rows; n > 0 && n < fewInRegion {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: too few shapes to judge, %d; held out, the worst is off by %s", g.Name, n, share(g.HeldOut.Worst)))
		}
	}
	if m.solution == nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("shapes that prefill: got %d, want at least %d; their constants are the base file's", len(prefill), few))
	}
	if d == nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("shapes that only decode: got %d, want at least %d that differ; the decode ladder is the base file's", len(decode), few/2))
	}
	e := estimator{Result: r, log: l, base: base, draws: o.Draws, rng: rng}
	e.mixed(m, prefill)
	e.ladder(d, decode)
	e.noise(list, in)
	e.priors()
	e.order()
	e.remarks(list)
	return r, nil
}

// decodeMS is the time of a step that only decodes, ms.
func decodeMS(m *latency.Model, r *Row) float64 {
	ticks, per := m.Decode(r.DecodeRequests, 1, 1)
	return float64(ticks+latency.Ticks(r.DecodeContext)*per) / 1024 / 1e6
}

func groups(list []shape) int {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].group + 1
}

// rowsOf says which rows, in words.
func (l *Log) rowsOf(n int, what string) string {
	name := l.Path[strings.LastIndexByte(l.Path, '/')+1:]
	return fmt.Sprintf("%s: %d %s", name, n, what)
}

func repeated(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func share(v float64) string {
	if math.IsNaN(v) {
		return "n/a"
	}
	return fmt.Sprintf("%.2g%%", 100*v)
}
