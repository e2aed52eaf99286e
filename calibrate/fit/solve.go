package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// A Parameter is one number that a search moves.
type Parameter struct {
	Name      string
	Start     float64
	Low, High float64 // the search stays within
	// Width is the half-width of the differences that estimate slopes. A
	// simulator is a staircase: the width must span many of its steps.
	Width float64
	// PriorSD, if positive, pulls the value towards PriorMean with this standard
	// deviation; it is also what Judge measures the rows' say against. 0 takes a
	// quarter of the range and pulls nowhere. A PriorMean of 0 is Start.
	PriorSD   float64
	PriorMean float64
}

// A Problem is a robust nonlinear least-squares problem.
type Problem struct {
	Parameters []Parameter
	// Residuals are in units of their own expected error, of one length for every
	// x; nil if x is impossible. They are called from several goroutines.
	Residuals func(x []float64) []float64
	// Blocks says for each residual which block of rows it is of, from 0: rows of
	// one block stand or fall together in the bootstrap. Nil takes every residual
	// by itself.
	Blocks []int
	// Weights, if not nil, are how much each residual counts; nil is 1 each.
	Weights []float64
	// Groups, if not nil, says for each residual which group it is of, from 0: rows
	// that the same constants move alike. The slopes of a group's residuals are
	// then taken to be their mean. A chaotic simulator needs that: whatever moves
	// one step moves every later one to another phase, and slopes row by row are
	// mostly such noise, which looks like knowledge.
	Groups []int
	// Huber is the size, in units of the residuals' robust spread, from which a
	// residual counts linearly; 0 is 2.
	Huber float64
	// Rounds bounds the search from each start; 0 is 30.
	Rounds int
	// Starts, if any, are where the search starts instead of at the parameters'
	// own.
	Starts [][]float64
	// Polish is how many evaluations a simplex search may add at the end.
	Polish int
	// Progress, if not nil, is told the cost after every round.
	Progress func(start, round int, cost float64)
}

// A Solution is where a search ended.
type Solution struct {
	Problem   *Problem
	X         []float64
	Residuals []float64
	Spread    float64 // robust standard deviation of the residuals
	Cost      float64 // mean robust loss
	Evals     int
	slopes    *mat.Dense // residuals by parameters
	rough     *mat.Dense // slope above less slope below, likewise
	fine      *mat.Dense // slopes before groups took their means; nil without groups
	weights   []float64
}

// ErrImpossible is what Solve reports when no start has residuals.
var ErrImpossible = errors.New("fit: no starting point can be evaluated")

// Solve searches from every start and returns the best end. The error is ctx's or
// ErrImpossible.
func (p *Problem) Solve(ctx context.Context) (*Solution, error) {
	starts := p.Starts
	if len(starts) == 0 {
		starts = [][]float64{p.start()}
	}
	var best *Solution
	for k, x := range starts {
		s, err := p.search(ctx, k, slices.Clone(x))
		if err != nil {
			return nil, err
		}
		if s != nil && (best == nil || s.Cost < best.Cost) {
			best = s
		}
	}
	if best == nil {
		return nil, ErrImpossible
	}
	if p.Polish > 0 {
		best.polish()
	}
	best.linearize()
	return best, nil
}

func (p *Problem) start() []float64 {
	x := make([]float64, len(p.Parameters))
	for j := range x {
		x[j] = p.Parameters[j].Start
	}
	return x
}

func (p *Problem) clamp(x []float64) {
	for j := range x {
		x[j] = min(max(x[j], p.Parameters[j].Low), p.Parameters[j].High)
	}
}

// at evaluates residuals with the priors' behind them.
func (p *Problem) at(x []float64) []float64 {
	r := p.Residuals(x)
	if r == nil {
		return nil
	}
	r = slices.Clone(r)
	for _, v := range r {
		if math.IsNaN(v) {
			panic("fit: a residual is NaN")
		}
	}
	for j, q := range p.Parameters {
		if q.PriorSD > 0 {
			mean := q.PriorMean
			if mean == 0 {
				mean = q.Start
			}
			r = append(r, (x[j]-mean)/q.PriorSD)
		}
	}
	return r
}

func (p *Problem) priors() int {
	n := 0
	for _, q := range p.Parameters {
		if q.PriorSD > 0 {
			n++
		}
	}
	return n
}

func (p *Problem) huber() float64 {
	if p.Huber > 0 {
		return p.Huber
	}
	return 2
}

// loss is the mean robust loss at a given spread. Priors count as they are: one
// prior weighs as much as one row of the same error.
func (p *Problem) loss(r []float64, spread float64) float64 {
	if r == nil {
		return math.Inf(1)
	}
	rows := len(r) - p.priors()
	sum, total := 0.0, 0.0
	for i, v := range r {
		if i >= rows {
			sum += v * v * spread * spread
			continue
		}
		w := p.weight(i)
		total += w
		if a, d := math.Abs(v), p.huber()*spread; a > d {
			sum += w * d * (2*a - d)
		} else {
			sum += w * v * v
		}
	}
	return sum / max(1e-12, total)
}

