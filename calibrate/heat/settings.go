package heat

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kvfleet/calibrate/fit"
	"kvfleet/sim/thermal"
)

// A reading is a constant read off the telemetry before any search.
type reading struct {
	value  float64
	each   []float64 // one per bin or card it was read off; none if it is the base's
	rows   string
	how    string
	advice string // where it is the base's
}

// settings are what the telemetry says without a replay.
type settings struct {
	floor, top, idle, hold reading
	// boost is the clock that idle cards hold just after work, MHz.
	boost float64
}

// settings reads them, with the base's first card for what the telemetry lacks.
func (t *Telemetry) settings(base thermal.Params) settings {
	s := settings{boost: base.ClockTopMHz}
	const advice = "let the cards rest after the load until they sleep"
	s.floor = reading{value: base.ClockFloorMHz, advice: advice}
	s.idle = reading{value: base.IdleW, advice: advice}
	s.hold = reading{value: base.AwakeHold.Seconds(), advice: advice}
	s.readTop(t, base)
	s.readIdle(t, base.ClockStepMHz)
	s.readHold(t)
	return s
}

// readTop is the mean clock of the second and third bin of work on cards that had
// not worked before, on the next step of the ladder.
func (s *settings) readTop(t *Telemetry, base thermal.Params) {
	s.top = reading{value: base.ClockTopMHz, advice: "begin the telemetry with cool cards, before the load"}
	idle := 0.0
	for _, bins := range t.Bins {
		first := slices.IndexFunc(bins, func(b Bin) bool { return b.State == Loaded })
		if first == 0 && len(bins) > 1 {
			first = 1 // work may have begun within bin 0 or long before it
		}
		for k := first; first >= 0 && k < min(first+2, len(bins)); k++ {
			if bins[k].State == Loaded {
				s.top.each = append(s.top.each, bins[k].ClockMHz)
			}
		}
		for _, b := range bins {
			if b.State == Idle {
				idle = max(idle, b.ClockMHz)
			}
		}
	}
	if len(s.top.each) > 0 {
		step := (mean(s.top.each) - base.ClockFloorMHz) / base.ClockStepMHz
		s.top.value = base.ClockFloorMHz + base.ClockStepMHz*math.Ceil(step-1e-6)
		s.top.rows = fmt.Sprintf("the first %d bins of work on cool cards", len(s.top.each))
		s.top.how = fmt.Sprintf("their mean, %.0f MHz, on the next step of the ladder", mean(s.top.each))
	}
	if idle > s.top.value {
		s.boost = base.ClockFloorMHz + base.ClockStepMHz*math.Round((idle-base.ClockFloorMHz)/base.ClockStepMHz)
	}
	s.boost = max(s.boost, s.top.value)
	s.top.how += fmt.Sprintf("; the search holds the top at %.0f MHz, which idle cards hold just after work", s.boost)
}

// readIdle finds the bins in which cards sleep: two or more at one lowest clock.
func (s *settings) readIdle(t *Telemetry, step float64) {
	lowest := math.Inf(1)
	for _, bins := range t.Bins {
		for _, b := range bins {
			if b.State == Idle {
				lowest = min(lowest, b.ClockMHz)
			}
		}
	}
	var clocks, powers []float64
	for _, bins := range t.Bins {
		for _, b := range bins {
			if b.State == Idle && b.ClockMHz < lowest+step/2 {
				clocks, powers = append(clocks, b.ClockMHz), append(powers, b.PowerW)
			}
		}
	}
	if len(clocks) < 2 || lowest <= 0 || lowest > s.top.value/2 {
		return
	}
	rows := fmt.Sprintf("%d bins of sleeping cards", len(clocks))
	s.floor = reading{value: median(clocks), each: clocks, rows: rows, how: "their median clock"}
	s.idle = reading{value: mean(powers), each: powers, rows: rows, how: "their mean power"}
}

// readHold adds up how long cards kept their clocks after their last work.
func (s *settings) readHold(t *Telemetry) {
	if len(s.floor.each) == 0 {
		return
	}
	var holds []float64
	for i, bins := range t.Bins {
		loads := t.Loads[i]
		if len(loads) == 0 {
			continue
		}
		end := loads[len(loads)-1].To
		b := int((end + t.Length - 1) / t.Length) // the first bin that is idle throughout
		awake := (time.Duration(b)*t.Length - end).Seconds()
		for ; b < len(bins) && bins[b].ClockMHz > s.floor.value*1.01; b++ {
			awake += t.Length.Seconds() * min(1, (bins[b].ClockMHz-s.floor.value)/(s.boost-s.floor.value))
		}
		if b < len(bins) {
			holds = append(holds, awake)
		}
	}
	if len(holds) > 0 {
		s.hold = reading{value: math.Round(mean(holds)*10) / 10, each: holds, rows: fmt.Sprintf("idle bins after the last work of %d cards", len(holds)),
			how: fmt.Sprintf("how long their mean clock says that they held %.0f MHz", s.boost)}
	}
}

// estimate is the reading with draws of its mean.
func (r reading) estimate(path, unit string, draws int, seed uint64) fit.Estimate {
	e := fit.Estimate{Path: path, Unit: unit, Value: r.value, Low: r.value, High: r.value, Rows: r.rows, How: r.how}
	if len(r.each) == 0 {
		e.Verdict, e.Rows, e.How, e.Advice = fit.Prior, "none", "the base's", r.advice
		return e
	}
	rng := stream(seed, path)
	shift := r.value - mean(r.each)
	for range draws {
		sum := 0.0
		for range r.each {
			sum += r.each[rng.IntN(len(r.each))]
		}
		e.Draws = append(e.Draws, sum/float64(len(r.each))+shift)
	}
	e.Low, e.High = fit.Interval(e.Draws)
	return e
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s*1e3)) * time.Millisecond }
