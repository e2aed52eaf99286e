package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Arrivals yields the due times of an open-loop schedule, counted from the
// origin, in order.
type Arrivals struct {
	kind  string
	rate  float64 // per second
	shape float64
	rng   *rand.Rand
	k     int
	at    float64 // seconds
}

// NewArrivals prepares a schedule of rate requests a second. Kind "even" (or
// empty) sends arrival k at k/rate; "poisson" draws exponential gaps; "gamma"
// draws gamma gaps of the given shape (1 is Poisson, less is burstier). rng is
// the schedule's own stream; even draws nothing from it.
func NewArrivals(kind string, rate, shape float64, rng *rand.Rand) (Arrivals, error) {
	if !(rate > 0 && rate <= maxRate) {
		return Arrivals{}, fmt.Errorf("workload: rate: got %v, want more than 0 and at most %g requests per second", rate, float64(maxRate))
	}
	switch kind {
	case "", "even", "poisson":
	case "gamma":
		if !(shape >= minShape && shape <= maxShape) {
			return Arrivals{}, fmt.Errorf("workload: gamma arrivals: got shape %v, want %g to %g", shape, minShape, maxShape)
		}
	default:
		return Arrivals{}, fmt.Errorf("workload: arrivals: got %q, want even, poisson or gamma", kind)
	}
	return Arrivals{kind: kind, rate: rate, shape: shape, rng: rng}, nil
}

// Beyond these an arrival process does not move: gaps are below the nanosecond,
// or all but a vanishing few of them are.
const (
	maxRate  = 1e9
	minShape = 1e-3
	maxShape = 1e9
)

// Next returns the next due time, which is not before the last; one beyond the
// range of a Duration is the largest Duration.
func (a *Arrivals) Next() time.Duration {
	k := a.k
	a.k++
	switch a.kind {
	case "poisson":
		a.at += a.rng.ExpFloat64() / a.rate
	case "gamma":
		a.at += gamma(a.rng, a.shape) / a.shape / a.rate
	default:
		a.at = float64(k) / a.rate
	}
	if ns := math.Round(a.at * 1e9); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// gamma draws from the gamma distribution of the shape and scale 1, by Marsaglia
// and Tsang (2000), "A simple method for generating gamma variables".
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(rng, shape+1) * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
