package steps

import (
	"context"
	"fmt"
	"math"
	"slices"

	"kvfleet/calibrate/fit"
	"kvfleet/sim/latency"
)

// tiles are the tile sizes that are compared, tokens.
var tiles = []int{16, 32, 64, 128, 256}

// A constant is one constant of steps that prefill.
type constant struct {
	path, unit string
	at         func(*latency.Params) *float64
	advice     string // the run that would tell it
}

func constants() []constant {
	return []constant{
		{"step.weights_ms", "ms", func(p *latency.Params) *float64 { return &p.WeightsMS },
			"add steps of a few new tokens, and of one token more than a multiple of the tile"},
		{"step.dense_token_ms", "ms per token", func(p *latency.Params) *float64 { return &p.DenseTokenMS },
			"add steps that prefill, from a tile to the token budget"},
		{"step.pair_ms", "ms per query-key pair", func(p *latency.Params) *float64 { return &p.PairMS },
			"add later chunks of long prompts: the same new tokens over 2 and 4 times the context"},
		{"step.mixed_decode_ms", "ms per decoding request", func(p *latency.Params) *float64 { return &p.MixedDecodeMS },
			"add steps that prefill while many requests with short contexts decode"},
		{"step.mixed_context_ms", "ms per token of context", func(p *latency.Params) *float64 { return &p.MixedContextMS },
			"add steps that prefill while a few requests with long contexts decode"},
		{"step.sustained_share", "share", func(p *latency.Params) *float64 { return &p.SustainedShare },
			"add steps that prefill from a hundred tokens to the whole token budget"},
		{"step.eager_ms", "ms", func(p *latency.Params) *float64 { return &p.EagerMS },
			"add steps that prefill less than two tiles"},
	}
}

// A TileSize is one candidate for tile_tokens and its error on the steps that
// prefill, in sample.
type TileSize struct {
	Tokens   int
	InSample Errors
	// Score is the mean absolute error weighted by steps, each counting up to 0.3.
	Score float64
}

// A mixedFit is the constants of steps that prefill.
type mixedFit struct {
	params   latency.Params
	free     []int // fitted constants
	solution *fit.Solution
	judged   []fit.Judgement // of free
	fixed    map[int]fit.Judgement
	tiles    []TileSize
	alike    []int // sizes of a tile that fit as well
	heldOut  []float64
}

// predictMixed is the time of a step that prefills, ms.
func predictMixed(m *latency.Model, s *shape) float64 {
	return float64(m.Mixed(s.chunks, s.DecodeRequests, s.DecodeContext, 1)) / 1024 / 1e6
}

// model builds one for steps that prefill; nil is out of bounds.
func model(p latency.Params) *latency.Model {
	p.DecodeLadder = []latency.Rung{{Batch: 1, MS: 1, ContextMS: 1}}
	m, err := latency.New(p)
	if err != nil {
		return nil
	}
	return m
}

func mixedErrors(list []shape, p latency.Params) []float64 {
	m := model(p)
	if m == nil {
		return nil
	}
	out := make([]float64, len(list))
	for i := range list {
		out[i] = predictMixed(m, &list[i])/list[i].BusyMS - 1
	}
	return out
}

// expectedError is a step's relative error that counts as one.
const expectedError = 0.01

// problem is the search for the free constants around the scale of each; p holds
// the others. Errors count in full up to 4 spreads: the few small steps, which are
// all that tell the constant costs, err by more than the many long ones.
func problem(list []shape, p latency.Params, scale []float64, free []int) *fit.Problem {
	all := constants()
	q := &fit.Problem{Rounds: 60, Huber: 4}
	for _, j := range free {
		low, high := 0.0, 6*scale[j]
		switch all[j].path {
		case "step.sustained_share":
			high = 0.5
		case "step.weights_ms", "step.dense_token_ms", "step.pair_ms":
			low = scale[j] / 1000
		}
		start := min(max(*all[j].at(&p), low), high)
		q.Parameters = append(q.Parameters, fit.Parameter{Name: all[j].path, Start: start, Low: low, High: high, Width: scale[j] / 50})
	}
	q.Residuals = func(x []float64) []float64 {
		p := p
		for i, j := range free {
			*all[j].at(&p) = x[i]
		}
		errs := mixedErrors(list, p)
		for i := range errs {
			errs[i] *= list[i].weight / expectedError
		}
		return errs
	}
	return q
}

// startOf guesses the constants from a linear fit: another GPU is faster or slower
// than the base file's by some factor, and from there the search goes on.
func startOf(list []shape, base latency.Params) (p latency.Params, scale []float64) {
	p = base
	var ratios []float64
	m := model(base)
	for i := range list {
		ratios = append(ratios, list[i].BusyMS/predictMixed(m, &list[i]))
	}
	ratio := median(ratios)
	for j, c := range constants() {
		v := c.at(&p)
		if c.unit != "share" {
			*v *= ratio
		}
		scale = append(scale, *v)
		if scale[j] <= 0 {
			scale[j] = *constants()[1].at(&p) // as a token's dense work
		}
	}
	return p, scale
}

