package heat

import (
	"fmt"
	"math"
	"slices"

	"kvfleet/calibrate/fit"
	"kvfleet/sim"
)

// drop keeps a slot at its card's constant and says so.
func (f *fitter) drop(j int) {
	draws := column(f.draws, j)
	low, high := fit.Interval(draws)
	how := fmt.Sprintf("the base's: the telemetry would have it %.3g, anywhere from %.3g to %.3g", f.solution.X[j], low, high)
	for k, other := range f.search.slots {
		if k != j && math.Abs(correlation(draws, column(f.draws, k))) > 0.8 {
			how += ", as one with " + f.search.label(other)
		}
	}
	f.search.keep(j, how)
	for k, away := range f.away {
		f.away[k] = slices.Delete(away, j, j+1)
	}
}

func correlation(a, b []float64) float64 {
	ma, mb := mean(a), mean(b)
	var ab, aa, bb float64
	for k := range a {
		ab += (a[k] - ma) * (b[k] - mb)
		aa += (a[k] - ma) * (a[k] - ma)
		bb += (b[k] - mb) * (b[k] - mb)
	}
	return ab / math.Sqrt(max(aa*bb, 1e-300))
}

// report turns the solution into constants, estimates, residuals and warnings.
func (f *fitter) report() {
	end := f.search.trial(f.solution.X)
	f.result.Cost = f.t.cost(f.solution.Residuals)
	out := *f.base
	out.Cards = nil
	for _, g := range f.o.GPUs {
		p := end.cards[slices.Index(f.t.GPUs, g)]
		p.ClockTopMHz = f.read.top.value
		p.AirLag = seconds(p.AirLag.Seconds())
		out.Cards = append(out.Cards, p)
	}
	out.Coupling = scaled(f.base.Coupling, f.at("coupling_k_per_w", everyCard, 1))
	f.result.Thermal = &out
	f.estimates(&out)
	f.result.Residuals = f.t.compare(f.t.replay(&end.setup, end.loads))
	f.doubts()
}

// at is where a slot ended; the fallback if it is not searched.
func (f *fitter) at(name string, card int, fallback float64) float64 {
	if j := f.search.slot(name, card); j >= 0 {
		return f.solution.X[j]
	}
	return fallback
}

func (f *fitter) estimates(out *sim.Thermal) {
	add := func(e fit.Estimate) { f.result.Estimates = append(f.result.Estimates, e) }
	prior := func(path, unit string, value float64, how, advice string) {
		add(fit.Estimate{Path: path, Unit: unit, Value: value, Low: value, High: value, Verdict: fit.Prior, Rows: "none", How: how, Advice: advice})
	}
	stated := func(path, unit string, value float64, how string) {
		add(fit.Estimate{Path: path, Unit: unit, Value: value, Low: value, High: value, Verdict: fit.Stated, Rows: "none", How: how})
	}
	for _, e := range f.beliefs {
		if e.Path == "thermal.ambient_c" && e.Value != f.base.AmbientC {
			e.How += fmt.Sprintf("; the telemetry's room was stated as %.4g", e.Value)
			e.Value, e.Low, e.High = f.base.AmbientC, f.base.AmbientC, f.base.AmbientC
		}
		add(e)
	}
	if f.coupled {
		e := f.estimate("thermal.coupling_k_per_w", "coupling_k_per_w", everyCard)
		e.Draws = nil // a factor of a matrix has no path
		add(e)
	}
	stated("thermal.measured_busy", "share of time", out.MeasuredBusy, "the base's: full load here is the telemetry's load")
	stated("thermal.warm", "s", out.Warm.Seconds(), "the base's")
	p, all := out.Cards[0], "thermal.cards[*]."
	prior(all+"reference_clock_mhz", "MHz", p.ReferenceClockMHz, "the base's: a convention", "comes with the step times: the clock they were measured at")
	floor := f.read.floor.estimate(all+"clock_floor_mhz", "MHz", f.o.Draws, f.o.Seed)
	floor.Draws = nil
	add(floor)
	top := f.read.top.estimate(all+"clock_top_mhz", "MHz", f.o.Draws, f.o.Seed)
	top.Draws = nil // a step of the ladder
	add(top)
	prior(all+"clock_step_mhz", "MHz", p.ClockStepMHz, "the base's: bins are means of clocks, which hide the ladder", "sample the clock without averaging")
	stated(all+"power_limit_w", "W", p.PowerLimitW, "the base's: a setting; "+f.cappedPower())
	add(f.read.idle.estimate(all+"idle_w", "W", f.o.Draws, f.o.Seed))
	add(f.read.hold.estimate(all+"awake_hold", "s", f.o.Draws, f.o.Seed))
	for _, name := range []string{"awake_w", "compute_w"} {
		add(f.estimate(all+name, name, everyCard))
	}
	bandwidth := len(f.result.Estimates)
	prior(all+"bandwidth_w", "W", p.BandwidthW, fmt.Sprintf("%.4g times compute_w, as the base's: the load mixes both phases", f.search.held.ratio), "load with prompts of one output token, then with decoding alone, at one locked clock")
	for _, v := range f.result.Estimates[bandwidth-1].Draws {
		f.result.Estimates[bandwidth].Draws = append(f.result.Estimates[bandwidth].Draws, v*f.search.held.ratio)
	}
	prior(all+"leakage_reference_c", "degrees Celsius", p.LeakageReferenceC, "the base's: a convention, static_w moves with it", "none: any value will do")
	for _, name := range []string{"leakage_w_per_k", "die_j_per_k", "sink_j_per_k", "air_lag"} {
		add(f.estimate(all+name, name, everyCard))
	}
	prior(all+"control_period", "s", p.ControlPeriod.Seconds(), "the base's: bins are longer", "sample temperature and clock four times a second while the temperature limit acts")
	const noTimes, lock = "the base's: telemetry holds no step times", "time prefill and decode steps with the SM clock locked at four or more steps"
	prior(all+"compute_exponent", "-", p.ComputeExponent, noTimes, lock)
	prior(all+"memory_exponent", "-", p.MemoryExponent, noTimes, lock)
	for k, g := range f.o.GPUs {
		i := slices.Index(f.t.GPUs, g)
		for _, name := range []string{"static_w", "die_k_per_w", "sink_k_per_w", "temperature_limit_c"} {
			add(f.estimate(fmt.Sprintf("thermal.cards[%d].%s", k, name), name, i))
		}
	}
}

