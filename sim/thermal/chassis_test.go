package thermal

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func full(n int) []Activity {
	out := make([]Activity, n)
	for i := range out {
		out[i] = Activity{Busy: 1, Prefill: 0.4}
	}
	return out
}

// However the same history is cut into calls, the chassis ends alike.
func TestCallsDoNotMatter(t *testing.T) {
	h := readHost(t)
	few, many := h.chassis(t), h.chassis(t)
	rng := rand.New(rand.NewPCG(1, 2))
	at := time.Duration(0)
	for range 200 {
		busy := make([]Activity, measuredCards)
		for i := range busy {
			busy[i] = Activity{Busy: rng.Float64(), Prefill: rng.Float64()}
		}
		end := at + time.Duration(1+rng.Int64N(int64(3*time.Second)))
		few.Advance(end, busy)
		for at < end {
			at = min(end, at+time.Duration(1+rng.Int64N(int64(100*time.Millisecond))))
			many.Advance(at, busy)
		}
	}
	for i := range h.Cards {
		if few.ClockMHz(i) != many.ClockMHz(i) || math.Abs(few.Temperature(i)-many.Temperature(i)) > 1e-6 {
			t.Errorf("card %d: got %v MHz, %v degrees in many calls, want %v, %v as in few", i,
				many.ClockMHz(i), many.Temperature(i), few.ClockMHz(i), few.Temperature(i))
		}
	}
}

// A time that is no whole tick changes nothing until the tick is whole, and the
// part before it counts then.
func TestPartOfATick(t *testing.T) {
	c := readHost(t).chassis(t)
	before := c.State(0)
	c.Advance(Tick-1, full(6))
	if c.State(0) != before {
		t.Errorf("inside a tick: got %v, want still %v", c.State(0), before)
	}
	c.Advance(Tick, make([]Activity, 6))
	if c.Power(0) < 200 {
		t.Errorf("after the tick: got %.0f W, want the work in it counted", c.Power(0))
	}
}

// The closed form of a tick equals small explicit steps of the same network.
func TestRelaxationTwin(t *testing.T) {
	h := readHost(t)
	k := newCard(h.Cards[3], h.Coupling[3])
	p := k.p
	const steps = 200_000
	die, sink := 40.0, 31.0
	for range steps {
		up := (die - sink) / p.DieKPerW
		out := (sink - 20) / p.SinkKPerW
		dt := Tick.Seconds() / steps
		die += dt * (250 - up) / p.DieJPerK
		sink += dt * (up - out) / p.SinkJPerK
	}
	sinkEnd := 20 + 250*p.SinkKPerW
	dieEnd := sinkEnd + 250*p.DieKPerW
	gotDie := dieEnd + k.relax[0][0]*(40-dieEnd) + k.relax[0][1]*(31-sinkEnd)
	gotSink := sinkEnd + k.relax[1][0]*(40-dieEnd) + k.relax[1][1]*(31-sinkEnd)
	if math.Abs(gotDie-die) > 1e-4 || math.Abs(gotSink-sink) > 1e-4 {
		t.Errorf("one tick: got die %.5f, sink %.5f, want %.5f, %.5f", gotDie, gotSink, die, sink)
	}
}

// What is drawn is either given off or stored, at every moment, and in
// equilibrium all of it is given off.
func TestEnergyIsConserved(t *testing.T) {
	c := readHost(t).chassis(t)
	stored := func() float64 {
		sum := 0.0
		for i := range c.cards {
			sum += c.cards[i].dieC*c.cards[i].p.DieJPerK + c.cards[i].sinkC*c.cards[i].p.SinkJPerK
		}
		return sum
	}
	flow := func() (heat float64) {
		for i := range c.cards {
			heat += (c.cards[i].sinkC - c.cards[i].airC) / c.cards[i].p.SinkKPerW
		}
		return heat
	}
	start, drawn, given := stored(), 0.0, 0.0
	for n := 1; n <= 2000; n++ {
		before := flow()
		c.Advance(time.Duration(n)*Tick, full(6))
		for i := range c.cards {
			drawn += c.Power(i) * Tick.Seconds()
		}
		given += (before + flow()) / 2 * Tick.Seconds()
		if off := drawn - given - (stored() - start); math.Abs(off) > 0.002*drawn+1 {
			t.Fatalf("tick %d: %.0f J drawn, %.0f given off, %.0f stored: %.0f J missing", n, drawn, given, stored()-start, off)
		}
	}
	h := readHost(t)
	half := full(6)
	for i := range half {
		half[i].Busy = 0.5
		h.Cards[i].PowerLimitW = 500 // no limit acts, so the equilibrium is a fixed point
	}
	c = h.chassis(t)
	c.Advance(2*time.Hour, half)
	power := 0.0
	for i := range c.cards {
		power += c.Power(i)
	}
	if math.Abs(power-flow()) > 0.01 {
		t.Errorf("in equilibrium: got %.3f W given off, want the %.3f W drawn", flow(), power)
	}
}

