package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// plain is a Huber limit that no residual reaches: ordinary least squares.
const plain = 1e9

func solve(t testing.TB, p *Problem) *Solution {
	t.Helper()
	s, err := p.Solve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// free are parameters of a wide range, which start at the given values.
func free(width float64, start ...float64) []Parameter {
	var all []Parameter
	for j, x := range start {
		all = append(all, Parameter{Name: string(rune('a' + j)), Start: x, Low: -100, High: 100, Width: width})
	}
	return all
}

// A line is a sloped one through points with noise.
type line struct{ x, y []float64 }

func newLine(rng *rand.Rand, n int, a, b float64, noise func(i int) float64) line {
	var l line
	for i := range n {
		x := rng.Float64() * 4
		l.x, l.y = append(l.x, x), append(l.y, a+b*x+noise(i))
	}
	return l
}

func (l line) residuals(x []float64) []float64 {
	r := make([]float64, len(l.x))
	for i := range r {
		r[i] = x[0] + x[1]*l.x[i] - l.y[i]
	}
	return r
}

// ordinary is the least-squares solution by QR, with weights if not nil.
func (l line) ordinary(t testing.TB, weights []float64) []float64 {
	t.Helper()
	a, b := mat.NewDense(len(l.x), 2, nil), mat.NewVecDense(len(l.x), nil)
	for i := range l.x {
		w := 1.0
		if weights != nil {
			w = math.Sqrt(weights[i])
		}
		a.SetRow(i, []float64{w, w * l.x[i]})
		b.SetVec(i, w*l.y[i])
	}
	var x mat.VecDense
	if err := x.SolveVec(a, b); err != nil {
		t.Fatal(err)
	}
	return x.RawVector().Data
}

func near(t testing.TB, what string, got, want []float64, within float64) {
	t.Helper()
	for j := range want {
		if d := math.Abs(got[j] - want[j]); !(d <= within) {
			t.Errorf("%s: got %v, want %v within %g", what, got, want, within)
			return
		}
	}
}

// A line without noise is found to the last digits, one with noise where the
// textbook has it.
func TestLine(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	exact := newLine(rng, 30, 3, -2, func(int) float64 { return 0 })
	s := solve(t, &Problem{Parameters: free(1, 50, 50), Residuals: exact.residuals})
	near(t, "no noise", s.X, []float64{3, -2}, 1e-9)

	noisy := newLine(rng, 30, 3, -2, func(int) float64 { return rng.NormFloat64() })
	want := noisy.ordinary(t, nil)
	s = solve(t, &Problem{Parameters: free(1, 50, 50), Residuals: noisy.residuals, Huber: plain})
	near(t, "noise", s.X, want, 1e-4)
	if len(s.Residuals) != 30 || s.Spread < 0.5 || s.Spread > 2 {
		t.Errorf("%d residuals of spread %v, want 30 of about 1", len(s.Residuals), s.Spread)
	}
}

// The valley of Rosenbrock is bent: no single step finds its end.
func TestCurved(t *testing.T) {
	valley := func(x []float64) []float64 { return []float64{10 * (x[1] - x[0]*x[0]), 1 - x[0]} }
	s := solve(t, &Problem{Parameters: free(0.01, -1.2, 1), Residuals: valley, Huber: plain})
	near(t, "Rosenbrock", s.X, []float64{1, 1}, 1e-6)
}

// Where the minimum lies out of range, the end is the best point of the bound,
// beside which the others are what they should be beside it and not beside the
// minimum.
func TestBounds(t *testing.T) {
	pulls := func(x []float64) []float64 { return []float64{x[0] - 2, 3 * (x[0] + x[1] - 3), x[1]} }
	p := &Problem{Parameters: free(0.1, 0.2, 0), Residuals: pulls, Huber: plain}
	p.Parameters[0].Low, p.Parameters[0].High = 0, 0.5
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one goroutine at a time writes inside
	inside := true
	p.Residuals = func(x []float64) []float64 {
		inside = inside && x[0] >= 0 && x[0] <= 0.5
		return pulls(x)
	}
	s := solve(t, p)
	near(t, "x at most 0.5", s.X, []float64{0.5, 2.25}, 1e-6) // 9(y-2.5)+y = 0
	if !inside {
		t.Error("a point out of range was evaluated")
	}
	p.Parameters[0].Low, p.Parameters[0].High, p.Parameters[0].Start = 3, 9, 200
	p.Residuals = pulls
	near(t, "x at least 3, start out of range", solve(t, p).X, []float64{3, 0}, 1e-6)
}

// One row in five is off by a lot, always to the same side. Rows that count
// linearly pull the line much less than rows that count by their squares.
func TestOutliers(t *testing.T) {
	robust, square := 0.0, 0.0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		l := newLine(rng, 50, 3, -2, func(i int) float64 {
			if i%5 == 0 {
				return 30
			}
			return rng.NormFloat64()
		})
		off := func(huber float64) float64 {
			s := solve(t, &Problem{Parameters: free(1, 0, 0), Residuals: l.residuals, Huber: huber})
			return math.Abs(s.X[0] + 2*s.X[1] - (3 - 2*2)) // in the middle of the points
		}
		robust, square = robust+off(0)/20, square+off(plain)/20
	}
	if square < 4 || robust > square/4 {
		t.Errorf("off by %.2f on average, by squares %.2f; want a quarter at most, of some 6", robust, square)
	}
}

