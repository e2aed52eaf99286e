package thermal

import (
	"math"
	"time"
)

// card is one card's constants, tables and state.
type card struct {
	p          Params
	ladder     []level
	neighbours []neighbour // non-zero couplings, by card
	relax      [2][2]float64
	airKeep    float64 // share of the air's distance to its target left after a tick

	dieC, sinkC, airC float64
	heatW             float64 // given off by the sink at the start of the tick
	powerW            float64
	level, ceiling    int // indices into ladder
	throttled         bool
	asleepAt          time.Duration // end of the awake time after the last work; before time 0 if there was none
	busy, prefill     float64       // shares of the tick under way noted so far
	mix               float64       // prefill share of the last work done
}

// level is one ladder step with what follows from it.
type level struct {
	clockMHz float64
	scale    float64 // of the clock-dependent power
	compute  float64
	memory   float64
}

type neighbour struct {
	card  int
	kPerW float64
}

func newCard(p Params, coupling []float64) card {
	k := card{p: p, ladder: newLadder(p), relax: relaxation(p), airKeep: math.Exp(-Tick.Seconds() / p.AirLag.Seconds())}
	for j, kPerW := range coupling {
		if kPerW != 0 {
			k.neighbours = append(k.neighbours, neighbour{j, kPerW})
		}
	}
	return k
}

func newLadder(p Params) []level {
	// A thousandth of a step forgives a top that is a multiple only in decimal.
	steps := int((p.ClockTopMHz-p.ClockFloorMHz)/p.ClockStepMHz + 1e-3)
	ladder := make([]level, steps+1)
	for i := range ladder {
		f := p.ClockFloorMHz + float64(i)*p.ClockStepMHz
		slow := p.ReferenceClockMHz / f
		ladder[i] = level{
			clockMHz: f,
			scale:    math.Pow(f/p.ReferenceClockMHz, p.PowerExponent),
			compute:  math.Pow(slow, p.ComputeExponent),
			memory:   math.Pow(slow, p.MemoryExponent),
		}
	}
	return ladder
}

// relaxation is the exact solution over one tick of the two-node network: it
// maps the distance of (die, sink) from equilibrium at the tick's start to that
// at its end, while power and air stand still.
func relaxation(p Params) [2][2]float64 {
	dt := Tick.Seconds()
	a := -1 / (p.DieKPerW * p.DieJPerK)
	b := -a
	c := 1 / (p.DieKPerW * p.SinkJPerK)
	d := -c - 1/(p.SinkKPerW*p.SinkJPerK)
	// b*c > 0, so the eigenvalues are real and apart.
	mid, half := (a+d)/2, math.Sqrt((a-d)*(a-d)/4+b*c)
	fast, slow := mid-half, mid+half
	ef, es := math.Exp(fast*dt)/(fast-slow), math.Exp(slow*dt)/(slow-fast)
	return [2][2]float64{
		{ef*(a-slow) + es*(a-fast), (ef + es) * b},
		{(ef + es) * c, ef*(d-slow) + es*(d-fast)},
	}
}

// note adds what happened in a part of the tick under way.
func (k *card) note(a Activity, share float64) {
	if math.IsNaN(a.Busy) || math.IsNaN(a.Prefill) {
		panic("thermal: an activity is NaN")
	}
	busy := share * min(max(a.Busy, 0), 1)
	k.busy += busy
	k.prefill += busy * min(max(a.Prefill, 0), 1)
}

// step ends the tick at now: draws power, moves the temperatures, lets the
// temperature limit act, and chooses the clock of the next tick. airTarget is
// where the local air is heading.
func (k *card) step(now time.Duration, airTarget float64) {
	busy := min(k.busy, 1)
	if busy > 0 {
		k.mix = min(k.prefill/k.busy, 1)
		k.asleepAt = now + k.p.AwakeHold
	}
	k.busy, k.prefill = 0, 0
	idle := k.p.IdleW
	if now <= k.asleepAt {
		idle = k.p.AwakeW
	}
	k.powerW = busy*k.working(k.level) + (1-busy)*idle

	sinkEnd := k.airC + k.powerW*k.p.SinkKPerW
	dieEnd := sinkEnd + k.powerW*k.p.DieKPerW
	die, sink := k.dieC-dieEnd, k.sinkC-sinkEnd
	k.dieC = dieEnd + k.relax[0][0]*die + k.relax[0][1]*sink
	k.sinkC = sinkEnd + k.relax[1][0]*die + k.relax[1][1]*sink
	k.airC = airTarget + k.airKeep*(k.airC-airTarget)

	if now%k.p.ControlPeriod == 0 {
		k.limitTemperature()
	}
	k.chooseClock()
}

// working is the draw while work is under way at a ladder step, W.
func (k *card) working(level int) float64 {
	dynamic := k.mix*k.p.ComputeW + (1-k.mix)*k.p.BandwidthW
	return k.p.StaticW + k.p.LeakageWPerK*(k.dieC-k.p.LeakageReferenceC) + dynamic*k.ladder[level].scale
}

// limitTemperature lowers the ceiling by one step above the limit and raises it
// by one below the hysteresis band. A first step down starts from the clock in
// force, or it would have no effect for as long as power is the tighter limit.
func (k *card) limitTemperature() {
	switch {
	case k.dieC > k.p.TemperatureLimitC:
		k.ceiling = max(0, min(k.ceiling, k.level)-1)
	case k.dieC < k.p.TemperatureLimitC-k.p.HysteresisK:
		k.ceiling = min(len(k.ladder)-1, k.ceiling+1)
	}
}

// chooseClock takes the highest step under both limits. It walks from the step
// in force, which is rarely more than one away.
func (k *card) chooseClock() {
	top := len(k.ladder) - 1
	power := k.level
	for power > 0 && k.working(power) > k.p.PowerLimitW {
		power--
	}
	for power < top && k.working(power+1) <= k.p.PowerLimitW {
		power++
	}
	k.level = min(power, k.ceiling)
	k.throttled = k.ceiling < power
}
