package steps

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// A term is one unknown's coefficient in an equation.
type term struct {
	at int
	v  float64
}

// An equation says that its terms sum to y, with a standard deviation of 1 if it
// is a prior, else of the scale that the solution finds.
type equation struct {
	terms []term
	y     float64
	prior bool
}

// A linear system is solved by robust least squares: equations that are no priors
// count linearly beyond huberSize scales.
type linear struct {
	x       []float64
	inverse *mat.SymDense // covariance of x
	scale   float64
	eqs     []equation
	weights []float64 // by equation, the scale and the robust weight included
	pool    []float64 // standardized residuals
}

const (
	huberSize = 2
	// leastScale and firstScale bound and start the relative error of a step.
	leastScale, firstScale = 0.002, 0.01
	saturated              = 0.9 // leverage from which a residual says nothing
)

// solve finds n unknowns; every one of them must have a prior or a say in an
// equation, or it panics.
func solve(eqs []equation, n int, scale float64) *linear {
	l := &linear{eqs: eqs, scale: scale, weights: make([]float64, len(eqs)), inverse: mat.NewSymDense(n, nil)}
	leverage := make([]float64, len(eqs))
	for i := range eqs {
		l.weights[i] = 1
		if !eqs[i].prior {
			l.weights[i] = 1 / (scale * scale)
		}
	}
	for round := range 8 {
		l.once(n, leverage)
		if before := l.scale; !l.reweigh(leverage) && round > 0 && math.Abs(l.scale/before-1) < 0.01 {
			break
		}
	}
	return l
}

// once solves at the given weights.
func (l *linear) once(n int, leverage []float64) {
	h, g := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i, e := range l.eqs {
		for _, a := range e.terms {
			g.SetVec(a.at, g.AtVec(a.at)+l.weights[i]*a.v*e.y)
			for _, b := range e.terms {
				if a.at <= b.at {
					h.SetSym(a.at, b.at, h.At(a.at, b.at)+l.weights[i]*a.v*b.v)
				}
			}
		}
	}
	// Unknowns of very different sizes: scale to a unit diagonal.
	d := make([]float64, n)
	for j := range d {
		d[j] = 1 / math.Sqrt(h.At(j, j))
	}
	for j := range n {
		for k := j; k < n; k++ {
			h.SetSym(j, k, h.At(j, k)*d[j]*d[k])
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(h) || chol.InverseTo(l.inverse) != nil {
		panic("steps: an unknown without a prior")
	}
	for j := range n {
		for k := j; k < n; k++ {
			l.inverse.SetSym(j, k, l.inverse.At(j, k)*d[j]*d[k])
		}
	}
	var x mat.VecDense
	x.MulVec(l.inverse, g)
	l.x = x.RawVector().Data
	for i, e := range l.eqs {
		sum := 0.0
		for _, a := range e.terms {
			for _, b := range e.terms {
				sum += a.v * b.v * l.inverse.At(a.at, b.at)
			}
		}
		leverage[i] = min(1, sum*l.weights[i])
	}
}

func (e *equation) residual(x []float64) float64 {
	r := -e.y
	for _, a := range e.terms {
		r += a.v * x[a.at]
	}
	return r
}

// reweigh takes the scale and the robust weights from the residuals and says
// whether a weight changed.
func (l *linear) reweigh(leverage []float64) bool {
	var free, sizes []float64
	std := make([]float64, len(l.eqs))
	for i := range l.eqs {
		if l.eqs[i].prior {
			continue
		}
		std[i] = l.eqs[i].residual(l.x)
		if leverage[i] < saturated {
			std[i] /= math.Sqrt(1 - leverage[i])
			free = append(free, std[i])
			sizes = append(sizes, math.Abs(std[i]))
		}
	}
	if len(sizes) >= 5 {
		l.scale = max(leastScale, 1.4826*median(sizes))
	}
	changed := false
	for i := range l.eqs {
		if l.eqs[i].prior {
			continue
		}
		w := 1 / (l.scale * l.scale)
		if a := math.Abs(std[i]) / l.scale; a > huberSize {
			w *= huberSize / a
		}
		changed = changed || math.Abs(w/l.weights[i]-1) > 0.01
		l.weights[i] = w
	}
	l.pool = l.pool[:0]
	for _, r := range free {
		l.pool = append(l.pool, min(max(r/l.scale, -3), 3))
	}
	return changed
}

// sd is an unknown's standard deviation.
func (l *linear) sd(j int) float64 { return math.Sqrt(l.inverse.At(j, j)) }

// draw is one draw of the unknowns: residuals of all equations are drawn with
// replacement, priors from their distribution.
func (l *linear) draw(rng *rand.Rand) []float64 {
	g := mat.NewVecDense(len(l.x), nil)
	for i, e := range l.eqs {
		v := rng.NormFloat64()
		if !e.prior && len(l.pool) >= 10 {
			v = l.pool[rng.IntN(len(l.pool))]
		}
		v *= math.Sqrt(l.weights[i])
		for _, a := range e.terms {
			g.SetVec(a.at, g.AtVec(a.at)+v*a.v)
		}
	}
	var move mat.VecDense
	move.MulVec(l.inverse, g)
	x := slices.Clone(l.x)
	for j := range x {
		x[j] += move.AtVec(j)
	}
	return x
}
