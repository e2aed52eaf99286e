package fit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// shares are those of the widths at which slopes are taken, one after another as
// the search stalls: a staircase needs the wide ones. Where groups say that the
// simulator is chaotic in places, the narrow ones end the search in the others.
func (p *Problem) shares() []float64 {
	if p.Groups == nil {
		return []float64{1, 0.5, 0.25}
	}
	return []float64{1, 0.5, 0.25, 0.08, 0.02}
}

// slope estimates the slopes at X with differences of share times the widths.
func (s *Solution) slope(share float64) {
	p := s.Problem
	n, m := len(s.Residuals), len(s.X)
	s.slopes, s.rough = mat.NewDense(n, m, nil), mat.NewDense(n, m, nil)
	sides := make([][]float64, 2*m)
	at := make([]float64, 2*m)
	Each(2*m, func(k int) {
		j := k / 2
		q := p.Parameters[j]
		x := slices.Clone(s.X)
		x[j] += share * q.Width * float64(1-2*(k%2))
		x[j] = min(max(x[j], q.Low), q.High)
		at[k], sides[k] = x[j], p.at(x)
	})
	s.Evals += 2 * m
	for j := range m {
		up, down := sides[2*j], sides[2*j+1]
		a, b := at[2*j], at[2*j+1]
		if up == nil {
			up, a = s.Residuals, s.X[j]
		}
		if down == nil {
			down, b = s.Residuals, s.X[j]
		}
		if a == b {
			continue
		}
		for i := range n {
			s.slopes.Set(i, j, (up[i]-down[i])/(a-b))
			if a != s.X[j] && b != s.X[j] {
				s.rough.Set(i, j, (up[i]-s.Residuals[i])/(a-s.X[j])-(s.Residuals[i]-down[i])/(s.X[j]-b))
			}
		}
	}
	s.weights = p.weigh(s.Residuals, s.Spread)
	s.fine = nil
	if p.Groups != nil {
		s.fine = mat.DenseCopyOf(s.slopes)
		s.groupSlopes()
	}
}

// groupSlopes replaces the slopes of every group by their weighted mean.
func (s *Solution) groupSlopes() {
	p := s.Problem
	groups := slices.Max(p.Groups) + 1
	weight, sum := make([]float64, groups), make([]float64, groups)
	for i, g := range p.Groups {
		weight[g] += s.weights[i]
	}
	for _, of := range []*mat.Dense{s.slopes, s.rough} {
		for j := range s.X {
			clear(sum)
			for i, g := range p.Groups {
				sum[g] += s.weights[i] * of.At(i, j)
			}
			for i, g := range p.Groups {
				if weight[g] > 0 {
					of.Set(i, j, sum[g]/weight[g])
				}
			}
		}
	}
}

// trust is, for every parameter, the root of the share of its slopes' squares
// that is not noise. A slope is the mean of one above and one below; where it is
// smooth the two agree, and where it is the noise of a staircase their difference
// has twelve times the variance of their mean. Of few slopes the ratio of the two is
// far from that by chance: the noise is taken to be so many standard deviations
// larger (the logarithm of an F of k and k degrees of freedom has a variance of
// about 4/k).
func (s *Solution) trust(deviations float64) []float64 {
	rows := len(s.Residuals) - s.Problem.priors()
	out := make([]float64, len(s.X))
	for j := range out {
		signal, noise := 0.0, 0.0
		for i := range rows {
			v, d := s.slopes.At(i, j), s.rough.At(i, j)
			signal += s.weights[i] * v * v
			noise += s.weights[i] * d * d / 12
		}
		independent := rows
		if s.Problem.Groups != nil {
			independent = slices.Max(s.Problem.Groups) + 1
		}
		noise *= math.Exp(deviations * math.Sqrt(4/float64(max(1, independent))))
		if signal > 0 {
			out[j] = math.Sqrt(math.Max(0, 1-noise/signal))
		}
	}
	return out
}

