package traces

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The twin adds up the definition with no cleverness.
func TestQuantileEqualsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 60; n++ {
		v := make([]float64, n)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		slices.Sort(v)
		for _, p := range []float64{0, 0.5, 0.9, 0.99, 1} {
			h := p * float64(n-1)
			lo, hi := int(math.Floor(h)), int(math.Ceil(h))
			want := v[lo] + (h-math.Floor(h))*(v[hi]-v[lo])
			if got := Quantile(v, p); got != want {
				t.Fatalf("n=%d p=%v: got %v, want %v", n, p, got, want)
			}
		}
	}
	if got := Quantile([]float64{1, 2, 3, 4}, 0.5); got != 2.5 {
		t.Errorf("median of 1..4: got %v, want numpy's 2.5", got)
	}
	if got := Quantile[float32](nil, 0.5); !math.IsNaN(got) {
		t.Errorf("no values: got %v, want NaN", got)
	}
}
