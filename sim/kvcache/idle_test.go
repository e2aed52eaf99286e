package kvcache

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The counted quantiles are those of the ages themselves, to a hundredth.
func TestIdleAges(t *testing.T) {
	var a IdleAges
	if _, ok := a.Quantile(0.9); ok {
		t.Error("no evictions have a quantile")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var ages []time.Duration
	for range 20000 {
		age := time.Duration(math.Exp(rng.Float64()*25)) * time.Microsecond
		ages = append(ages, age)
		a.Add(age)
	}
	slices.Sort(ages)
	for _, p := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
		got, _ := a.Quantile(p)
		want := ages[max(0, int(math.Ceil(p*float64(len(ages))))-1)]
		if d := math.Abs(got.Seconds() - want.Seconds()); d > 0.01*want.Seconds()+1e-6 {
			t.Errorf("quantile %v: got %v, want %v", p, got, want)
		}
	}
	if a.N() != 20000 {
		t.Errorf("got %d evictions, want 20000", a.N())
	}
}

// Every age is in a bucket whose middle is near it, and buckets do not fall.
func TestIdleBuckets(t *testing.T) {
	last := 0
	for us := uint64(0); us < 1<<40; us += us/300 + 1 {
		b := bucket(us)
		if b < last || b >= idleBuckets {
			t.Fatalf("%d us: bucket %d after %d of %d", us, b, last, idleBuckets)
		}
		last = b
		if m := float64(middle(b) / time.Microsecond); math.Abs(m-float64(us)) > float64(us)/128+1 {
			t.Fatalf("%d us: middle of its bucket is %v us", us, m)
		}
	}
}
