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
	if !(rate > 0) || math.IsInf(rate, 0) {
		return Arrivals{}, fmt.Errorf("workload: rate: got %v, want a positive number of requests per second", rate)
	}
	switch kind {
	case "", "even", "poisson":
	case "gamma":
		if !(shape > 0) || math.IsInf(shape, 0) {
			return Arrivals{}, fmt.Errorf("workload: gamma arrivals: got shape %v, want a positive number", shape)
		}
	default:
		return Arrivals{}, fmt.Errorf("workload: arrivals: got %q, want even, poisson or gamma", kind)
	}
	return Arrivals{kind: kind, rate: rate, shape: shape, rng: rng}, nil
}

// Next returns the next due time.
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
	return time.Duration(math.Round(a.at * 1e9))
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
