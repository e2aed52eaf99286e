package workload

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestEvenArrivalsAreExact(t *testing.T) {
	for _, rate := range []float64{6, 1, 0.1, 1000.0 / 3} {
		a, err := NewArrivals("", rate, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 100_000 {
			got, want := a.Next(), time.Duration(math.Round(float64(k)/rate*1e9))
			if got != want {
				t.Fatalf("%v per second: got arrival %d at %v, want %v", rate, k, got, want)
			}
		}
	}
	a, _ := NewArrivals("even", 6, 0, nil)
	for range 6_000_000 {
		a.Next()
	}
	if got, want := a.Next(), 1_000_000*time.Second; got != want {
		t.Errorf("got arrival 6,000,000 at %v, want %v: errors must not add up", got, want)
	}
}

// Gaps have the mean, variance and skewness of their distribution, and each is
// independent of the last.
func TestRandomArrivalsHaveTheirMoments(t *testing.T) {
	const n, rate = 200_000, 7.0
	for _, c := range []struct {
		kind  string
		shape float64
	}{{"poisson", 1}, {"gamma", 1}, {"gamma", 0.5}, {"gamma", 0.25}, {"gamma", 4}, {"gamma", 30}} {
		a, err := NewArrivals(c.kind, rate, c.shape, rand.New(rand.NewPCG(11, 12)))
		if err != nil {
			t.Fatal(err)
		}
		gaps := make([]float64, n)
		last := time.Duration(0)
		for i := range gaps {
			at := a.Next()
			if at < last {
				t.Fatalf("%s %v: got arrival %d at %v, before the last at %v", c.kind, c.shape, i, at, last)
			}
			gaps[i] = (at - last).Seconds() * rate
			last = at
		}
		var mean, variance, third, product float64
		for _, g := range gaps {
			mean += g / n
		}
		for i, g := range gaps {
			variance += (g - mean) * (g - mean) / n
			third += math.Pow(g-mean, 3) / n
			if i > 0 {
				product += (g - mean) * (gaps[i-1] - mean) / n
			}
		}
		wantVariance, wantSkew, excess := 1/c.shape, 2/math.Sqrt(c.shape), 6/c.shape
		if got, bound := mean-1, 5*math.Sqrt(wantVariance/n); math.Abs(got) > bound {
			t.Errorf("%s %v: got a mean gap of %.4f, want 1 within %.4f", c.kind, c.shape, mean, bound)
		}
		if bound := 5 * wantVariance * math.Sqrt((2+excess)/n); math.Abs(variance-wantVariance) > bound {
			t.Errorf("%s %v: got a variance of %.4f, want %.4f within %.4f", c.kind, c.shape, variance, wantVariance, bound)
		}
		if skew := third / math.Pow(variance, 1.5); math.Abs(skew-wantSkew) > 0.1*wantSkew+0.05 {
			t.Errorf("%s %v: got a skewness of %.3f, want %.3f", c.kind, c.shape, skew, wantSkew)
		}
		if r := product / variance; math.Abs(r) > 5/math.Sqrt(n) {
			t.Errorf("%s %v: got gaps correlated by %.4f, want 0", c.kind, c.shape, r)
		}
	}
}

func TestArrivalsRepeat(t *testing.T) {
	for _, kind := range []string{"poisson", "gamma"} {
		a, _ := NewArrivals(kind, 6, 0.5, rand.New(rand.NewPCG(1, 2)))
		b, _ := NewArrivals(kind, 6, 0.5, rand.New(rand.NewPCG(1, 2)))
		c, _ := NewArrivals(kind, 6, 0.5, rand.New(rand.NewPCG(1, 3)))
		same := 0
		for range 1000 {
			at := a.Next()
			if got := b.Next(); got != at {
				t.Fatalf("%s: got %v from the same stream, want %v", kind, got, at)
			}
			if c.Next() == at {
				same++
			}
		}
		if same > 10 {
			t.Errorf("%s: got %d of 1000 arrivals alike from another stream", kind, same)
		}
	}
}

// Schedules at the edges of what is accepted move on and do not wrap around.
func TestExtremeArrivals(t *testing.T) {
	for _, c := range []struct {
		kind        string
		rate, shape float64
	}{{"even", math.SmallestNonzeroFloat64, 0}, {"even", 1e9, 0}, {"poisson", 1e-300, 0}, {"gamma", 1e-9, minShape}, {"gamma", 1, maxShape}} {
		a, err := NewArrivals(c.kind, c.rate, c.shape, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		last := time.Duration(0)
		for range 10_000 {
			at := a.Next()
			if at < last {
				t.Fatalf("%+v: got %v after %v", c, at, last)
			}
			last = at
		}
		if last == 0 {
			t.Errorf("%+v: got every arrival at 0", c)
		}
	}
}

func TestArrivalsRefuse(t *testing.T) {
	for _, c := range []struct {
		kind        string
		rate, shape float64
		want        string
	}{
		{"even", 0, 1, "rate: got 0"}, {"even", -1, 1, "rate: got -1"}, {"even", math.NaN(), 1, "rate: got NaN"},
		{"even", math.Inf(1), 1, "rate: got +Inf"}, {"even", 2e9, 1, "rate: got 2e+09"},
		{"gamma", 1, 0, "shape 0"}, {"gamma", 1, math.NaN(), "shape NaN"}, {"gamma", 1, math.Inf(1), "shape +Inf"},
		{"gamma", 1, 1e-4, "shape 0.0001, want 0.001 to 1e+09"},
		{"uniform", 1, 1, `got "uniform", want even, poisson or gamma`},
	} {
		if _, err := NewArrivals(c.kind, c.rate, c.shape, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, rate %v, shape %v: got %v, want %q", c.kind, c.rate, c.shape, err, c.want)
		}
	}
}

func BenchmarkArrivals(b *testing.B) {
	for _, kind := range []string{"even", "poisson", "gamma"} {
		b.Run(kind, func(b *testing.B) {
			a, _ := NewArrivals(kind, 6, 0.5, rand.New(rand.NewPCG(1, 2)))
			for range b.N {
				a.Next()
			}
		})
	}
}
