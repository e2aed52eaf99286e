package report

import (
	"cmp"
	"slices"
)

// A Frame is what every figure states about the cells it shows.
type Frame struct {
	Figure      string `json:"figure"`
	Driver      string `json:"driver"`
	Load        Number `json:"load"`
	Fleet       string `json:"fleet,omitempty"`
	Repetitions [2]int `json:"repetitions"` // fewest and most at any point
}

// A PressureMap is the goodput of Policy against Baseline over working set and
// skew: one Difference per point of the grid, by working set and skew.
type PressureMap struct {
	Frame
	Policy      string       `json:"policy"`
	Baseline    string       `json:"baseline"`
	WorkingSets []Number     `json:"working_sets"`
	Skews       []Number     `json:"skews"`
	Points      []Difference `json:"points"`
}

// A Difference is policy minus baseline at one point, in requests/s and as a
// ratio (0.25 is a quarter more). The range runs from the policy's worst
// repetition against the baseline's best to the reverse; where a side has one
// repetition it is no measure of the spread, and only the JSON holds it.
type Difference struct {
	WorkingSet   Number   `json:"working_set"`
	Skew         Number   `json:"skew"`
	Policy       Spread   `json:"policy_goodput_rps"`
	Baseline     Spread   `json:"baseline_goodput_rps"`
	Ratio        Number   `json:"difference_ratio"`
	RatioMin     Number   `json:"difference_ratio_min"`
	RatioMax     Number   `json:"difference_ratio_max"`
	RPS          Number   `json:"difference_rps"`
	RPSMin       Number   `json:"difference_rps_min"`
	RPSMax       Number   `json:"difference_rps_max"`
	WithinSpread bool     `json:"within_spread"`
	Missing      []string `json:"missing,omitempty"` // labels without a cell here
	Doubts       []string `json:"doubts,omitempty"`
}

// Shown reports whether both sides are there.
func (d Difference) Shown() bool { return d.Missing == nil }

// OneRepetition reports whether a side was run only once, so that nothing says
// how far the difference is from chance.
func (d Difference) OneRepetition() bool {
	return d.Policy.Repetitions == 1 || d.Baseline.Repetitions == 1
}

// difference compares two points; ranges that overlap are within spread. Two
// single repetitions have no range to overlap, even if they are equal.
func difference(workingSet, skew float64, a, b Spread) Difference {
	return Difference{
		WorkingSet: Number(workingSet), Skew: Number(skew), Policy: a, Baseline: b,
		Ratio: ratio(a.Median, b.Median), RatioMin: ratio(a.Min, b.Max), RatioMax: ratio(a.Max, b.Min),
		RPS: a.Median - b.Median, RPSMin: a.Min - b.Max, RPSMax: a.Max - b.Min,
		WithinSpread: a.Overlaps(b) && max(a.Repetitions, b.Repetitions) > 1,
	}
}

// NewPressureMap compares two policy labels of the grid.
func NewPressureMap(g Grid, policy, baseline string) PressureMap {
	m := PressureMap{Frame: g.frame("pressure_map"), Policy: policy, Baseline: baseline,
		WorkingSets: numbers(g.WorkingSets), Skews: numbers(g.Skews)}
	for _, ws := range g.WorkingSets {
		for _, skew := range g.Skews {
			a, hasA := g.at(ws, skew, policy)
			b, hasB := g.at(ws, skew, baseline)
			d := difference(ws, skew, a.Goodput, b.Goodput)
			if !hasA {
				d.Missing = append(d.Missing, policy)
			}
			if !hasB {
				d.Missing = append(d.Missing, baseline)
			}
			d.Doubts = doubts(a, b)
			m.Points = append(m.Points, d)
		}
	}
	return m
}

// A RegimeMap is which policy has the highest median goodput at each point
// where all of them were simulated.
type RegimeMap struct {
	Frame
	Policies    []string `json:"policies"`
	WorkingSets []Number `json:"working_sets"`
	Skews       []Number `json:"skews"`
	Draws       int      `json:"draws,omitempty"` // of a calibrated fleet's constants
	Points      []Regime `json:"points"`
}