// estimate is that of a slot, searched or dropped.
func (f *fitter) estimate(path, name string, card int) fit.Estimate {
	j := f.search.slot(name, card)
	if j < 0 {
		k := f.search.kept[slices.IndexFunc(f.search.kept, func(k kept) bool { return k.Name == name && k.card == card })]
		v := k.get(f.search.held.cards[max(0, card)])
		return fit.Estimate{Path: path, Unit: k.unit, Value: v, Low: v, High: v, Verdict: fit.Prior, Rows: "none", How: k.how, Advice: k.advice}
	}
	s := f.search.slots[j]
	e := fit.Estimate{Path: path, Unit: s.unit, Value: f.solution.X[j], Draws: column(f.draws, j), Rows: f.rows(card),
		How: fmt.Sprintf("least squares of replayed temperature, clock, power and throttled share, %d starts, all slots together", f.o.Starts)}
	if name == "static_w" {
		clocked := func(computeW float64) float64 { return f.search.held.clocked(computeW) }
		held := f.search.held.cards[0].ComputeW
		e.Value -= clocked(f.at("compute_w", everyCard, held))
		c := f.search.slot("compute_w", everyCard)
		for k := range e.Draws {
			if c >= 0 {
				held = f.draws[k][c]
			}
			e.Draws[k] -= clocked(held)
		}
	}
	e.Low, e.High = fit.Interval(e.Draws)
	return e
}

func (f *fitter) rows(card int) string {
	var n [3]int
	for i, bins := range f.t.Bins {
		if card == everyCard || card == i {
			for _, b := range bins {
				n[b.State]++
			}
		}
	}
	of := fmt.Sprintf("%d cards", len(f.t.GPUs))
	if card != everyCard {
		of = fmt.Sprintf("gpu %d", f.t.GPUs[card])
	}
	return fmt.Sprintf("%d loaded, %d straddling and %d idle bins of %s", n[Loaded], n[Straddling], n[Idle], of)
}

// capped is the power of loaded bins under the power limit throughout.
func (t *Telemetry) capped() (powers []float64) {
	for _, bins := range t.Bins {
		for _, b := range bins {
			if b.State == Loaded && b.PowerCap > 0.99 && b.Thermal == 0 {
				powers = append(powers, b.PowerW)
			}
		}
	}
	return powers
}

func (f *fitter) cappedPower() string {
	capped := f.t.capped()
	if len(capped) == 0 {
		return "no bin was under the power limit throughout"
	}
	return fmt.Sprintf("%d bins under it throughout draw %.1f W at the median", len(capped), median(capped))
}
