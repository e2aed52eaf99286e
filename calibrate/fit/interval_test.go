package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// covered is the share of 200 experiments whose 95% intervals hold the truth, by
// parameter of a line.
func covered(t *testing.T, p func(seed uint64) *Problem, truth []float64) []float64 {
	t.Helper()
	const experiments = 200
	share := make([]float64, len(truth))
	for seed := range uint64(experiments) {
		s := solve(t, p(seed))
		draws := s.Draws(300, rand.New(rand.NewPCG(seed, 9)))
		for j := range truth {
			values := make([]float64, len(draws))
			for d := range draws {
				values[d] = draws[d][j]
			}
			if low, high := Interval(values); low <= truth[j] && truth[j] <= high {
				share[j] += 1.0 / experiments
			}
		}
	}
	return share
}

// Of intervals that are to hold the truth in 95 of 100 experiments, as many do.
func TestIntervalsCover(t *testing.T) {
	truth := []float64{3, -2}
	share := covered(t, func(seed uint64) *Problem {
		rng := rand.New(rand.NewPCG(seed, 10))
		l := newLine(rng, 40, truth[0], truth[1], func(int) float64 { return rng.NormFloat64() })
		return &Problem{Parameters: free(1, 0, 0), Residuals: l.residuals}
	}, truth)
	for j, s := range share {
		if s < 0.9 || s > 0.98 {
			t.Errorf("parameter %d: %.1f%% of the intervals hold the truth, want 90 to 98", j, 100*s)
		}
	}
}

// Rows of one block share most of their error. Drawn by blocks the intervals
// hold; drawn row by row, as if each said something of its own, they do not.
func TestIntervalsOfBlocks(t *testing.T) {
	truth := []float64{3, -2}
	problem := func(seed uint64) *Problem {
		const blocks, each = 30, 8
		rng := rand.New(rand.NewPCG(seed, 11))
		shared := make([]float64, blocks)
		for b := range shared {
			shared[b] = rng.NormFloat64()
		}
		p := &Problem{Parameters: free(1, 0, 0)}
		l := newLine(rng, blocks*each, truth[0], truth[1], func(i int) float64 {
			p.Blocks = append(p.Blocks, i/each)
			return shared[i/each] + 0.3*rng.NormFloat64()
		})
		for i := range l.x { // rows of a block are of one place on the line, too
			b := i / each * each
			l.y[i] += truth[1] * (l.x[b] - l.x[i])
			l.x[i] = l.x[b]
		}
		p.Residuals = l.residuals
		return p
	}
	for j, s := range covered(t, problem, truth) {
		if s < 0.9 || s > 0.98 {
			t.Errorf("parameter %d: %.1f%% of the intervals hold the truth, want 90 to 98", j, 100*s)
		}
	}
	alone := func(seed uint64) *Problem {
		p := problem(seed)
		p.Blocks = nil
		return p
	}
	for j, s := range covered(t, alone, truth) {
		if s > 0.8 {
			t.Errorf("parameter %d: without blocks %.1f%% of the intervals hold the truth: the rows are not alike enough to show anything", j, 100*s)
		}
	}
}

// Draws keep to the range, and what no row moves is as wide as it was before.
func TestDrawsStay(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	l := newLine(rng, 40, 3, -2, func(int) float64 { return rng.NormFloat64() })
	p := &Problem{Parameters: free(1, 0, 0, 7), Residuals: l.residuals}
	p.Parameters[0].High = 3
	p.Parameters[2].PriorSD = 2
	low, below := math.Inf(1), 0
	var untold []float64
	for _, x := range solve(t, p).Draws(200, rng) {
		if x[0] > 3 {
			t.Fatalf("drew %v, want at most 3", x)
		}
		untold = append(untold, x[2])
		if x[0] < 3 {
			below++
		}
		low = min(low, x[0])
	}
	if below < 40 || low > 2.9 {
		t.Errorf("%d of 200 draws under the bound, the least %v: the bound is not where it matters", below, low)
	}
	mean, variance := 0.0, 0.0
	for _, v := range untold {
		mean += v / 200
	}
	for _, v := range untold {
		variance += (v - mean) * (v - mean) / 200
	}
	if math.Abs(mean-7) > 0.5 || math.Abs(math.Sqrt(variance)-2) > 0.3 {
		t.Errorf("what no row moves: mean %.2f and deviation %.2f, want the prior's 7 and 2", mean, math.Sqrt(variance))
	}
}

// The interval is from the 2.5th to the 97.5th percentile, between draws in
// proportion.
func TestInterval(t *testing.T) {
	var draws []float64
	for i := range 401 {
		draws = append(draws, float64((i*7)%401)) // 0 to 400, in another order
	}
	for _, c := range []struct {
		draws     []float64
		low, high float64
	}{
		{draws, 10, 390}, {[]float64{5}, 5, 5}, {[]float64{1, 0}, 0.025, 0.975}, {[]float64{2, 2, 2}, 2, 2},
	} {
		before := fmt.Sprint(c.draws)
		low, high := Interval(c.draws)
		if math.Abs(low-c.low) > 1e-9 || math.Abs(high-c.high) > 1e-9 {
			t.Errorf("%d draws: got %v to %v, want %v to %v", len(c.draws), low, high, c.low, c.high)
		}
		if fmt.Sprint(c.draws) != before {
			t.Error("the draws were put into another order: draw k of other parameters is no longer theirs")
		}
	}
	if low, high := Interval(nil); !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("no draws: got %v to %v, want NaN", low, high)
	}
}