// A simulator is a staircase: differences must span steps of it. Narrow ones see
// it flat.
func TestStaircase(t *testing.T) {
	stairs := func(x []float64) []float64 {
		var r []float64
		for i := range 40 {
			k := 1 + float64(i)/40
			r = append(r, math.Floor(20*k*x[0])/20-k*math.Pi)
		}
		return r
	}
	wide := solve(t, &Problem{Parameters: free(0.5, -8), Residuals: stairs})
	if d := math.Abs(wide.X[0] - math.Pi); d > 0.05 {
		t.Errorf("ended at %v, want pi within a step of 0.05", wide.X[0])
	}
	if narrow := solve(t, &Problem{Parameters: free(1e-9, -8), Residuals: stairs}); narrow.X[0] != -8 {
		t.Errorf("ended at %v with differences that no step falls in, want the start", narrow.X[0])
	}
}

// Two valleys: a search ends in the one it starts in, and several starts find the
// deeper, whatever their order. A start that cannot be is passed over.
func TestStarts(t *testing.T) {
	valleys := func(x []float64) []float64 {
		if x[0] > 50 {
			return nil
		}
		return []float64{(x[0] - 2) * (x[0] + 3) / 5, 0.1 * (x[0] + 3)}
	}
	p := &Problem{Parameters: free(0.01, 4), Residuals: valleys, Huber: plain}
	if s := solve(t, p); s.X[0] < 0 {
		t.Fatalf("one start ended at %v, want the near valley, or the test shows nothing", s.X)
	}
	for _, starts := range [][][]float64{{{4}, {-5}}, {{-5}, {4}}, {{60}, {-5}}} {
		p.Starts = starts
		near(t, fmt.Sprint(starts), solve(t, p).X, []float64{-3}, 1e-4)
	}
}

// The edge of what can be evaluated is a bound like any other.
func TestImpossibleRegion(t *testing.T) {
	s := solve(t, &Problem{Parameters: free(0.1, 0), Huber: plain, Residuals: func(x []float64) []float64 {
		if x[0] > 2 {
			return nil
		}
		return []float64{x[0] - 1.95, 1}
	}})
	near(t, "beside the edge", s.X, []float64{1.95}, 1e-4)
	_, err := (&Problem{Parameters: free(1, 0), Residuals: func([]float64) []float64 { return nil }}).Solve(context.Background())
	if !errors.Is(err, ErrImpossible) {
		t.Errorf("nowhere to start: got %v, want ErrImpossible", err)
	}
}

// A prior is one more row, of the spread that the rows turn out to have.
func TestPrior(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var y []float64
	for range 25 {
		y = append(y, 10+3*rng.NormFloat64())
	}
	p := &Problem{Parameters: free(1, 4), Huber: plain, Residuals: func(x []float64) []float64 {
		var r []float64
		for _, v := range y {
			r = append(r, x[0]-v)
		}
		return r
	}}
	for _, sd := range []float64{0.1, 1, 100} {
		p.Parameters[0].PriorSD = sd
		s := solve(t, p)
		sum, k := 0.0, s.Spread*s.Spread/(sd*sd)
		for _, v := range y {
			sum += v
		}
		near(t, fmt.Sprint("prior of ", sd), s.X, []float64{(sum + k*4) / (25 + k)}, 3e-3)
	}
}