func (p *Problem) weight(i int) float64 {
	if p.Weights == nil {
		return 1
	}
	return p.Weights[i]
}

func (p *Problem) weigh(r []float64, spread float64) []float64 {
	rows := len(r) - p.priors()
	w := make([]float64, len(r))
	for i, v := range r {
		switch a, d := math.Abs(v), p.huber()*spread; {
		case i >= rows:
			w[i] = spread * spread
		case a > d:
			w[i] = p.weight(i) * d / a
		default:
			w[i] = p.weight(i)
		}
	}
	return w
}

// spreadOf is 1.4826 times the median absolute residual, the standard deviation
// of a normal distribution, but no less than a twentieth of the root mean square:
// half of the residuals may be zero.
func spreadOf(r []float64) float64 {
	if len(r) == 0 {
		return 1
	}
	a := make([]float64, len(r))
	sum := 0.0
	for i, v := range r {
		a[i] = math.Abs(v)
		sum += v * v
	}
	slices.Sort(a)
	return max(1.4826*a[len(a)/2], math.Sqrt(sum/float64(len(r)))/20, 1e-12)
}

// search is damped least squares from one start; nil if the start is impossible.
func (p *Problem) search(ctx context.Context, start int, x []float64) (*Solution, error) {
	p.clamp(x)
	r := p.at(x)
	if r == nil {
		return nil, nil
	}
	rounds := p.Rounds
	if rounds == 0 {
		rounds = 30
	}
	s := &Solution{Problem: p, X: x, Residuals: r, Evals: 1}
	damping, still, shares := 1e-2, 0, p.shares()
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows := s.Residuals[:len(s.Residuals)-p.priors()]
		s.Spread = spreadOf(rows)
		s.Cost = p.loss(s.Residuals, s.Spread)
		// Wide differences first, narrow ones once they no longer help.
		s.slope(shares[min(still, len(shares)-1)])
		before := s.Cost
		moved := s.step(&damping)
		if p.Progress != nil {
			p.Progress(start, round, s.Cost)
		}
		switch {
		case !moved:
			still++
			damping = 1e-2
		case before-s.Cost < 1e-4*before:
			still++
		}
		if still >= len(shares) {
			break
		}
	}
	s.Spread = spreadOf(s.Residuals[:len(s.Residuals)-p.priors()])
	s.Cost = p.loss(s.Residuals, s.Spread)
	return s, nil
}

// polish searches on with a simplex, which needs no slopes.
func (s *Solution) polish() {
	p := s.Problem
	scale := func(u []float64) []float64 {
		x := make([]float64, len(u))
		for j := range u {
			x[j] = s.X[j] + u[j]*p.Parameters[j].Width
		}
		p.clamp(x)
		return x
	}
	problem := optimize.Problem{Func: func(u []float64) float64 {
		c := p.loss(p.at(scale(u)), s.Spread)
		if math.IsInf(c, 0) {
			return math.MaxFloat64
		}
		return c
	}}
	settings := &optimize.Settings{FuncEvaluations: p.Polish, Converger: &optimize.FunctionConverge{Absolute: 1e-9, Relative: 1e-5, Iterations: 40}}
	result, err := optimize.Minimize(problem, make([]float64, len(s.X)), settings, &optimize.NelderMead{SimplexSize: 0.5})
	if result == nil {
		panic(fmt.Sprintf("fit: simplex search: %v", err)) // its options are ours
	}
	s.Evals += result.FuncEvaluations
	if result.F < s.Cost {
		s.X = scale(result.X)
		s.Residuals = p.at(s.X)
		s.Cost = p.loss(s.Residuals, s.Spread)
	}
}

// linearize takes the slopes at the end for intervals.
func (s *Solution) linearize() {
	s.Spread = spreadOf(s.Residuals[:len(s.Residuals)-s.Problem.priors()])
	s.slope(1)
	s.roughAtBounds()
}

// roughAtBounds looks a width further where a bound leaves one side only. That one
// slope has four times the variance of a mean of two, and so must its roughness.
func (s *Solution) roughAtBounds() {
	p := s.Problem
	next, last := make([][]float64, len(s.X)), make([][]float64, len(s.X))
	step := make([]float64, len(s.X))
	Each(len(s.X), func(j int) {
		q := p.Parameters[j]
		switch {
		case s.X[j] <= q.Low && s.X[j]+2*q.Width <= q.High:
			step[j] = q.Width
		case s.X[j] >= q.High && s.X[j]-2*q.Width >= q.Low:
			step[j] = -q.Width
		default:
			return
		}
		x := slices.Clone(s.X)
		x[j] += step[j]
		next[j] = p.at(x)
		x[j] += step[j]
		last[j] = p.at(x)
	})
	for j, d := range step {
		if next[j] == nil || last[j] == nil {
			continue
		}
		s.Evals += 2
		for i := range s.Residuals {
			s.rough.Set(i, j, 2*(last[j][i]-2*next[j][i]+s.Residuals[i])/d)
		}
	}
	if p.Groups != nil {
		s.groupSlopes()
	}
}
