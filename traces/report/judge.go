package report

import (
	"math"
	"slices"
)

// A Statistic is the size of an error over some cells, signs dropped. Cells
// whose error does not exist are counted apart and enter nothing else.
type Statistic struct {
	Cells   int    `json:"cells"`
	Unknown int    `json:"unknown"`
	Median  Number `json:"median"`
	P90     Number `json:"p90"`
	Worst   Number `json:"worst"`
}

// A Summary is the errors over the cells compared. Ratios, except the hit rate.
type Summary struct {
	Cells         int `json:"cells"`
	Stable        int `json:"stable"`
	Inside        int `json:"inside"`         // of Cells
	Overlapping   int `json:"overlapping"`    // of Cells
	UnstableApart int `json:"unstable_apart"` // unstable cells whose ranges do not overlap

	GoodputStable Statistic `json:"goodput_stable"`
	Goodput       Statistic `json:"goodput"`
	HitRate       Statistic `json:"prefix_cache_hit_rate"`
	TTFTP50       Statistic `json:"ttft_p50"`
	TTFTP50Stable Statistic `json:"ttft_p50_stable"`
	TTFTP99       Statistic `json:"ttft_p99"`
	TTFTP99Stable Statistic `json:"ttft_p99_stable"`
	Recomputed    Statistic `json:"recomputed_prefill"`
}

func summarize(cells []ValidationCell) Summary {
	var stable []ValidationCell
	s := Summary{Cells: len(cells)}
	for _, c := range cells {
		if c.Stable {
			stable = append(stable, c)
		} else if !c.Overlap {
			s.UnstableApart++
		}
		if c.Inside {
			s.Inside++
		}
		if c.Overlap {
			s.Overlapping++
		}
	}
	s.Stable = len(stable)
	goodput := func(c ValidationCell) Number { return c.GoodputError }
	ttftP50 := func(c ValidationCell) Number { return c.TTFTP50.Error }
	ttftP99 := func(c ValidationCell) Number { return c.TTFTP99.Error }
	s.GoodputStable, s.Goodput = statistic(stable, goodput), statistic(cells, goodput)
	s.HitRate = statistic(cells, func(c ValidationCell) Number { return c.HitRate.Error })
	s.TTFTP50, s.TTFTP50Stable = statistic(cells, ttftP50), statistic(stable, ttftP50)
	s.TTFTP99, s.TTFTP99Stable = statistic(cells, ttftP99), statistic(stable, ttftP99)
	s.Recomputed = statistic(cells, func(c ValidationCell) Number { return c.Recomputed.Error })
	return s
}

func statistic(cells []ValidationCell, of func(ValidationCell) Number) Statistic {
	var sizes []float64
	s := Statistic{Cells: len(cells)}
	for _, c := range cells {
		if e := of(c); e.known() {
			sizes = append(sizes, math.Abs(float64(e)))
		} else {
			s.Unknown++
		}
	}
	slices.Sort(sizes)
	s.Median, s.P90, s.Worst = Number(Quantile(sizes, 0.5)), Number(Quantile(sizes, 0.9)), Number(Quantile(sizes, 1))
	return s
}

// A WinnerVerdict is a point at which the measured winner's and runner-up's
// ranges do not overlap, among the policies that were both measured and
// simulated there.
type WinnerVerdict struct {
	Driver     string `json:"driver"`
	Load       Number `json:"load"`
	WorkingSet Number `json:"working_set"`
	Skew       Number `json:"skew"`
	Measured   string `json:"measured_winner"`
	RunnerUp   string `json:"measured_runner_up"`
	Simulated  string `json:"simulated_winner"` // tie, if the best are equal
	Right      bool   `json:"right"`
}

func judgeWinners(cells []ValidationCell) []WinnerVerdict {
	var verdicts []WinnerVerdict
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].samePoint(cells[0].CellName) {
			n++
		}
		if w, decided := judgePoint(cells[:n]); decided {
			verdicts = append(verdicts, w)
		}
		cells = cells[n:]
	}
	return verdicts
}

// judgePoint looks at the cells of one point, sorted by policy; the first of
// equally measured ones counts as ahead. A simulated tie has no winner.
func judgePoint(cells []ValidationCell) (w WinnerVerdict, decided bool) {
	if len(cells) < 2 {
		return w, false
	}
	best, second, simulated := 0, -1, 0
	for i := 1; i < len(cells); i++ {
		switch m := cells[i].Measured.Median; {
		case m > cells[best].Measured.Median:
			best, second = i, best
		case second < 0 || m > cells[second].Measured.Median:
			second = i
		}
		if cells[i].Simulated.Median > cells[simulated].Simulated.Median {
			simulated = i
		}
	}
	winner := cells[simulated].Policy
	for i := range cells {
		if i != simulated && cells[i].Simulated.Median == cells[simulated].Simulated.Median {
			winner = "tie"
		}
	}
	c := cells[best]
	w = WinnerVerdict{c.Driver, c.Load, c.WorkingSet, c.Skew, c.Policy, cells[second].Policy, winner, winner == c.Policy}
	return w, !c.Measured.Overlaps(cells[second].Measured)
}

// A FrozenPoint is working set 1, skew 0, for which the lead of prefix_affinity
// over session_affinity is published: +66.2%. Only a plain prefix_affinity and
// session_affinity, with their defaults, count.
type FrozenPoint struct {
	Driver       string `json:"driver"`
	Load         Number `json:"load"`
	GoodputError Number `json:"prefix_affinity_goodput_error"`
	Simulated    Lead   `json:"simulated_lead"`
	Measured     Lead   `json:"measured_lead"`
	// Within says that the simulated median lead is in the measured range.
	Within bool `json:"within"`
}

// A Lead is a goodput ratio (0.66 is 66% more) with the range from worst
// against best repetition to the reverse.
type Lead struct {
	Median Number `json:"median"`
	Min    Number `json:"min"`
	Max    Number `json:"max"`
}

func lead(a, b Spread) Lead {
	d := difference(0, 0, a, b)
	return Lead{d.Ratio, d.RatioMin, d.RatioMax}
}

// frozenPoints finds the point under every load it was run at.
func frozenPoints(cells []ValidationCell) []FrozenPoint {
	var points []FrozenPoint
	for _, a := range cells {
		if a.WorkingSet != 1 || a.Skew != 0 || a.measuredAs != "prefix_affinity" {
			continue
		}
		for _, b := range cells {
			if !b.samePoint(a.CellName) || b.measuredAs != "session_affinity" {
				continue
			}
			f := FrozenPoint{a.Driver, a.Load, a.GoodputError, lead(a.Simulated, b.Simulated), lead(a.Measured, b.Measured), false}
			f.Within = f.Measured.Min <= f.Simulated.Median && f.Simulated.Median <= f.Measured.Max
			points = append(points, f)
		}
	}
	return points
}
