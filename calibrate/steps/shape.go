package steps

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"kvfleet/sim/latency"
)

// capSteps is how many pooled steps a row counts for at most: medians of many
// steps of one shape do not outvote the shapes that were run once.
const capSteps = 5

// mostShapes bounds the shapes of each kind that are fitted.
const mostShapes = 2000

// together is the factor between neighbouring contexts within which decode steps of
// one batch size count as one shape: they are held out together.
const together = 1.2

// A shape is what was in a step, with the median time of the steps that had it.
type shape struct {
	Row
	chunks  []latency.Chunk
	weight  float64 // the square root of its capped steps
	reads   float64 // context of a decode-only step, whole waves counted
	group   int     // shapes of one group are held out together
	members []Row   // the single steps that it pools
}

func (s *shape) prefills() bool { return s.PrefillRequests > 0 }

// spread divides the new tokens evenly over the prefilling requests: a step log
// does not say how they were.
func (r *Row) spread() []latency.Chunk {
	chunks := make([]latency.Chunk, r.PrefillRequests)
	n := int64(r.PrefillRequests)
	for i := range chunks {
		k := int64(i)
		share := func(total int64) int { return int(total*(k+1)/n - total*k/n) }
		chunks[i] = latency.Chunk{Tokens: share(int64(r.PrefillTokens)), Context: share(r.PrefillContext)}
	}
	return chunks
}

// inWaves is the shapes with their context counted in whole waves of attention.
func inWaves(list []shape, wave, share float64) []shape {
	p := latency.Params{DecodeWave: wave, DecodeWaveShare: share}
	list = slices.Clone(list)
	for i := range list {
		list[i].reads = float64(list[i].DecodeContext) * p.Waves(list[i].DecodeRequests)
	}
	return list
}

func compareRows(a, b *Row) int {
	return cmp.Or(
		cmp.Compare(a.PrefillRequests, b.PrefillRequests),
		cmp.Compare(a.DecodeRequests, b.DecodeRequests),
		cmp.Compare(a.PrefillTokens, b.PrefillTokens),
		cmp.Compare(a.PrefillContext, b.PrefillContext),
		cmp.Compare(a.DecodeContext, b.DecodeContext),
		cmp.Compare(a.Line, b.Line),
	)
}

func (r *Row) sameShape(o *Row) bool {
	return r.PrefillRequests == o.PrefillRequests && r.PrefillTokens == o.PrefillTokens && r.PrefillContext == o.PrefillContext &&
		r.DecodeRequests == o.DecodeRequests && r.DecodeContext == o.DecodeContext
}

// uniform counts a step in which every request computes one token as one that only
// decodes, whether the token is the last of a prompt or a new one: it runs as the
// same CUDA graph.
func (r *Row) uniform() {
	if r.PrefillTokens == r.PrefillRequests {
		r.DecodeRequests += r.PrefillRequests
		r.DecodeContext += r.PrefillContext
		r.PrefillRequests, r.PrefillTokens, r.PrefillContext = 0, 0, 0
	}
}

// shapesOf pools a log's rows into shapes of steps that prefill and of steps that
// only decode, in a fixed order. Single steps that prefill pool where they are
// identical; those that only decode also where their context differs by 5%.
func (l *Log) shapesOf() (prefill, decode []shape, warnings []string) {
	rows := slices.Clone(l.Rows)
	for i := range rows {
		rows[i].uniform()
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return compareRows(&a, &b) })
	for from := 0; from < len(rows); {
		first := &rows[from]
		to := from + 1
		for ; to < len(rows) && !l.Pooled; to++ {
			r := &rows[to]
			near := first.PrefillRequests == 0 && r.PrefillRequests == 0 && r.DecodeRequests == first.DecodeRequests &&
				float64(r.DecodeContext) <= 1.05*float64(first.DecodeContext)
			if !near && !first.sameShape(r) {
				break
			}
		}
		s := poolRows(rows[from:to])
		if s.prefills() {
			prefill = append(prefill, s)
		} else {
			decode = append(decode, s)
		}
		from = to
	}
	for _, list := range []*[]shape{&prefill, &decode} {
		if n := len(*list); n > mostShapes {
			warnings = append(warnings, fmt.Sprintf("fitted every %.3g-th of %d shapes", float64(n)/mostShapes, n))
			*list = thin(*list)
		}
		assignGroups(*list)
	}
	return prefill, decode, warnings
}

func thin(list []shape) []shape {
	out := make([]shape, mostShapes)
	for i := range out {
		out[i] = list[i*len(list)/mostShapes]
	}
	return out
}

// poolRows takes medians of rows of about one shape.
func poolRows(rows []Row) shape {
	s := shape{Row: rows[0]}
	if len(rows) > 1 {
		s.Steps = 0
		busy, context, span := make([]float64, len(rows)), make([]float64, len(rows)), make([]float64, len(rows))
		for i, r := range rows {
			s.Steps += r.Steps
			busy[i], context[i], span[i] = r.BusyMS, float64(r.DecodeContext), r.SpanMS
		}
		s.members = slices.Clone(rows)
		s.BusyMS, s.SpanMS = median(busy), median(span)
		s.DecodeContext = int64(math.Round(median(context)))
	}
	s.chunks = s.spread()
	s.weight = math.Sqrt(float64(min(s.Steps, capSteps)))
	return s
}

// assignGroups numbers what is held out together: equal shapes that prefill, and
// decode steps of one batch size with neighbouring contexts.
func assignGroups(list []shape) {
	group := 0
	for i := range list {
		if i > 0 {
			a, b := &list[i-1], &list[i]
			same := a.sameShape(&b.Row) || !a.prefills() && a.DecodeRequests == b.DecodeRequests &&
				float64(b.DecodeContext) <= together*float64(a.DecodeContext)
			if !same {
				group++
			}
		}
		list[i].group = group
	}
}

// foldsOf deals the groups of shapes to k folds; -1 is in none.
func foldsOf(list []shape, k int, rng *rand.Rand) []int {
	if len(list) == 0 {
		return nil
	}
	groups := list[len(list)-1].group + 1
	order := rng.Perm(groups)
	fold := make([]int, groups)
	for i, g := range order {
		fold[g] = i % k
	}
	out := make([]int, len(list))
	for i := range list {
		out[i] = fold[list[i].group]
	}
	return out
}

// without is the shapes that are not in a fold.
func without(list []shape, folds []int, fold int) []shape {
	var out []shape
	for i := range list {
		if folds[i] != fold {
			out = append(out, list[i])
		}
	}
	return out
}

// median sorts v.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
