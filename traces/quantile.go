package traces

import "math"

// Quantile is the p-quantile, 0 <= p <= 1, of ascending values, interpolated
// linearly between order statistics at position p*(n-1): type 7 of Hyndman and
// Fan (1996). It is NaN for no values.
func Quantile[T ~float32 | ~float64 | ~int64](ascending []T, p float64) float64 {
	n := len(ascending)
	if n == 0 {
		return math.NaN()
	}
	at := min(max(p, 0), 1) * float64(n-1)
	below := int(at)
	low := float64(ascending[below])
	if below+1 >= n {
		return low
	}
	return low + (at-float64(below))*(float64(ascending[below+1])-low)
}

// quotient is a/b, or NaN where that means nothing.
func quotient(a, b float64) float64 {
	if b <= 0 {
		return math.NaN()
	}
	return a / b
}