// A card held by temperature stays near its limit and moves its clock rarely; a
// band of nothing makes it move much more.
func TestHysteresisDoesNotChatter(t *testing.T) {
	moves := func(hysteresis float64) (n int, low, high float64) {
		h := readHost(t)
		for i := range h.Cards {
			h.Cards[i].HysteresisK = hysteresis
		}
		c := h.chassis(t)
		c.Advance(20*time.Minute, full(6))
		low, high = c.Temperature(3), c.Temperature(3)
		last := c.ClockMHz(3)
		for s := range 600 {
			c.Advance(20*time.Minute+time.Duration(s+1)*time.Second, full(6))
			if c.ClockMHz(3) != last {
				n++
			}
			last = c.ClockMHz(3)
			low, high = min(low, c.Temperature(3)), max(high, c.Temperature(3))
		}
		return n, low, high
	}
	limit := readHost(t).Cards[3].TemperatureLimitC
	n, low, high := moves(1)
	if n > 60 || low < limit-2 || high > limit+1 {
		t.Errorf("ten minutes at the limit: got %d moves between %.2f and %.2f degrees, want at most 60 near %.1f", n, low, high, limit)
	}
	if chatter, _, _ := moves(0.001); chatter <= 2*n+10 {
		t.Errorf("without a band: got %d moves, want many more than the %d with it", chatter, n)
	}
}

// More work, a warmer room or a busier neighbour never cool a card or speed it up.
func TestMonotonic(t *testing.T) {
	ends := func(ambient, own, neighbour float64) (temp, clock float64) {
		h := readHost(t)
		h.AmbientC = ambient
		for i := range h.Cards {
			h.Cards[i].TemperatureLimitC = 200 // the ceiling moves in whole steps; leave it out
		}
		c := h.chassis(t)
		work := make([]Activity, 6)
		work[3], work[2], work[4] = Activity{Busy: own}, Activity{Busy: neighbour}, Activity{Busy: neighbour}
		c.Advance(10*time.Minute, work)
		return c.Temperature(3), c.ClockMHz(3)
	}
	lastT, lastF := ends(20, 0, 0)
	for step := 1; step <= 20; step++ {
		x := float64(step) / 20
		for name, got := range map[string]func() (float64, float64){
			"own work":       func() (float64, float64) { return ends(20, x, 0) },
			"neighbour work": func() (float64, float64) { return ends(20, 0.5, x) },
			"ambient":        func() (float64, float64) { return ends(20+10*x, 0, 0) },
		} {
			if temp, clock := got(); temp <= lastT || clock > lastF {
				t.Errorf("%s at %.2f: got %.2f degrees at %.0f MHz, want warmer than at rest, %.2f, and no faster than %.0f", name, x, temp, clock, lastT, lastF)
			}
		}
	}
	for _, f := range []func(x float64) (float64, float64){
		func(x float64) (float64, float64) { return ends(20, x, 0) },
		func(x float64) (float64, float64) { return ends(20, 1, x) },
		func(x float64) (float64, float64) { return ends(20+10*x, 1, 1) },
	} {
		lastT, lastF := f(0)
		for step := 1; step <= 20; step++ {
			temp, clock := f(float64(step) / 20)
			if temp < lastT-0.3 || clock > lastF { // one ladder step is worth up to 0.3 K
				t.Errorf("step %d: got %.2f degrees at %.0f MHz, want no cooler than %.2f nor faster than %.0f", step, temp, clock, lastT, lastF)
			}
			lastT, lastF = temp, clock
		}
	}
}

