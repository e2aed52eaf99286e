package thermal

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Tick is the internal step: clocks are chosen and temperatures move once a
// tick, at multiples of it since the run began. However Advance is called, the
// ticks are the same, so the result does not depend on the calls.
const Tick = 250 * time.Millisecond

// Activity is what a card did since the last call of Advance.
type Activity struct {
	// Busy is the share of the time, 0 to 1, in which the engine had a step
	// under way, counting its whole span (as the measured draw does).
	Busy float64
	// Prefill is the share of that busy time, 0 to 1, that was compute-bound.
	Prefill float64
}

// Chassis is the cards of one host at one moment. It is not safe for
// concurrent use.
type Chassis struct {
	cards    []card
	ambientC float64
	now      time.Duration // what the last Advance was called with
	ticked   time.Duration // the last whole tick at or before now
}

// New returns a chassis at time 0 with every card at rest and in equilibrium.
// coupling[i][j], K/W, is how much card i's local air warms for every watt that
// card j's sink gives off; the diagonal must be 0, and every row's sum must
// leave the chassis a finite equilibrium. ambient is in degrees Celsius. The
// error joins every fault found.
func New(cards []Params, coupling [][]float64, ambient float64) (*Chassis, error) {
	var all []error
	if len(cards) == 0 {
		all = append(all, errors.New("thermal: cards: got none, want at least 1"))
	}
	for i := range cards {
		all = append(all, cards[i].faults(i))
	}
	all = append(all, couplingFaults(len(cards), coupling)...)
	if math.IsNaN(ambient) || ambient < -50 || ambient > 100 {
		all = append(all, fmt.Errorf("thermal: ambient: got %v, want -50 to 100 degrees Celsius", ambient))
	}
	if err := errors.Join(all...); err != nil {
		return nil, err
	}
	c := &Chassis{cards: make([]card, len(cards)), ambientC: ambient}
	for i := range cards {
		c.cards[i] = newCard(cards[i], coupling[i])
	}
	c.rest()
	return c, nil
}

func couplingFaults(n int, coupling [][]float64) []error {
	var all []error
	if len(coupling) != n {
		return append(all, fmt.Errorf("thermal: coupling: got %d rows, want one per card, %d", len(coupling), n))
	}
	for i, row := range coupling {
		if len(row) != n {
			all = append(all, fmt.Errorf("thermal: coupling: row %d: got %d columns, want %d", i, len(row), n))
			continue
		}
		for j, k := range row {
			switch {
			case !(k >= 0) || math.IsInf(k, 0):
				all = append(all, fmt.Errorf("thermal: coupling: row %d, column %d: got %v, want a finite K/W of at least 0", i, j, k))
			case i == j && k != 0:
				all = append(all, fmt.Errorf("thermal: coupling: row %d, column %d: got %v, want 0: a card's own heat goes through its sink", i, j, k))
			}
		}
	}
	return all
}

// rest puts every card at idle equilibrium, where each sink gives off exactly
// the idle power.
func (c *Chassis) rest() {
	for i := range c.cards {
		k := &c.cards[i]
		k.airC = c.ambientC
		for _, n := range k.neighbours {
			k.airC += n.kPerW * c.cards[n.card].p.IdleW
		}
		k.sinkC = k.airC + k.p.IdleW*k.p.SinkKPerW
		k.dieC = k.sinkC + k.p.IdleW*k.p.DieKPerW
		k.powerW = k.p.IdleW
		k.asleepAt = -1
		k.ceiling = len(k.ladder) - 1
		k.chooseClock()
	}
}

// Advance moves the chassis to time `to` since the run began. busy holds one
// Activity per card for the time since the last call; shares a rounding error
// outside 0 to 1 are cut to it. What the getters say is as of the last whole
// tick. Going back in time, a wrong count of activities or a NaN panics.
func (c *Chassis) Advance(to time.Duration, busy []Activity) {
	if to < c.now {
		panic(fmt.Sprintf("thermal: advance to %v, already at %v", to, c.now))
	}
	if len(busy) != len(c.cards) {
		panic(fmt.Sprintf("thermal: %d activities for %d cards", len(busy), len(c.cards)))
	}
	for c.now < to {
		end := min(to, c.ticked+Tick)
		share := float64(end-c.now) / float64(Tick)
		for i := range c.cards {
			c.cards[i].note(busy[i], share)
		}
		c.now = end
		if end == c.ticked+Tick {
			c.ticked = end
			c.tick()
		}
	}
}

// Preheat runs the chassis under a steady activity for d, rounded up to whole
// ticks, and calls the end time 0: a run that follows others starts warm. Only
// before the first Advance; later it panics.
func (c *Chassis) Preheat(d time.Duration, busy []Activity) {
	if c.now != 0 {
		panic(fmt.Sprintf("thermal: preheat at %v, want before the first advance", c.now))
	}
	c.Advance((d+Tick-1)/Tick*Tick, busy)
	for i := range c.cards {
		c.cards[i].asleepAt -= c.now
	}
	c.now, c.ticked = 0, 0
}

// tick integrates one whole tick. Heat given off is read before any card
// moves, so the order of the cards does not matter.
func (c *Chassis) tick() {
	for i := range c.cards {
		k := &c.cards[i]
		k.heatW = (k.sinkC - k.airC) / k.p.SinkKPerW
	}
	for i := range c.cards {
		k := &c.cards[i]
		target := c.ambientC
		for _, n := range k.neighbours {
			target += n.kPerW * c.cards[n.card].heatW
		}
		k.step(c.ticked, target)
	}
}

// ClockMHz is the SM clock at which card i does work now (or would, if it has
// none), MHz.
func (c *Chassis) ClockMHz(i int) float64 { return c.cards[i].ladder[c.cards[i].level].clockMHz }

// ComputeFactor multiplies card i's compute-bound time: 1 at the reference clock,
// where step times were measured, more below it and less above.
func (c *Chassis) ComputeFactor(i int) float64 { return c.cards[i].ladder[c.cards[i].level].compute }

// MemoryFactor multiplies card i's bandwidth-bound time, likewise.
func (c *Chassis) MemoryFactor(i int) float64 { return c.cards[i].ladder[c.cards[i].level].memory }

// Temperature is card i's die temperature, degrees Celsius.
func (c *Chassis) Temperature(i int) float64 { return c.cards[i].dieC }

// Power is card i's mean draw over the last whole tick, W.
func (c *Chassis) Power(i int) float64 { return c.cards[i].powerW }

// Throttled says whether the temperature limit holds card i below the clock
// its power limit alone would allow (bit 0x20 of the driver's reasons).
func (c *Chassis) Throttled(i int) bool { return c.cards[i].throttled }

// State is the temperatures of one card, degrees Celsius.
type State struct{ DieC, SinkC, AirC float64 }

// State returns card i's temperatures.
func (c *Chassis) State(i int) State {
	k := &c.cards[i]
	return State{k.dieC, k.sinkC, k.airC}
}

// SetState starts card i from other temperatures than those at rest, and lets
// its limiter choose a clock for them. The thermal ceiling is left as it is.
func (c *Chassis) SetState(i int, s State) {
	k := &c.cards[i]
	k.dieC, k.sinkC, k.airC = s.DieC, s.SinkC, s.AirC
	k.chooseClock()
}
