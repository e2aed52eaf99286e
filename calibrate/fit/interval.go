package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Draws are n draws of the parameters from what the rows and the priors leave of
// them: normal about the solution, with the precision of the rows' slopes as far
// as they can be trusted, corrected for how blocks of rows vary together (the
// sandwich of the bootstrap over blocks), and that of what was known before. A
// parameter that the rows do not tell has the width of its prior. Draws stay
// within the bounds. The outer index is the draw.
func (s *Solution) Draws(n int, rng *rand.Rand) [][]float64 {
	p := s.Problem
	m := len(s.X)
	scores, blocks := s.scores()
	h, _ := s.rowsNormal()
	trust := s.trust(1)
	// A mean of few blocks varies more than they show.
	few := float64(blocks) / math.Max(1, float64(blocks-1))
	if rows := len(s.Residuals) - p.priors(); rows > m {
		few *= float64(rows) / float64(rows-m)
	}
	scale := make([]float64, m)
	for j := range m {
		meat := 0.0
		for _, g := range scores {
			meat += g.AtVec(j) * g.AtVec(j)
		}
		if h.At(j, j) > 0 && meat > 0 {
			scale[j] = math.Sqrt(h.At(j, j) / (few * meat)) // 1/sqrt of the inflation, over the spread
		}
	}
	precision := mat.NewSymDense(m, nil)
	for j := range m {
		for k := j; k < m; k++ {
			precision.SetSym(j, k, h.At(j, k)*scale[j]*scale[k])
		}
	}
	s.quieten(precision, trust)
	for j := range m {
		known := p.Parameters[j].Width / p.known(j)
		precision.SetSym(j, j, precision.At(j, j)+known*known)
	}
	var chol mat.Cholesky
	if !chol.Factorize(precision) {
		panic("fit: a precision with priors on its diagonal is singular")
	}
	var upper mat.TriDense
	chol.UTo(&upper)
	draws := make([][]float64, n)
	z := mat.NewVecDense(m, nil)
	for d := range draws {
		for j := range m {
			z.SetVec(j, rng.NormFloat64())
		}
		var move mat.VecDense
		// With U'U the precision, U^-1 z has its inverse as covariance.
		if err := move.SolveVec(&upper, z); err != nil {
			panic(err)
		}
		x := make([]float64, m)
		for j := range m {
			x[j] = s.X[j] + move.AtVec(j)*p.Parameters[j].Width
		}
		p.clamp(x)
		draws[d] = x
	}
	return draws
}

// quieten takes the noise of the slopes out of a matrix of what rows say. Of
// groups it comes off the diagonal, since the noise of one parameter's slopes has
// nothing to do with another's, and what parameters say together stays; row by
// row, where roughness is curvature as well, all that a parameter says shrinks.
func (s *Solution) quieten(a *mat.SymDense, trust []float64) {
	m := a.SymmetricDim()
	for j := range m {
		if s.Problem.Groups != nil {
			a.SetSym(j, j, a.At(j, j)*trust[j]*trust[j])
			continue
		}
		for k := j; k < m; k++ {
			a.SetSym(j, k, a.At(j, k)*trust[j]*trust[k])
		}
	}
	if s.Problem.Groups != nil {
		clip(a)
	}
}

// clip takes from a matrix of what rows say the directions in which, once the
// noise of the slopes is off its diagonal, they say less than nothing.
func clip(a *mat.SymDense) {
	m := a.SymmetricDim()
	var e mat.EigenSym
	if !e.Factorize(a, true) {
		panic("fit: a symmetric matrix has no eigenvalues")
	}
	values := e.Values(nil)
	if values[0] >= 0 {
		return
	}
	var v mat.Dense
	e.VectorsTo(&v)
	a.Zero()
	for k := range m {
		if values[k] <= 0 {
			continue
		}
		for i := range m {
			for j := i; j < m; j++ {
				a.SetSym(i, j, a.At(i, j)+values[k]*v.At(i, k)*v.At(j, k))
			}
		}
	}
}

// known is how well a parameter was known before: its PriorSD, or a quarter of
// its range.
func (p *Problem) known(j int) float64 {
	q := p.Parameters[j]
	if q.PriorSD > 0 {
		return q.PriorSD
	}
	return (q.High - q.Low) / 4
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

// doubt is by how many standard deviations a slope's noise is taken to be larger
// than it looks before a parameter is called identified: 1 of 100 times it is.
const doubt = 2.33

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
	for j := range m {
		prior[j] = p.known(j)
	}
	rows := len(s.Residuals) - p.priors()
	variance := s.Spread * s.Spread
	// In units of the prior, a precision of 1 is what was known before.
	trust := s.trust(doubt)
	a, alone := mat.NewSymDense(m, nil), make([]float64, m)
	for j := range m {
		for k := j; k < m; k++ {
			sum := 0.0
			for i := range rows {
				sum += s.weights[i] * s.slopes.At(i, j) * s.slopes.At(i, k)
			}
			v := sum * prior[j] * prior[k] / variance
			a.SetSym(j, k, v)
		}
	}
	s.quieten(a, trust)
	for j := range m {
		alone[j] = a.At(j, j)
	}
	for j := range m {
		a.SetSym(j, j, a.At(j, j)+1)
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
