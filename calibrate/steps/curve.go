package steps

import (
	"math"
	"math/rand/v2"
	"slices"

	"kvfleet/sim/latency"
)

// What rungs are expected to differ by, as shares: a rung's time from the curve
// over batch sizes, its cost per token of context from all rungs'.
const (
	rungSD    = 0.05
	contextSD = 0.15
	tied      = 1e-4
)

// mmaRows is the rows by which a partial tile of matrix products grows.
const mmaRows = 16

// A curve is the decode ladder as an expectation over captured sizes, and what
// each measured rung differs from it.
type curve struct {
	sizes  []int
	tile   int     // rows of a tile of the matrix products; 0: no expectation, rungs are joined by lines
	given  float64 // cost per token of context that is not fitted; 0 is fitted
	rows   []int   // by rung
	at     []int   // by rung, its place among the unknowns; -1 is no rows
	fit    *linear
	theta  int // how many unknowns the expectation has; the pooled context cost follows
	values rungs
	like   []float64 // by rung, the base file's time: its shape fills rungs that no others surround
}

// fewRungs is how many rungs with steps it takes to expect anything of others.
const fewRungs = 4

// rungs are the times and context costs of all rungs.
type rungs struct{ ms, context []float64 }

// rungOf is the index of the captured size that n requests are padded to.
func rungOf(sizes []int, n int) int {
	i, _ := slices.BinarySearch(sizes, n)
	return i
}

// features of a captured size: constant, per request, per whole tile, per started
// part of a tile, and a second launch where there is more than whole tiles.
func features(b, tile int) []float64 {
	if tile == 0 {
		return nil
	}
	rest := b % tile
	f := []float64{1, float64(b), float64(b / tile), 0}
	if b > tile && rest > 0 {
		f[3] = 1
	}
	for k := 0; k < tile; k += mmaRows {
		v := 0.0
		if rest > k {
			v = 1
		}
		f = append(f, v)
	}
	return f
}

// fitCurve fits decode steps to a ladder whose last rung holds every step.
func fitCurve(list []shape, sizes []int, tile int, given float64, base *latency.Model) *curve {
	c := &curve{sizes: sizes, tile: tile, given: given, rows: make([]int, len(sizes)), at: make([]int, len(sizes))}
	c.theta = len(features(1, tile))
	unknowns := c.theta + 1
	perToken := make([]float64, len(list))
	for i := range list {
		c.rows[rungOf(sizes, list[i].DecodeRequests)]++
		perToken[i] = list[i].BusyMS / list[i].reads
	}
	for r, b := range sizes {
		ms, _ := base.Decode(b, 1, 1)
		c.like = append(c.like, float64(ms))
		c.at[r] = -1
		if c.rows[r] > 0 {
			c.at[r] = unknowns
			unknowns += 2
		}
	}
	// First with one cost per token for all rungs, then with each rung's own,
	// expected around it.
	pooled := given
	if given == 0 {
		pooled = median(perToken) / 4
	}
	scale := firstScale
	for _, sd := range []float64{tied, contextSD, contextSD} {
		if given > 0 {
			sd = tied
		}
		c.fit = solve(c.equations(list, pooled, sd), unknowns, scale)
		scale = c.fit.scale
		if given == 0 {
			pooled = max(c.fit.x[c.theta], pooled/10)
		}
	}
	c.values = c.fill(c.fit.x, nil)
	return c
}

// spreads are how far from zero each term of the expectation may be, from the
// growth of the longest step: rungs that no row parts must not share it at will.
func (c *curve) spreads(longest float64) []float64 {
	if c.tile == 0 {
		return nil
	}
	request := longest / float64(c.sizes[len(c.sizes)-1])
	sd := []float64{10 * longest, request, request * float64(c.tile), request * mmaRows}
	for range c.theta - len(sd) {
		sd = append(sd, request*mmaRows)
	}
	return sd
}

