package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Selection finds what sorting would, with ties and without.
func TestNth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := 1; n < 200; n++ {
		v := make([]int64, n)
		for i := range v {
			v[i] = rng.Int64N(int64(1 + rng.IntN(2*n)))
		}
		sorted := slices.Sorted(slices.Values(v))
		for range 5 {
			k := rng.IntN(n)
			if got := nth(v, k); got != sorted[k] {
				t.Fatalf("place %d of %v: got %d, want %d", k, sorted, got, sorted[k])
			}
		}
	}
}
