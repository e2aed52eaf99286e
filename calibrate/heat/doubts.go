package heat

import (
	"math"

	"kvfleet/sim"
	"kvfleet/sim/thermal"
)

// doubts are what a reader of the result must know.
func (f *fitter) doubts() {
	p := f.base.Cards[0]
	if capped := f.t.capped(); len(capped) == 0 {
		f.warn("no bin of work was under the power limit throughout: compute_w, static_w and leakage_w_per_k rest on power alone")
	} else if m := median(capped); math.Abs(m/p.PowerLimitW-1) > 0.03 {
		f.warn("bins under the power limit draw %.1f W at the median, the base's limit is %.4g W", m, p.PowerLimitW)
	}
	var utils []float64
	for i, bins := range f.t.Bins {
		for _, b := range bins {
			if b.State == Loaded {
				utils = append(utils, b.Util)
			}
		}
		if limit, acted := f.t.limit(i); !acted && limit > 0 {
			f.warn("gpu %d: its temperature limit hardly acted: it is known to be above %.1f degrees Celsius only", f.t.GPUs[i], limit)
		}
	}
	if m := median(utils); math.Abs(m-f.base.MeasuredBusy) > 0.05 {
		f.warn("cards at work are busy for %.2f of the time at the median, the base's measured_busy is %.4g", m, f.base.MeasuredBusy)
	}
	if err := valid(f.result.Thermal); err != nil {
		f.warn("the constants found are out of range: %v", err)
	}
}

func valid(t *sim.Thermal) error {
	_, err := thermal.New(t.Cards, t.Coupling, t.AmbientC)
	return err
}

// compare summarizes replayed against measured bins of work.
func (t *Telemetry) compare(got [][]Bin) (out []Residual) {
	for i, bins := range t.Bins {
		var off [3][]float64
		for b, want := range bins {
			if want.State != Loaded {
				continue
			}
			x := got[i][b]
			for k, d := range []float64{x.TempC - want.TempC, x.ClockMHz - want.ClockMHz, x.PowerW - want.PowerW} {
				off[k] = append(off[k], math.Abs(d))
			}
		}
		if len(off[0]) == 0 {
			continue // it never works
		}
		for k, q := range [3][2]string{{"temp_c", "K"}, {"sm_mhz", "MHz"}, {"power_w", "W"}} {
			out = append(out, Residual{GPU: t.GPUs[i], Quantity: q[0], Unit: q[1], Bins: len(off[k]), Median: median(off[k]), P90: quantile(off[k], 0.9)})
		}
	}
	return out
}