// A chassis left alone stays as New made it; one that has worked comes back.
func TestRest(t *testing.T) {
	c := readHost(t).chassis(t)
	rest := make([]State, 6)
	for i := range rest {
		rest[i] = c.State(i)
	}
	c.Advance(time.Hour, make([]Activity, 6))
	c.Advance(2*time.Hour, full(6))
	warm := c.Temperature(3)
	c.Advance(3*time.Hour, make([]Activity, 6))
	for i := range rest {
		if got := c.State(i); math.Abs(got.DieC-rest[i].DieC) > 1e-6 || c.ClockMHz(i) != 1695 || c.Throttled(i) {
			t.Errorf("card %d: got %v, %v MHz after rest, want %v, 1695", i, got, c.ClockMHz(i), rest[i])
		}
	}
	if warm < rest[3].DieC+30 {
		t.Errorf("at work: got %.1f degrees, want far above %.1f", warm, rest[3].DieC)
	}
}

// A preheated chassis goes on as the chassis that was heated did.
func TestPreheat(t *testing.T) {
	h := readHost(t)
	a, b := h.chassis(t), h.chassis(t)
	a.Advance(time.Minute, full(6))
	b.Preheat(time.Minute, full(6))
	idle := make([]Activity, 6)
	for s := range 30 {
		a.Advance(time.Minute+time.Duration(s+1)*time.Second, idle)
		b.Advance(time.Duration(s+1)*time.Second, idle)
		if a.State(2) != b.State(2) || a.Power(2) != b.Power(2) {
			t.Fatalf("second %d: got %v, %v W, want %v, %v W", s+1, b.State(2), b.Power(2), a.State(2), a.Power(2))
		}
	}
}

// The awake time after work draws more than rest does, and ends.
func TestAwakeAfterWork(t *testing.T) {
	h := readHost(t)
	c := h.chassis(t)
	idle := make([]Activity, 6)
	c.Advance(time.Second, idle)
	if c.Power(0) != h.Card.IdleW {
		t.Errorf("never worked: got %v W, want %v", c.Power(0), h.Card.IdleW)
	}
	c.Advance(2*time.Second, full(6))
	c.Advance(2*time.Second+h.Card.AwakeHold, idle)
	if c.Power(0) != h.Card.AwakeW {
		t.Errorf("within the hold: got %v W, want %v", c.Power(0), h.Card.AwakeW)
	}
	c.Advance(2*time.Second+h.Card.AwakeHold+Tick, idle)
	if c.Power(0) != h.Card.IdleW {
		t.Errorf("after the hold: got %v W, want %v", c.Power(0), h.Card.IdleW)
	}
}

func TestNewNamesEveryFault(t *testing.T) {
	h := readHost(t)
	h.Cards[1].SinkKPerW = 0
	h.Cards[1].AirLag = time.Millisecond
	h.Cards[4].ControlPeriod = 300 * time.Millisecond
	h.Cards[5].ClockTopMHz = math.NaN()
	h.Coupling[2][2] = 0.1
	h.Coupling[3] = h.Coupling[3][:5]
	_, err := New(h.Cards, h.Coupling, math.NaN())
	if err == nil {
		t.Fatal("got no error, want six faults")
	}
	for _, want := range []string{
		"card 1: sink_k_per_w", "card 1: air_lag", "card 4: control_period", "card 5: clock_top_mhz",
		"row 2, column 2", "row 3: got 5 columns", "ambient",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %q", err, want)
		}
	}
	if _, err := New(nil, nil, 20); err == nil {
		t.Error("no cards: got no error, want one")
	}
}

// Misuse by the caller is a bug and stops the run.
func TestMisusePanics(t *testing.T) {
	for name, misuse := range map[string]func(c *Chassis){
		"back in time":     func(c *Chassis) { c.Advance(time.Second, full(6)); c.Advance(0, full(6)) },
		"wrong count":      func(c *Chassis) { c.Advance(time.Second, full(5)) },
		"not a number":     func(c *Chassis) { c.Advance(time.Second, []Activity{{Busy: math.NaN()}, {}, {}, {}, {}, {}}) },
		"preheat too late": func(c *Chassis) { c.Advance(time.Second, full(6)); c.Preheat(time.Second, full(6)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: got no panic, want one", name)
				}
			}()
			misuse(readHost(t).chassis(t))
		}()
	}
}

// One simulated second of a host of six.
func BenchmarkAdvanceSecond(b *testing.B) {
	c := readHost(b).chassis(b)
	work := full(6)
	b.ReportAllocs()
	at := time.Duration(0)
	for b.Loop() {
		at += time.Second
		c.Advance(at, work)
	}
}
