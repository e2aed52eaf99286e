package heat

import (
	"math"
	"slices"
	"time"

	"kvfleet/sim/thermal"
)

// sample is how often a replay reads its cards.
const sample = 500 * time.Millisecond

// A setup is everything a replay of the telemetry needs: the constants of its
// cards, and how warm each die was when it began.
type setup struct {
	cards    []thermal.Params
	coupling [][]float64
	ambientC float64
	startC   []float64
	prefill  float64 // compute-bound share of the load's busy time
	ratio    float64 // of bandwidth_w to compute_w
}

// draw is what a card draws at work at the reference clock and the leakage
// reference, W.
func (s *setup) draw(p thermal.Params) float64 { return p.StaticW + s.clocked(p.ComputeW) }

// clocked is the part of the working power that follows the clock, at the
// reference clock, W.
func (s *setup) clocked(computeW float64) float64 {
	return computeW * (s.prefill + (1-s.prefill)*s.ratio)
}

// chassis builds the cards, each die and its sink in balance with the idle draw
// over air at rest: cards differ because work had gone before.
func (s *setup) chassis() (*thermal.Chassis, error) {
	c, err := thermal.New(s.cards, s.coupling, s.ambientC)
	if err != nil {
		return nil, err
	}
	for i, dieC := range s.startC {
		p := s.cards[i]
		c.SetState(i, thermal.State{DieC: dieC, SinkC: dieC - p.IdleW*p.DieKPerW, AirC: c.State(i).AirC})
	}
	return c, nil
}

// replay runs the telemetry's loads and pools what the cards read as the telemetry
// does; nil if no chassis can have these constants.
func (t *Telemetry) replay(s *setup, work [][]Load) [][]Bin {
	c, err := s.chassis()
	if err != nil {
		return nil
	}
	n := len(t.Bins[0])
	out := make([][]Bin, len(t.GPUs))
	for i := range out {
		out[i] = make([]Bin, n)
	}
	next := make([]int, len(t.GPUs))
	busy := make([]thermal.Activity, len(t.GPUs))
	for b := range n {
		end := time.Duration(b+1) * t.Length
		samples := 0
		for at := time.Duration(b) * t.Length; at+sample <= end; at += sample {
			for i, loads := range work {
				busy[i] = thermal.Activity{}
				for next[i] < len(loads) && loads[next[i]].To <= at {
					next[i]++
				}
				if k := next[i]; k < len(loads) && loads[k].From < at+sample {
					worked := min(at+sample, loads[k].To) - max(at, loads[k].From)
					busy[i] = thermal.Activity{Busy: float64(worked) / float64(sample), Prefill: s.prefill}
				}
			}
			c.Advance(at+sample, busy)
			samples++
			for i := range out {
				x := &out[i][b]
				x.TempC += c.Temperature(i)
				x.ClockMHz += c.ClockMHz(i)
				x.PowerW += c.Power(i)
				if c.Throttled(i) {
					x.Thermal++
				}
			}
		}
		c.Advance(end, busy)
		for i := range out {
			x := &out[i][b]
			x.TempC /= float64(samples)
			x.ClockMHz /= float64(samples)
			x.PowerW /= float64(samples)
			x.Thermal /= float64(samples)
			x.State = t.Bins[i][b].State
		}
	}
	return out
}

// scale is what a bin's means are good for: K, MHz, W and share; 0 leaves a
// quantity out. A bin's clock is the mean of a few samples of a clock that jumps
// with the phases of the work, and the clock of a card that rests says when it
// fell asleep. Where a bin straddles, its mean says when samples were taken.
func scale(bins []Bin, b int) (tempC, clockMHz, powerW, thermalShare float64) {
	switch {
	case bins[b].State == Idle:
		return 2, 0, 20, 0
	case bins[b].State == Straddling && !slices.ContainsFunc(bins[:b], func(x Bin) bool { return x.State == Loaded }):
		return 3, 0, 100, 0
	case bins[b].State == Straddling:
		return 3, 0, 30, 0
	case resumed(bins, b):
		return 1.5, 30, 20, 1
	}
	return 1, 30, 5, 1
}

// residuals are got less measured, in units of scale; nil if got is.
func (t *Telemetry) residuals(got [][]Bin) []float64 {
	if got == nil {
		return nil
	}
	var out []float64
	for i, bins := range t.Bins {
		for b, want := range bins {
			x := got[i][b]
			temp, clock, power, share := scale(bins, b)
			for _, d := range [4][2]float64{
				{x.TempC - want.TempC, temp}, {x.ClockMHz - want.ClockMHz, clock},
				{x.PowerW - want.PowerW, power}, {x.Thermal - want.Thermal, share},
			} {
				if d[1] > 0 {
					out = append(out, d[0]/d[1])
				}
			}
		}
	}
	return out
}

// blocks says which block of rows each residual is of: some bins of one card that
// follow each other, so that what they share is drawn together.
func (t *Telemetry) blocks() []int {
	bins := max(1, int(math.Round(blockLength.Seconds()/t.Length.Seconds())))
	perCard := (len(t.Bins[0]) + bins - 1) / bins
	var out []int
	for i := range t.Bins {
		for b := range t.Bins[i] {
			temp, clock, power, share := scale(t.Bins[i], b)
			for _, s := range []float64{temp, clock, power, share} {
				if s > 0 {
					out = append(out, i*perCard+b/bins)
				}
			}
		}
	}
	return out
}

// blockLength is about the time constant of a heat sink.
const blockLength = 30 * time.Second

// cost is the sum of squared residuals per bin.
func (t *Telemetry) cost(r []float64) float64 {
	if r == nil {
		return math.Inf(1)
	}
	sum := 0.0
	for _, v := range r {
		sum += v * v
	}
	return sum / float64(len(t.Bins)*len(t.Bins[0]))
}