// A row of weight 3 is three rows, one of weight 0 none.
func TestWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	l := newLine(rng, 40, 3, -2, func(int) float64 { return rng.NormFloat64() })
	var weights []float64
	var repeated line
	for i := range l.x {
		w := i % 4
		weights = append(weights, float64(w))
		for range w {
			repeated.x, repeated.y = append(repeated.x, l.x[i]), append(repeated.y, l.y[i])
		}
	}
	a := solve(t, &Problem{Parameters: free(1, 0, 0), Residuals: l.residuals, Weights: weights, Huber: plain})
	b := solve(t, &Problem{Parameters: free(1, 0, 0), Residuals: repeated.residuals, Huber: plain})
	near(t, "weighted against repeated", a.X, b.X, 1e-3)
	near(t, "weighted against the textbook", a.X, l.ordinary(t, weights), 1e-3)
	if all := l.ordinary(t, nil); math.Abs(all[0]-a.X[0]) < 0.02 {
		t.Errorf("the weights do not matter here: %v and %v", all, a.X)
	}
}

// A simplex goes on where steps have ended.
func TestPolish(t *testing.T) {
	valley := func(x []float64) []float64 { return []float64{10 * (x[1] - x[0]*x[0]), 1 - x[0]} }
	p := &Problem{Parameters: free(0.1, -1.2, 1), Residuals: valley, Huber: plain, Rounds: 2}
	before := solve(t, p)
	p.Polish = 500
	after := solve(t, p)
	if after.Cost > before.Cost/100 || after.Evals <= before.Evals || after.Evals > before.Evals+505 {
		t.Errorf("cost %v after %d evaluations, without %v after %d", after.Cost, after.Evals, before.Cost, before.Evals)
	}
}

// A NaN among the residuals is a bug of the caller's.
func TestNaNPanics(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "a residual is NaN") {
			t.Errorf("got %q, want a panic that names the NaN", text)
		}
	}()
	p := &Problem{Parameters: free(1, 0), Residuals: func([]float64) []float64 { return []float64{0, math.NaN()} }}
	p.Solve(context.Background())
}

// A search stops when it is told to, and does not return half a result.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	rounds := 0
	p := &Problem{Parameters: free(0.01, -1.2, 1), Huber: plain,
		Residuals: func(x []float64) []float64 { return []float64{10 * (x[1] - x[0]*x[0]), 1 - x[0]} },
		Progress: func(start, round int, cost float64) {
			if start != 0 || round != rounds || !(cost >= 0) {
				t.Errorf("told of start %d, round %d, cost %v after %d rounds", start, round, cost, rounds)
			}
			if rounds++; rounds == 3 {
				cancel()
			}
		}}
	s, err := p.Solve(ctx)
	if !errors.Is(err, context.Canceled) || s != nil || rounds != 3 {
		t.Errorf("got %v and %v after %d rounds, want the context's error after 3", s, err, rounds)
	}
}

// However many processors there are, the same numbers come out, to the bit.
func TestDeterminism(t *testing.T) {
	run := func(processors int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		rng := rand.New(rand.NewPCG(6, 6))
		l := newLine(rng, 60, 3, -2, func(int) float64 { return rng.NormFloat64() })
		s := solve(t, &Problem{Parameters: free(1, 0, 0), Residuals: l.residuals, Starts: [][]float64{{0, 0}, {9, 9}}, Polish: 50})
		return fmt.Sprint(s.X, s.Cost, s.Evals, s.Judge(), s.Draws(5, rand.New(rand.NewPCG(7, 7))))
	}
	want := run(1)
	for _, processors := range []int{2, 7} {
		if got := run(processors); got != want {
			t.Errorf("%d processors: got\n%s, want\n%s", processors, got, want)
		}
	}
}

// Each calls with every index once, however few or many there are.
func TestEach(t *testing.T) {
	for _, processors := range []int{1, 3} {
		before := runtime.GOMAXPROCS(processors)
		for _, n := range []int{0, 1, 2, 3, 100} {
			called := make([]int, n)
			Each(n, func(i int) { called[i]++ })
			if slices.ContainsFunc(called, func(k int) bool { return k != 1 }) {
				t.Errorf("%d processors: called %v times", processors, called)
			}
		}
		runtime.GOMAXPROCS(before)
	}
}