// equations are one for each shape, relative to its time, then the expectations.
func (c *curve) equations(list []shape, pooled, sd float64) []equation {
	var eqs []equation
	rest := make([][]float64, len(c.sizes))
	longest := 0.0
	for i := range list {
		s := &list[i]
		r := rungOf(c.sizes, s.DecodeRequests)
		f := s.weight / s.BusyMS
		eqs = append(eqs, equation{terms: []term{{c.at[r], f}, {c.at[r] + 1, f * s.reads}}, y: s.weight})
		rest[r] = append(rest[r], max(s.BusyMS-pooled*s.reads, s.BusyMS/5))
		longest = max(longest, s.BusyMS)
	}
	for j, sd := range c.spreads(longest) {
		eqs = append(eqs, equation{terms: []term{{j, 1 / sd}}, prior: true})
	}
	mean := equation{terms: []term{{c.theta, 1 / (10 * pooled)}}, y: 0.1, prior: true}
	if c.given > 0 {
		mean = equation{terms: []term{{c.theta, 1 / (tied * pooled)}}, y: 1 / tied, prior: true}
	}
	eqs = append(eqs, mean)
	for r, at := range c.at {
		if at < 0 {
			continue
		}
		level := median(rest[r])
		if c.tile > 0 {
			e := equation{terms: []term{{at, 1 / (rungSD * level)}}, prior: true}
			for j, f := range features(c.sizes[r], c.tile) {
				if f != 0 {
					e.terms = append(e.terms, term{j, -f / (rungSD * level)})
				}
			}
			eqs = append(eqs, e)
		} else {
			eqs = append(eqs, equation{terms: []term{{at, 1 / (100 * level)}}, y: 0.01, prior: true})
		}
		f := 1 / (sd * pooled)
		eqs = append(eqs, equation{terms: []term{{at + 1, f}, {c.theta, -f}}, prior: true})
	}
	return eqs
}

// pooled is the cost per token of context of all rungs, and its standard deviation.
func (c *curve) pooled() (v, sd float64) { return c.fit.x[c.theta], c.fit.sd(c.theta) }

// contextKnown says whether a rung's rows tell its own cost per token of context.
func (c *curve) contextKnown(r int) bool {
	v, _ := c.pooled()
	return c.given == 0 && c.at[r] >= 0 && c.fit.sd(c.at[r]+1) < contextSD*v/2
}

// lent says whether a rung without steps has the base file's shape, scaled to the
// nearest rung with steps: outside of those, and where they are too few to expect
// anything.
func (c *curve) lent(known []int, r int) bool {
	return len(known) < fewRungs || r < known[0] || r > known[len(known)-1]
}

// known are the rungs with steps.
func (c *curve) known() (known []int) {
	for r, at := range c.at {
		if at >= 0 {
			known = append(known, r)
		}
	}
	return known
}

// expected is what the curve has a rung to be.
func (c *curve) expected(x []float64, r int) float64 {
	sum := 0.0
	for j, f := range features(c.sizes[r], c.tile) {
		sum += f * x[j]
	}
	return sum
}

// fill turns unknowns into rungs. Rungs without steps lie on the expectation plus
// what their neighbours differ from it; with rng they also differ by as much as
// rungs do.
func (c *curve) fill(x []float64, rng *rand.Rand) rungs {
	v := rungs{ms: make([]float64, len(c.sizes)), context: make([]float64, len(c.sizes))}
	pooled, known, least := x[c.theta], c.known(), math.Inf(1)
	for _, r := range known {
		v.ms[r], v.context[r] = x[c.at[r]], x[c.at[r]+1]
		least = min(least, math.Abs(v.ms[r]))
	}
	off := func(r int) float64 { return v.ms[r] - c.expected(x, r) }
	for r, at := range c.at {
		if at >= 0 {
			continue
		}
		above, _ := slices.BinarySearch(known, r)
		if c.lent(known, r) {
			near := known[min(above, len(known)-1)]
			v.ms[r], v.context[r] = v.ms[near]*c.like[r]/c.like[near], pooled
		} else {
			a, b := known[above-1], known[above]
			t := float64(c.sizes[r]-c.sizes[a]) / float64(c.sizes[b]-c.sizes[a])
			v.ms[r] = c.expected(x, r) + off(a) + t*(off(b)-off(a))
			v.context[r] = v.context[a] + t*(v.context[b]-v.context[a])
		}
		if rng != nil {
			v.ms[r] *= 1 + rungSD*rng.NormFloat64()
			v.context[r] *= 1 + contextSD*rng.NormFloat64()
		}
	}
	for r := range v.ms {
		v.ms[r], v.context[r] = max(v.ms[r], least/4), max(v.context[r], math.Abs(pooled)/20)
	}
	return v
}

// predict is the time of a decode step, ms.
func (c *curve) predict(s *shape) float64 {
	r := min(rungOf(c.sizes, s.DecodeRequests), len(c.sizes)-1)
	return c.values.ms[r] + c.values.context[r]*s.reads
}
