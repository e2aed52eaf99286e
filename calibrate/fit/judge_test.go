package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Of four parameters the rows know one, know the sum of two, and know nothing of
// the fourth.
func TestJudge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	l := newLine(rng, 60, 3, -2, func(int) float64 { return rng.NormFloat64() })
	p := &Problem{Parameters: free(1, 0, 0, 0, 7), Residuals: func(x []float64) []float64 {
		return l.residuals([]float64{x[0] + x[2], x[1]})
	}}
	judged := solve(t, p).Judge()
	for j, want := range []struct {
		identified bool
		partners   []string
	}{{false, []string{"c"}}, {true, nil}, {false, []string{"a"}}, {false, nil}} {
		g := judged[j]
		if g.Name != p.Parameters[j].Name || g.Identified() != want.identified || !slices.Equal(g.Partners, want.partners) {
			t.Errorf("%v: identified %v, want %v with partners %v", g, g.Identified(), want.identified, want.partners)
		}
	}
	if left := judged[3].Left; left != 1 {
		t.Errorf("the rows leave %v of what they do not depend on, want all", left)
	}
	if text := judged[0].String(); text != "a: the rows cannot tell it from [c]" {
		t.Errorf("got %q", text)
	}
	if text := judged[3].String(); text != "d: the rows leave 100% of what was unknown before" {
		t.Errorf("got %q", text)
	}
}

// What is left is the textbook's: with a prior of s and n rows of error e that say
// the value itself, 1/sqrt(1 + n s^2/e^2). Weights count as rows do.
func TestLeft(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	const n = 100
	y := make([]float64, n)
	for i := range y {
		y[i] = 5 * rng.NormFloat64()
	}
	p := &Problem{Parameters: free(1, 0), Huber: plain, Residuals: func(x []float64) []float64 {
		r := make([]float64, n)
		for i := range r {
			r[i] = x[0] - y[i]
		}
		return r
	}}
	for _, sd := range []float64{0.1, 0.5, 50} {
		for _, weight := range []float64{1, 4} {
			p.Weights = slices.Repeat([]float64{weight}, n)
			p.Parameters[0].PriorSD = sd
			if sd == 50 { // a quarter of the range, which pulls nowhere
				p.Parameters[0].PriorSD = 0
			}
			s := solve(t, p)
			want := 1 / math.Sqrt(1+weight*n*sd*sd/(s.Spread*s.Spread))
			if got := s.Judge()[0].Left; math.Abs(got-want) > 0.01 {
				t.Errorf("prior of %v, weight %v: the rows leave %.4f, want %.4f", sd, weight, got, want)
			}
		}
	}
}

// chaos is what a chaotic simulator adds to a row: another number at every other
// value, and nothing that tends anywhere.
func chaos(seed uint64, row int, x float64) float64 {
	return rand.New(rand.NewPCG(seed<<32|uint64(row), math.Float64bits(x))).NormFloat64()
}

// Every row jumps when the parameter moves, and none of them says where it should
// be: not where it starts in the middle, nor where only leaving its bound makes rows
// jump, so that it stays there.
func TestNoiseIsNotKnowledge(t *testing.T) {
	const experiments, n = 100, 150
	for _, groups := range []int{0, 1, 4, 30} {
		for _, still := range []float64{-1, 0} { // at which value rows do not jump
			known, fooled, on := 0, 0, 0
			for seed := range uint64(experiments) {
				rng := rand.New(rand.NewPCG(seed, 4))
				y := make([]float64, n)
				for i := range y {
					y[i] = 12 + rng.NormFloat64()
				}
				p := &Problem{Parameters: free(1, 0, 5), Residuals: func(x []float64) []float64 {
					r := make([]float64, n)
					for i := range r {
						r[i] = 3*x[0] - y[i]
						if x[1] != still {
							r[i] += chaos(seed, i, x[1])
						}
					}
					return r
				}}
				p.Parameters[1].Low, p.Parameters[1].High = 0, 10
				if still == 0 {
					p.Parameters[1].Start = 0
				}
				for i := range n {
					if groups > 0 {
						p.Groups = append(p.Groups, i%groups)
					}
				}
				s := solve(t, p)
				judged := s.Judge()
				if judged[0].Identified() {
					known++
				}
				if judged[1].Identified() {
					fooled++
				}
				if s.X[1] == 0 {
					on++
				}
			}
			if known != experiments || fooled > experiments/20 {
				t.Errorf("%d groups, still at %v: of %d experiments the steady parameter was told in %d and the chaotic one in %d, want all and no more than one in twenty", groups, still, experiments, known, fooled)
			}
			if still == 0 && on < experiments/2 {
				t.Errorf("%d groups: only %d of %d ended on the bound", groups, on, experiments)
			}
		}
	}
}

// The share of a slope's square that is no noise is what the rows were made with:
// a steady slope beside chaos, whose mean of two sides has half of its variance.
func TestTrust(t *testing.T) {
	for _, slope := range []float64{0, 0.7, 3} {
		p := &Problem{Parameters: free(1, 5), Residuals: func(x []float64) []float64 {
			r := make([]float64, 4000)
			for i := range r {
				r[i] = slope*(x[0]-5) + chaos(1, i, x[0])
			}
			return r
		}, Rounds: 1}
		p.Parameters[0].Low, p.Parameters[0].High = 4, 6.5
		want := slope * slope / (slope*slope + 0.5)
		if got := solve(t, p).trust(doubt)[0]; math.Abs(got*got-want) > 0.05 {
			t.Errorf("slope %v: a share of %.3f of its square is trusted, want %.3f", slope, got*got, want)
		}
	}
}

// Groups do not hide what is there: rows of two groups that a parameter moves
// opposite ways tell it.
func TestGroupsTell(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var y []float64
	p := &Problem{Parameters: free(1, 0)}
	for i := range 60 {
		p.Groups = append(p.Groups, i%2)
		y = append(y, float64(1-2*(i%2))*4+rng.NormFloat64())
	}
	p.Residuals = func(x []float64) []float64 {
		r := make([]float64, len(y))
		for i := range r {
			r[i] = float64(1-2*(i%2))*x[0] - y[i]
		}
		return r
	}
	s := solve(t, p)
	near(t, "two groups", s.X, []float64{4}, 0.5)
	if !s.Judge()[0].Identified() {
		t.Errorf("two groups: %v", s.Judge())
	}
	p.Groups = make([]int, len(y))
	if s := solve(t, p); s.Judge()[0].Identified() {
		t.Errorf("one group, of rows that move opposite ways: %v, want it untold", s.Judge())
	}
}

func TestVerdicts(t *testing.T) {
	got := fmt.Sprint(Measured, Prior, Refused, Stated, Verdict(9))
	if got != "measured prior refused stated verdict(9)" {
		t.Errorf("got %q", got)
	}
}
