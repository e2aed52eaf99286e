package report

import (
	"fmt"
	"math"
)

// Limits is what a validation must stay under. A zero limit is not checked.
type Limits struct {
	MaxMedianError   float64 // goodput, stable cells, ratio
	MaxP90Error      float64 // goodput, stable cells, ratio
	MaxWorstError    float64 // goodput, stable cells, ratio
	MaxHitRateMedian float64 // all cells, difference
	MaxHitRateWorst  float64 // all cells, difference
	MaxTTFTP50       float64 // median over all cells, ratio
	MaxTTFTP99       float64 // median over all cells, ratio
	// MaxFrozenError is on prefix_affinity's goodput at the frozen point, a ratio;
	// its lead must then lie in the measured range too.
	MaxFrozenError float64
	RequireWinners bool // every decided point has the right winner
	RequireOverlap bool // every unstable cell's ranges overlap
}

// Check returns one error for every limit that is broken. A limit on something
// no cell has, or that some cell lacks, is broken too: it was not shown to hold.
func (l Limits) Check(v Validation) []error {
	s := v.Summary
	var faults []error
	check := func(limit float64, name string, st Statistic, got Number) {
		switch {
		case limit == 0:
		case st.Cells == 0:
			faults = append(faults, fmt.Errorf("%s: no cell to judge", name))
		case st.Unknown > 0:
			faults = append(faults, fmt.Errorf("%s: unknown in %d of %d cells", name, st.Unknown, st.Cells))
		case !(float64(got) <= limit):
			faults = append(faults, fmt.Errorf("%s is %s, limit %s", name, fixed(got, 5), exact(limit)))
		}
	}
	check(l.MaxMedianError, "median goodput error over stable cells", s.GoodputStable, s.GoodputStable.Median)
	check(l.MaxP90Error, "90th percentile of goodput error over stable cells", s.GoodputStable, s.GoodputStable.P90)
	check(l.MaxWorstError, "worst goodput error over stable cells", s.GoodputStable, s.GoodputStable.Worst)
	check(l.MaxHitRateMedian, "median hit rate error", s.HitRate, s.HitRate.Median)
	check(l.MaxHitRateWorst, "worst hit rate error", s.HitRate, s.HitRate.Worst)
	check(l.MaxTTFTP50, "median TTFT p50 error", s.TTFTP50, s.TTFTP50.Median)
	check(l.MaxTTFTP99, "median TTFT p99 error", s.TTFTP99, s.TTFTP99.Median)
	if l.MaxFrozenError != 0 {
		faults = append(faults, frozenFaults(v.Frozen, l.MaxFrozenError)...)
	}
	if l.RequireWinners {
		faults = append(faults, wrongWinners(v.Winners)...)
	}
	for _, c := range v.Cells {
		if l.RequireOverlap && !c.Stable && !c.Overlap {
			faults = append(faults, fmt.Errorf("%s: simulated goodput %s and measured %s do not overlap",
				c.CellName, span(fixed(c.Simulated.Min, 2), fixed(c.Simulated.Max, 2)), span(fixed(c.Measured.Min, 2), fixed(c.Measured.Max, 2))))
		}
	}
	return faults
}

func frozenFaults(points []FrozenPoint, limit float64) []error {
	if len(points) == 0 {
		return []error{fmt.Errorf("frozen point: not among the cells")}
	}
	var faults []error
	for _, p := range points {
		if !(math.Abs(float64(p.GoodputError)) <= limit) {
			faults = append(faults, fmt.Errorf("frozen point: prefix_affinity's goodput error is %s, limit %s", fixed(p.GoodputError, 5), exact(limit)))
		}
		if !p.Within {
			faults = append(faults, fmt.Errorf("frozen point: the simulated lead over session_affinity is %s, measured %s",
				fixed(p.Simulated.Median, 3), span(fixed(p.Measured.Min, 3), fixed(p.Measured.Max, 3))))
		}
	}
	return faults
}

func wrongWinners(winners []WinnerVerdict) []error {
	if len(winners) == 0 {
		return []error{fmt.Errorf("winners: no point with a decided measured winner to judge")}
	}
	var faults []error
	for _, w := range winners {
		if !w.Right {
			faults = append(faults, fmt.Errorf("working set %s, skew %s: the simulated winner is %s, the measured one %s",
				exact(float64(w.WorkingSet)), exact(float64(w.Skew)), w.Simulated, w.Measured))
		}
	}
	return faults
}
