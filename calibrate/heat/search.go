package heat

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"kvfleet/calibrate/fit"
	"kvfleet/sim/thermal"
)

// A trial is a setup under way. Instead of a card's static power, which goes up
// where the clock-dependent power goes down, the search moves what the card draws
// at the reference clock and the leakage reference.
type trial struct {
	setup
	drawW    []float64
	computeW float64
	loads    [][]Load
}

func (t *trial) each(f func(p *thermal.Params)) {
	for i := range t.cards {
		f(&t.cards[i])
	}
}

// A kept slot is held at its card's constant, for a reason.
type kept struct {
	slot
	how string
}

// A search is a telemetry, the constants held while it is searched, and the slots.
type search struct {
	t     *Telemetry
	held  setup
	slots []slot
	kept  []kept
}

// newSearch has every slot start from the held constants, and from the telemetry
// where it says more of a card.
func newSearch(t *Telemetry, held setup, coupled bool) *search {
	s := &search{t: t, held: held}
	s.shared()
	if coupled {
		s.slots = append(s.slots, s.couplingFactor(0))
	}
	for i := range t.GPUs {
		s.card(i)
	}
	s.edges()
	return s
}

// keep stops searching a slot.
func (s *search) keep(j int, how string) {
	s.kept = append(s.kept, kept{s.slots[j], how})
	s.slots = slices.Delete(slices.Clone(s.slots), j, j+1)
}

// trial is the setup at a point.
func (s *search) trial(x []float64) *trial {
	t := &trial{setup: s.held, computeW: s.held.cards[0].ComputeW}
	t.cards = slices.Clone(s.held.cards)
	t.startC = make([]float64, len(t.cards))
	for i, loads := range s.t.Loads {
		t.loads = append(t.loads, slices.Clone(loads))
		t.drawW = append(t.drawW, t.draw(t.cards[i]))
	}
	for j, v := range x {
		s.slots[j].put(t, v)
	}
	for i := range t.cards {
		p := &t.cards[i]
		p.ComputeW, p.BandwidthW = t.computeW, t.computeW*t.ratio
		p.StaticW = t.drawW[i] - t.clocked(t.computeW)
	}
	return t
}

func (s *search) residuals(x []float64) []float64 {
	t := s.trial(x)
	return s.t.residuals(s.t.replay(&t.setup, t.loads))
}

// problem is the search from a point, nil for the slots' own starts.
func (s *search) problem(x []float64) *fit.Problem {
	// Half of the residuals are near zero because no limit acts, so the robust
	// spread is small: ten of it is some five standard deviations.
	p := &fit.Problem{Residuals: s.residuals, Blocks: s.t.blocks(), Huber: 10}
	for j, slot := range s.slots {
		if x != nil {
			slot.Start = x[j]
		}
		p.Parameters = append(p.Parameters, slot.Parameter)
	}
	return p
}

// starts are further starting points.
func (s *search) starts(n int, seed uint64) (out [][]float64) {
	for k := range n {
		rng := stream(seed, fmt.Sprint("start ", k))
		x := make([]float64, len(s.slots))
		for j, slot := range s.slots {
			x[j] = slot.Start + (2*rng.Float64()-1)*4*slot.Width
		}
		out = append(out, x)
	}
	return out
}

// stream is the named random stream of a seed.
func stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// slot is where a slot is in the search; -1 if it is kept.
func (s *search) slot(name string, card int) int {
	return slices.IndexFunc(s.slots, func(x slot) bool { return x.Name == name && x.card == card })
}

// label names a slot for a reader.
func (s *search) label(x slot) string {
	if x.card == everyCard {
		return x.Name
	}
	return fmt.Sprintf("%s of gpu %d", x.Name, s.t.GPUs[x.card])
}