// few is how many shapes at least are fitted.
const few = 8

// fitMixed finds the constants of steps that prefill, and the tile. Constants that
// the steps do not tell keep the base file's value, the least known first.
func fitMixed(ctx context.Context, list []shape, base latency.Params, folds []int, o *Options) (*mixedFit, error) {
	f := &mixedFit{params: base, fixed: map[int]fit.Judgement{}, heldOut: make([]float64, len(list))}
	all := constants()
	if len(list) < few {
		for j, c := range all {
			f.fixed[j] = fit.Judgement{Name: c.path, Left: 1}
		}
		if len(list) > 0 {
			f.heldOut = mixedErrors(list, base)
		}
		return f, nil
	}
	start, scale := startOf(list, base)
	for j := range all {
		if told(list, all[j].path) {
			f.free = append(f.free, j)
		} else {
			f.fixed[j] = fit.Judgement{Name: all[j].path, Left: 1}
			*all[j].at(&start) = *all[j].at(&base)
		}
	}
	o.Progress("tile sizes")
	if err := f.chooseTile(ctx, list, start, scale); err != nil {
		return nil, err
	}
	start.TileTokens = f.params.TileTokens
	for {
		o.Progress("steps that prefill")
		s, err := problem(list, start, scale, f.free).Solve(ctx)
		if err != nil {
			return nil, fmt.Errorf("steps that prefill: %w", err)
		}
		f.solution, f.judged = s, s.Judge()
		worst := -1
		for i, g := range f.judged {
			if !g.Identified() && (worst < 0 || g.Left > f.judged[worst].Left) {
				worst = i
			}
		}
		if worst < 0 {
			break
		}
		j := f.free[worst]
		f.fixed[j] = f.judged[worst]
		*all[j].at(&start) = *all[j].at(&base)
		f.free = slices.Delete(f.free, worst, worst+1)
		if len(f.free) == 0 {
			break
		}
	}
	f.params = start
	for i, j := range f.free {
		*all[j].at(&f.params) = f.solution.X[i]
	}
	o.Progress("steps that prefill, held out")
	fails := make([]error, o.Folds)
	fit.Each(o.Folds, func(fold int) {
		train := without(list, folds, fold)
		p := f.params
		if len(f.free) > 0 && len(train) > len(f.free) {
			s, err := problem(train, start, scale, f.free).Solve(ctx)
			if fails[fold] = err; err != nil {
				return
			}
			for i, j := range f.free {
				*all[j].at(&p) = s.X[i]
			}
		}
		errs := mixedErrors(list, p)
		for i := range list {
			if folds[i] == fold {
				f.heldOut[i] = errs[i]
			}
		}
	})
	for _, err := range fails {
		if err != nil {
			return nil, fmt.Errorf("steps that prefill, held out: %w", err)
		}
	}
	return f, nil
}

// told says whether any step has what a constant costs.
func told(list []shape, path string) bool {
	return slices.ContainsFunc(list, func(s shape) bool {
		return s.DecodeRequests > 0 || path != "step.mixed_decode_ms" && path != "step.mixed_context_ms"
	})
}

// chooseTile compares tile sizes by the mean absolute error, weighted by steps. The
// base file's stays unless another is clearly better.
func (f *mixedFit) chooseTile(ctx context.Context, list []shape, start latency.Params, scale []float64) error {
	own := start.TileTokens
	sizes := append([]int{own}, slices.DeleteFunc(slices.Clone(tiles), func(n int) bool { return n == own })...)
	f.tiles = make([]TileSize, len(sizes))
	fails := make([]error, len(sizes))
	fit.Each(len(sizes), func(i int) {
		p := start
		p.TileTokens = sizes[i]
		s, err := problem(list, p, scale, f.free).Solve(ctx)
		if fails[i] = err; err != nil {
			return
		}
		errs, weights, sum := slices.Clone(s.Residuals), 0.0, 0.0
		for k := range errs {
			errs[k] *= expectedError / list[k].weight
			sum += min(math.Abs(errs[k]), 0.3) * list[k].weight
			weights += list[k].weight
		}
		f.tiles[i] = TileSize{sizes[i], errorsOf(errs), sum / weights}
	})
	for _, err := range fails {
		if err != nil {
			return fmt.Errorf("tile sizes: %w", err)
		}
	}
	best := 0
	for i := range f.tiles {
		if f.tiles[i].Score < f.tiles[best].Score {
			best = i
		}
	}
	alike := func(i int) bool { return nats(f.tiles[best].Score, f.tiles[i].Score, len(list)) < found }
	if alike(0) {
		best = 0
	}
	for i := range f.tiles {
		if i != best && alike(i) {
			f.alike = append(f.alike, sizes[i])
		}
	}
	slices.Sort(f.alike)
	f.params.TileTokens = sizes[best]
	slices.SortFunc(f.tiles, func(a, b TileSize) int { return a.Tokens - b.Tokens })
	return nil
}
