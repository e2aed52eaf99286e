package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Draws are n bootstrap draws of the parameters: blocks of residuals are drawn
// with replacement, and each draw is one Newton step of the robust loss away
// from the solution (the one-step bootstrap). Draws stay within the bounds. The
// outer index is the draw.
func (s *Solution) Draws(n int, rng *rand.Rand) [][]float64 {
	p := s.Problem
	m := len(s.X)
	scores, blocks := s.scores()
	h, _ := s.normal()
	trust := s.trust()
	for j := range m {
		for k := j; k < m; k++ {
			h.SetSym(j, k, h.At(j, k)*max(0.1, trust[j])*max(0.1, trust[k]))
		}
	}
	inverse := pseudoInverse(h, s.Spread)
	// A mean of few blocks varies more than its draws do, and the search has
	// already turned each block's score towards zero.
	inflate := math.Sqrt(float64(blocks) / math.Max(1, float64(blocks-1)))
	if rows := len(s.Residuals); rows > m {
		inflate *= math.Sqrt(float64(rows) / float64(rows-m))
	}
	draws := make([][]float64, n)
	sum, move := mat.NewVecDense(m, nil), mat.NewVecDense(m, nil)
	count := make([]int, blocks)
	for d := range draws {
		clear(count)
		for range blocks {
			count[rng.IntN(blocks)]++
		}
		sum.Zero()
		for b, c := range count {
			if c != 1 {
				sum.AddScaledVec(sum, float64(c-1), scores[b])
			}
		}
		move.MulVec(inverse, sum)
		x := make([]float64, m)
		for j := range m {
			x[j] = s.X[j] - inflate*move.AtVec(j)*p.Parameters[j].Width
		}
		p.clamp(x)
		draws[d] = x
	}
	return draws
}

// scores sums each block's weighted gradient, in units of the widths. Priors are
// not drawn: they are no rows.
func (s *Solution) scores() (scores []*mat.VecDense, blocks int) {
	p := s.Problem
	rows, m := len(s.Residuals)-p.priors(), len(s.X)
	block := func(i int) int { return i }
	blocks = rows
	if p.Blocks != nil {
		block = func(i int) int { return p.Blocks[i] }
		blocks = slices.Max(p.Blocks) + 1
	}
	scores = make([]*mat.VecDense, blocks)
	for b := range scores {
		scores[b] = mat.NewVecDense(m, nil)
	}
	for i := range rows {
		g := scores[block(i)]
		for j := range m {
			g.SetVec(j, g.AtVec(j)+s.weights[i]*s.Residuals[i]*s.slopes.At(i, j)*p.Parameters[j].Width)
		}
	}
	// At a minimum the scores sum to zero; on a bound or a staircase they do not,
	// and what is left is no spread.
	mean := mat.NewVecDense(m, nil)
	for _, g := range scores {
		mean.AddVec(mean, g)
	}
	mean.ScaleVec(1/float64(blocks), mean)
	for _, g := range scores {
		g.SubVec(g, mean)
	}
	return scores, blocks
}

// pseudoInverse inverts a normal matrix, leaving directions that the rows do not
// move where they are.
func pseudoInverse(h *mat.SymDense, spread float64) *mat.SymDense {
	m := h.SymmetricDim()
	var e mat.EigenSym
	if !e.Factorize(h, true) {
		panic("fit: a symmetric matrix has no eigenvalues")
	}
	values := e.Values(nil)
	var v mat.Dense
	e.VectorsTo(&v)
	top := values[m-1]
	out := mat.NewSymDense(m, nil)
	for k := range m {
		if values[k] <= top*1e-10 || values[k] <= 0 {
			continue
		}
		for i := range m {
			for j := i; j < m; j++ {
				out.SetSym(i, j, out.At(i, j)+v.At(i, k)*v.At(j, k)/values[k])
			}
		}
	}
	return out
}

// Interval is the central 95% of one parameter's draws.
func Interval(draws []float64) (low, high float64) {
	if len(draws) == 0 {
		return math.NaN(), math.NaN()
	}
	sorted := slices.Clone(draws)
	slices.Sort(sorted)
	at := func(share float64) float64 {
		pos := share * float64(len(sorted)-1)
		k := int(pos)
		if k+1 >= len(sorted) {
			return sorted[k]
		}
		return sorted[k] + (pos-float64(k))*(sorted[k+1]-sorted[k])
	}
	return at(0.025), at(0.975)
}

// A Judgement says how much the rows know of one parameter.
type Judgement struct {
	Name string
	// Left is the share of the prior's standard deviation that the rows leave:
	// near 0 they say it all, near 1 nothing.
	Left float64
	// Partners are the parameters that the rows cannot tell it from: what one
	// gains the other loses.
	Partners []string
}

// Identified says whether the rows tell the parameter.
func (j Judgement) Identified() bool { return j.Left < 0.5 }

func (j Judgement) String() string {
	if len(j.Partners) == 0 {
		return fmt.Sprintf("%s: the rows leave %.0f%% of what was unknown before", j.Name, 100*j.Left)
	}
	return fmt.Sprintf("%s: the rows cannot tell it from %v", j.Name, j.Partners)
}

// Judge measures what the rows say of each parameter against what was known
// before: its PriorSD, or a quarter of its range.
func (s *Solution) Judge() []Judgement {
	p := s.Problem
	m := len(s.X)
	prior := make([]float64, m)
	for j, q := range p.Parameters {
		prior[j] = q.PriorSD
		if prior[j] <= 0 {
			prior[j] = (q.High - q.Low) / 4
		}
	}
	rows := len(s.Residuals) - p.priors()
	variance := s.Spread * s.Spread
	// In units of the prior, a precision of 1 is what was known before.
	trust := s.trust()
	a, alone := mat.NewSymDense(m, nil), make([]float64, m)
	for j := range m {
		for k := j; k < m; k++ {
			sum := 0.0
			for i := range rows {
				sum += s.weights[i] * s.slopes.At(i, j) * s.slopes.At(i, k)
			}
			v := sum * prior[j] * prior[k] / variance * trust[j] * trust[k]
			if j == k {
				alone[j] = v
				v++
			}
			a.SetSym(j, k, v)
		}
	}
	var chol mat.Cholesky
	var inverse mat.SymDense
	if !chol.Factorize(a) || chol.InverseTo(&inverse) != nil {
		panic("fit: a matrix with ones added to its diagonal is singular")
	}
	out := make([]Judgement, m)
	for j := range m {
		out[j] = Judgement{Name: p.Parameters[j].Name, Left: math.Sqrt(inverse.At(j, j))}
		if out[j].Identified() || alone[j] < 1 {
			continue // nothing moves with it: it is not in the rows at all
		}
		for k := range m {
			c := inverse.At(j, k) / math.Sqrt(inverse.At(j, j)*inverse.At(k, k))
			if k != j && math.Abs(c) > 0.7 {
				out[j].Partners = append(out[j].Partners, p.Parameters[k].Name)
			}
		}
	}
	return out
}
