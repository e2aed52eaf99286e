package report

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Grid is the cells of one driver and load with the repetitions reduced. A
// policy of the sweep that was not simulated there has no points.
type Grid struct {
	Driver      string
	Load        float64
	WorkingSets []float64 // ascending
	Skews       []float64 // ascending
	Policies    []string  // labels, sorted
	Points      []Point   // by working set, skew and label; holes are absent
}

// A Point is one policy at one working set and skew. Doubt, if not empty, is
// why it should be read with care.
type Point struct {
	WorkingSet, Skew float64
	Policy           string // label
	Goodput          Spread // requests/s
	HitRate          Spread // 0..1
	TTFTP50, TTFTP99 Spread // ms
	Recomputed       Spread // tokens per request
	Doubt            string
}

// NewGrid reduces cells of one driver and load; it refuses a mixture, and says
// of what.
func NewGrid(cells []Cell, defaults Defaults) (Grid, error) {
	return newGrid(cells, variants(cells, defaults))
}

// newGrid is NewGrid where the policies of the sweep are known.
func newGrid(cells []Cell, policies []variant) (Grid, error) {
	if len(cells) == 0 {
		return Grid{}, errors.New("no cells to compare")
	}
	cells = sortedCells(cells)
	g := Grid{Driver: cells[0].Driver, Load: cells[0].Load}
	for _, c := range cells {
		if c.Driver != g.Driver || c.Load != g.Load {
			return Grid{}, fmt.Errorf("one comparison cannot mix %s and %s",
				LoadName(g.Driver, g.Load), LoadName(c.Driver, c.Load))
		}
		g.WorkingSets = append(g.WorkingSets, c.WorkingSet)
		g.Skews = append(g.Skews, c.Skew)
	}
	g.WorkingSets = ascending(g.WorkingSets)
	g.Skews = ascending(g.Skews)
	for _, v := range policies {
		g.Policies = append(g.Policies, v.label)
		g.addPoints(cells, v)
	}
	slices.SortFunc(g.Points, func(a, b Point) int { return comparePoint(a, b.WorkingSet, b.Skew, b.Policy) })
	return g, nil
}

// addPoints relies on cells being sorted: the repetitions of a variant at a
// point are then neighbours among the cells of that variant.
func (g *Grid) addPoints(cells []Cell, v variant) {
	var run []Cell
	flush := func() {
		if len(run) > 0 {
			g.Points = append(g.Points, newPoint(v.label, run))
		}
		run = run[:0]
	}
	for _, c := range cells {
		if c.Policy != v.policy || c.Parameters != v.parameters {
			continue
		}
		if len(run) > 0 && (run[0].WorkingSet != c.WorkingSet || run[0].Skew != c.Skew) {
			flush()
		}
		run = append(run, c)
	}
	flush()
}

func newPoint(label string, repetitions []Cell) Point {
	over := func(measure func(Cell) float64) Spread {
		var values []float64
		for _, c := range repetitions {
			values = append(values, measure(c))
		}
		return NewSpread(values)
	}
	return Point{
		WorkingSet: repetitions[0].WorkingSet, Skew: repetitions[0].Skew, Policy: label,
		Goodput:    over(func(c Cell) float64 { return c.GoodputRPS }),
		HitRate:    over(func(c Cell) float64 { return c.PrefixCacheHitRate }),
		TTFTP50:    over(func(c Cell) float64 { return c.TTFTP50MS }),
		TTFTP99:    over(func(c Cell) float64 { return c.TTFTP99MS }),
		Recomputed: over(func(c Cell) float64 { return c.RecomputedPrefillTokens }),
		Doubt:      doubt(repetitions),
	}
}

// doubt marks a point of which any repetition lost over 1% of its requests or
// answered none.
func doubt(repetitions []Cell) string {
	worst := 0.0
	for _, c := range repetitions {
		if c.Success == 0 {
			return "a repetition answered nothing"
		}
		worst = math.Max(worst, float64(c.Failed+c.Dropped)/float64(c.Requests))
	}
	if worst <= 0.01 {
		return ""
	}
	return fmt.Sprintf("%s%% of a repetition's requests failed or were dropped", fixed(Number(100*worst), 1))
}

// at is the point of a policy label; a hole in the grid is a point of unknown
// measures and false.
func (g *Grid) at(workingSet, skew float64, label string) (Point, bool) {
	i, ok := slices.BinarySearchFunc(g.Points, label, func(p Point, label string) int {
		return comparePoint(p, workingSet, skew, label)
	})
	if !ok {
		none := NewSpread(nil)
		return Point{workingSet, skew, label, none, none, none, none, none, ""}, false
	}
	return g.Points[i], true
}

// repetitions is the smallest and largest number of them at any point.
func (g *Grid) repetitions() (least, most int) {
	for i, p := range g.Points {
		n := p.Goodput.Repetitions
		if i == 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	return least, most
}

// LoadName is "closed loop, 32 users" or "open loop, 6 req/s".
func LoadName(driver string, load float64) string {
	unit := "users"
	if driver == "open" {
		unit = "req/s"
	}
	return driver + " loop, " + exact(load) + " " + unit
}

// ByLoad parts cells into groups of one driver and load, in that order.
func ByLoad(cells []Cell) [][]Cell {
	var groups [][]Cell
	for _, c := range sortedCells(cells) {
		n := len(groups)
		if n == 0 || groups[n-1][0].Driver != c.Driver || groups[n-1][0].Load != c.Load {
			groups = append(groups, nil)
			n++
		}
		groups[n-1] = append(groups[n-1], c)
	}
	return groups
}

func comparePoint(p Point, workingSet, skew float64, label string) int {
	return cmp.Or(cmp.Compare(p.WorkingSet, workingSet), cmp.Compare(p.Skew, skew), cmp.Compare(p.Policy, label))
}

func ascending(v []float64) []float64 {
	slices.Sort(v)
	return slices.Compact(v)
}

// Redundant is the median prompt tokens per request that p's policy recomputed
// above the policy that recomputed fewest at p's working set and skew: the prompts
// are the same bytes, so what one policy need not compute is redundant in another.
// NaN where it is not known.
func (g Grid) Redundant(p Point) float64 {
	least := math.NaN()
	for _, q := range g.Points {
		v := float64(q.Recomputed.Median)
		if q.WorkingSet == p.WorkingSet && q.Skew == p.Skew && !(v >= least) && !math.IsNaN(v) {
			least = v
		}
	}
	return float64(p.Recomputed.Median) - least
}
