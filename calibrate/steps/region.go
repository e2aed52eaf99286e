package steps

import (
	"math"
	"slices"
)

// Errors are relative errors of predicted times, as shares: 0.01 is 1%.
type Errors struct {
	Rows               int
	Median, P90, Worst float64 // of absolute errors; of two in the middle, their mean
	Bias               float64 // mean of signed errors: above 0 predicts too long
}

// errorsOf sums up signed relative errors; without any, all but Rows is NaN.
func errorsOf(errs []float64) Errors {
	e := Errors{Rows: len(errs), Median: math.NaN(), P90: math.NaN(), Worst: math.NaN(), Bias: math.NaN()}
	if len(errs) == 0 {
		return e
	}
	sum := 0.0
	abs := make([]float64, len(errs))
	for i, v := range errs {
		sum += v
		abs[i] = math.Abs(v)
	}
	slices.Sort(abs)
	n := len(abs)
	e.Median, e.P90, e.Worst, e.Bias = median(abs), abs[min(n-1, n*9/10)], abs[n-1], sum/float64(n)
	return e
}

// A Region is one kind of steps, and how far off the model is in it: on the shapes
// it was fitted to, and on shapes that were held out of the fit.
type Region struct {
	Name     string
	InSample Errors
	HeldOut  Errors
}

// manyDecodes parts small from large decode batches.
const manyDecodes = 128

// regions sums up the errors of both kinds of steps by region.
func regions(tile int, list []shape, in, held []float64) []Region {
	out := []Region{}
	for _, r := range []struct {
		name string
		has  func(*shape) bool
	}{
		{"prefill only", func(s *shape) bool { return s.prefills() && s.DecodeRequests == 0 }},
		{"decode only, up to 128", func(s *shape) bool { return !s.prefills() && s.DecodeRequests <= manyDecodes }},
		{"decode only, more than 128", func(s *shape) bool { return !s.prefills() && s.DecodeRequests > manyDecodes }},
		{"mixed, up to a tile of new tokens", func(s *shape) bool { return s.prefills() && s.DecodeRequests > 0 && s.PrefillTokens <= tile }},
		{"mixed, more new tokens", func(s *shape) bool { return s.prefills() && s.DecodeRequests > 0 && s.PrefillTokens > tile }},
		{"all", func(*shape) bool { return true }},
	} {
		var a, b []float64
		for i := range list {
			if r.has(&list[i]) {
				a = append(a, in[i])
				b = append(b, held[i])
			}
		}
		out = append(out, Region{r.name, errorsOf(a), errorsOf(b)})
	}
	return out
}