// normal is the weighted normal matrix and gradient, in units of the widths.
func (s *Solution) normal() (*mat.SymDense, *mat.VecDense) {
	return s.normalOf(len(s.Residuals))
}

// rowsNormal is the same without the priors.
func (s *Solution) rowsNormal() (*mat.SymDense, *mat.VecDense) {
	return s.normalOf(len(s.Residuals) - s.Problem.priors())
}

func (s *Solution) normalOf(n int) (*mat.SymDense, *mat.VecDense) {
	m := len(s.X)
	h, g := mat.NewSymDense(m, nil), mat.NewVecDense(m, nil)
	for j := range m {
		wj := s.Problem.Parameters[j].Width
		for k := j; k < m; k++ {
			wk := s.Problem.Parameters[k].Width
			sum := 0.0
			for i := range n {
				sum += s.weights[i] * s.slopes.At(i, j) * s.slopes.At(i, k)
			}
			h.SetSym(j, k, sum*wj*wk)
		}
		sum := 0.0
		for i := range n {
			sum += s.weights[i] * s.slopes.At(i, j) * s.Residuals[i]
		}
		g.SetVec(j, sum*wj)
	}
	return h, g
}

// step tries damped steps and says whether one improved.
func (s *Solution) step(damping *float64) bool {
	type direction struct {
		h *mat.SymDense
		g *mat.VecDense
	}
	var ways []direction
	add := func() {
		h, g := s.normal()
		s.hold(h, g)
		ways = append(ways, direction{h, g})
	}
	add()
	if s.fine != nil {
		// Where the simulator is smooth, slopes row by row see more than groups do.
		s.slopes, s.fine = s.fine, s.slopes
		add()
		s.slopes, s.fine = s.fine, s.slopes
	}
	for range 5 {
		trials := make([]trial, 2*len(ways))
		Each(len(trials), func(k int) {
			way := ways[k/2]
			trials[k] = s.try(way.h, way.g, *damping*[]float64{1, 10}[k%2])
		})
		s.Evals += len(trials)
		best := trials[0]
		for _, t := range trials[1:] {
			if t.cost < best.cost {
				best = t
			}
		}
		if best.cost < s.Cost {
			s.X, s.Residuals, s.Cost = best.x, best.r, best.cost
			*damping = max(best.damping/10, 1e-6)
			return true
		}
		*damping *= 100
	}
	return false
}

// A trial is where a damped step would end.
type trial struct {
	x, r    []float64
	cost    float64
	damping float64
}

// try evaluates one damped step.
func (s *Solution) try(h *mat.SymDense, g *mat.VecDense, damping float64) trial {
	p, m := s.Problem, len(s.X)
	a := mat.NewSymDense(m, nil)
	a.CopySym(h)
	for j := range m {
		a.SetSym(j, j, h.At(j, j)*(1+damping)+1e-9)
	}
	var chol mat.Cholesky
	var move mat.VecDense
	if !chol.Factorize(a) || chol.SolveVecTo(&move, g) != nil {
		return trial{cost: math.Inf(1)}
	}
	x := slices.Clone(s.X)
	for j := range m {
		x[j] -= move.AtVec(j) * p.Parameters[j].Width
	}
	p.clamp(x)
	r := p.at(x)
	return trial{x, r, p.loss(r, s.Spread), damping}
}

// hold takes the parameters out of a step that lie on a bound and would leave the
// range: what the others do beside them is another step.
func (s *Solution) hold(h *mat.SymDense, g *mat.VecDense) {
	for j, q := range s.Problem.Parameters {
		outward := s.X[j] <= q.Low && g.AtVec(j) > 0 || s.X[j] >= q.High && g.AtVec(j) < 0
		if !outward {
			continue
		}
		g.SetVec(j, 0)
		for k := range s.X {
			h.SetSym(j, k, 0)
		}
	}
}
