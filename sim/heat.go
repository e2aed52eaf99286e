package sim

import (
	"fmt"
	"slices"
	"time"

	"kvfleet/sim/thermal"
)

// heatEvery is how often clocks follow temperatures. The die's time constant is
// seconds, the heat sink's minutes.
const heatEvery = time.Second

// A chassis is one host's cards at run time.
type chassis struct {
	c        *cluster
	cards    *thermal.Chassis
	replicas []*replica
	gpus     []int
	busy     []thermal.Activity
}

// steadyWork is what cards did before a run that starts warm: they were never
// idle, and half of it was prefill. The split moves a card's power by little.
var steadyWork = thermal.Activity{Busy: 1, Prefill: 0.5}

// heldLength is how long Held looks, after the preheating.
const (
	heldPreheat = 10 * time.Minute
	heldLength  = 10 * time.Minute
)

// Held is the share of the time, 0 to 1, for which steady work on all cards lets
// the hottest one be held by its temperature limit, in a room of that many
// degrees Celsius. The error names what is wrong with the cards.
func (t *Thermal) Held(ambientC float64) (float64, error) {
	cards, err := thermal.New(t.Cards, t.Coupling, ambientC)
	if err != nil {
		return 0, err
	}
	work := make([]thermal.Activity, len(t.Cards))
	for i := range work {
		work[i] = steadyWork
	}
	cards.Preheat(heldPreheat, work)
	held := make([]int, len(work))
	for at := heatEvery; at <= heldLength; at += heatEvery {
		cards.Advance(at, work)
		for i := range held {
			if cards.Throttled(i) {
				held[i]++
			}
		}
	}
	return float64(slices.Max(held)) * heatEvery.Seconds() / heldLength.Seconds(), nil
}

// warmUp builds the chassis and, if the fleet file says so, brings them to the
// temperatures of a fleet that has been working.
func (c *cluster) warmUp() error {
	t := c.fleet.Thermal
	if t == nil {
		return nil
	}
	hosts := map[int]*chassis{}
	for i, r := range c.fleet.Replicas {
		h := hosts[r.chassis]
		if h == nil {
			cards, err := thermal.New(t.Cards, t.Coupling, t.AmbientC)
			if err != nil {
				return fmt.Errorf("sim: fleet %s: thermal: %w", c.fleet.Name, err)
			}
			h = &chassis{c: c, cards: cards, busy: make([]thermal.Activity, len(t.Cards))}
			hosts[r.chassis] = h
			c.heat = append(c.heat, h)
		}
		h.replicas = append(h.replicas, c.replicas[i])
		h.gpus = append(h.gpus, r.GPU)
	}
	for _, h := range c.heat {
		if t.Warm > 0 {
			for _, g := range h.gpus {
				h.busy[g] = steadyWork
			}
			h.cards.Preheat(t.Warm, h.busy)
		}
		h.apply()
		c.loop.At(heatEvery, rankHeat, h, 0)
	}
	return nil
}

// Fire moves the chassis on by what its engines did since.
func (h *chassis) Fire(at time.Duration, _ int64) {
	clear(h.busy)
	for i, n := range h.replicas {
		n.engine.CatchUp(at)
		busy, prefill := n.engine.Usage()
		worked, prefilled := h.c.fleet.Thermal.second(busy-n.busySeen, prefill-n.prefillSeen)
		if worked <= 0 {
			continue
		}
		n.busySeen += worked
		n.prefillSeen += prefilled
		h.busy[h.gpus[i]] = h.c.fleet.Thermal.activity(worked, prefilled)
	}
	h.cards.Advance(at, h.busy)
	h.apply()
	if h.c.running() {
		h.c.loop.At(at+heatEvery, rankHeat, h, 0)
	}
}

// second is the part of the time booked that belongs to the second that ends.
// Steps are booked when they end, so a second can hold more than a second of
// work: the rest belongs to the next one.
func (t *Thermal) second(worked, prefilled time.Duration) (time.Duration, time.Duration) {
	most := time.Duration(t.MeasuredBusy * float64(heatEvery))
	if worked <= most {
		return worked, prefilled
	}
	return most, time.Duration(float64(prefilled) * float64(most) / float64(worked))
}

// activity is a second with that much time in steps, and in steps that prefill.
func (t *Thermal) activity(worked, prefilled time.Duration) thermal.Activity {
	return thermal.Activity{
		Busy:    min(1, float64(worked)/float64(heatEvery)/t.MeasuredBusy),
		Prefill: min(1, float64(prefilled)/float64(worked)),
	}
}

func (h *chassis) apply() {
	for i, n := range h.replicas {
		n.engine.SetClock(h.cards.ComputeFactor(h.gpus[i]), h.cards.MemoryFactor(h.gpus[i]))
	}
}