// A Regime is the best policy of those at a point, its lead over the runner-up,
// and who is not there to compete. It has won nothing if anybody is missing, and
// without a runner-up there is no lead. Where the best are equal, WithinSpread
// says that it is no win, and Winner is the first of them by name.
type Regime struct {
	WorkingSet Number     `json:"working_set"`
	Skew       Number     `json:"skew"`
	Winner     string     `json:"winner"`
	RunnerUp   string     `json:"runner_up"`
	Lead       Difference `json:"lead"`
	Missing    []string   `json:"missing,omitempty"`
	Drawn      *Drawn     `json:"drawn,omitempty"` // nil where no draw was judged
}

// Incomplete reports whether a policy of the map has no cell here.
func (r Regime) Incomplete() bool { return r.Missing != nil }

// complete is the number of points where every policy has a cell.
func (m RegimeMap) complete() int {
	n := 0
	for _, r := range m.Points {
		if !r.Incomplete() {
			n++
		}
	}
	return n
}

// NewRegimeMap ranks all policies of the grid at every point.
func NewRegimeMap(g Grid) RegimeMap {
	m := RegimeMap{Frame: g.frame("regime_map"), Policies: g.Policies,
		WorkingSets: numbers(g.WorkingSets), Skews: numbers(g.Skews)}
	for _, ws := range g.WorkingSets {
		for _, skew := range g.Skews {
			m.Points = append(m.Points, regime(g, ws, skew))
		}
	}
	return m
}

func regime(g Grid, workingSet, skew float64) Regime {
	r := Regime{WorkingSet: Number(workingSet), Skew: Number(skew)}
	var here []Point
	for _, label := range g.Policies {
		if p, ok := g.at(workingSet, skew, label); ok {
			here = append(here, p)
		} else {
			r.Missing = append(r.Missing, label)
		}
	}
	slices.SortStableFunc(here, func(a, b Point) int { return cmp.Compare(b.Goodput.Median, a.Goodput.Median) })
	first, second := NewSpread(nil), NewSpread(nil)
	if len(here) > 0 {
		r.Winner, first = here[0].Policy, here[0].Goodput
	}
	if len(here) > 1 {
		r.RunnerUp, second = here[1].Policy, here[1].Goodput
	}
	r.Lead = difference(workingSet, skew, first, second)
	r.Lead.Doubts = doubts(here[:min(2, len(here))]...)
	return r
}

// GoodputCurves is goodput against working set, a panel for each skew and in it
// a line for each policy.
type GoodputCurves struct {
	Frame
	Panels []Panel `json:"panels"`
}

// A Panel is one skew.
type Panel struct {
	Skew  Number `json:"skew"`
	Lines []Line `json:"lines"`
}

// A Line is one policy over the working sets it was run at.
type Line struct {
	Policy string      `json:"policy"`
	Points []LinePoint `json:"points"`
}

// A LinePoint is one working set's goodput in requests/s.
type LinePoint struct {
	WorkingSet Number `json:"working_set"`
	Goodput    Spread `json:"goodput_rps"`
}

// NewGoodputCurves lays out the grid's goodput by skew and policy.
func NewGoodputCurves(g Grid) GoodputCurves {
	c := GoodputCurves{Frame: g.frame("goodput_by_working_set")}
	for _, skew := range g.Skews {
		panel := Panel{Skew: Number(skew)}
		for _, label := range g.Policies {
			line := Line{Policy: label, Points: []LinePoint{}}
			for _, ws := range g.WorkingSets {
				if p, ok := g.at(ws, skew, label); ok {
					line.Points = append(line.Points, LinePoint{Number(ws), p.Goodput})
				}
			}
			panel.Lines = append(panel.Lines, line)
		}
		c.Panels = append(c.Panels, panel)
	}
	return c
}

func (g *Grid) frame(figure string) Frame {
	least, most := g.repetitions()
	return Frame{Figure: figure, Driver: g.Driver, Load: Number(g.Load), Repetitions: [2]int{least, most}}
}

func doubts(points ...Point) []string {
	var d []string
	for _, p := range points {
		if p.Doubt != "" {
			d = append(d, p.Policy+": "+p.Doubt)
		}
	}
	return d
}

func numbers(v []float64) []Number {
	n := make([]Number, len(v))
	for i := range v {
		n[i] = Number(v[i])
	}
	return n
}
