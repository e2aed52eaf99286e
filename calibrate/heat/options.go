package heat

import (
	"errors"
	"fmt"
	"slices"

	"kvfleet/sim"
	"kvfleet/sim/thermal"
)

// Options say how a fit goes.
type Options struct {
	// Seed is of the starting points and the bootstrap draws.
	Seed uint64
	// Starts is from how many points the search starts; 0 is 6.
	Starts int
	// Draws is how many bootstrap draws the intervals rest on; 0 is 400.
	Draws int
	// GPUs are the telemetry's numbers of the base's cards, in the base's order;
	// nil is 0, 1, 2 and so on. Cards of the telemetry beyond them are replayed and
	// fitted along, since they heat the others, and left out of the result.
	GPUs []int
	// RoomC is the air around the host while the telemetry was taken, degrees
	// Celsius; 0 is the base's ambient, which the result keeps in either case.
	RoomC float64
	// PrefillShare is the compute-bound share, 0 to 1, of the busy time of the
	// telemetry's load; 0 is 0.4, that of one request at a time in the published
	// fleet. It counts only where the base's compute_w and bandwidth_w differ.
	PrefillShare float64
	// Progress, if not nil, is told the robust cost after every round of a start.
	Progress func(start, round int, cost float64)
}

func (o Options) check(t *Telemetry, base *sim.Thermal) error {
	if t == nil || base == nil || len(base.Cards) == 0 {
		return errors.New("heat: got no telemetry or no base cards, want both")
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("heat: "+format, args...)) }
	if _, err := thermal.New(base.Cards, base.Coupling, base.AmbientC); err != nil {
		fault("base: %w", err)
	}
	if o.Starts < 0 || o.Draws < 0 {
		fault("options: got %d starts and %d draws, want at least 0", o.Starts, o.Draws)
	}
	if !(o.PrefillShare >= 0 && o.PrefillShare <= 1) {
		fault("options: prefill share: got %v, want 0 to 1", o.PrefillShare)
	}
	if !(o.RoomC >= -50 && o.RoomC <= 100) {
		fault("options: room: got %v, want -50 to 100 degrees Celsius", o.RoomC)
	}
	gpus := o.filled(len(base.Cards)).GPUs
	if len(gpus) != len(base.Cards) {
		fault("options: gpus: got %d, want one for each of the base's %d cards", len(gpus), len(base.Cards))
	}
	for i, g := range gpus {
		if !slices.Contains(t.GPUs, g) {
			fault("options: gpus[%d]: got %d, want one of %s: %v", i, g, t.Path, t.GPUs)
		} else if slices.Index(gpus, g) < i {
			fault("options: gpus[%d]: got %d again, want each once", i, g)
		}
	}
	return errors.Join(faults...)
}

func (o Options) filled(cards int) Options {
	if o.Starts == 0 {
		o.Starts = 6
	}
	if o.Draws == 0 {
		o.Draws = 400
	}
	if o.PrefillShare == 0 {
		o.PrefillShare = 0.4
	}
	if o.GPUs == nil {
		for i := range cards {
			o.GPUs = append(o.GPUs, i)
		}
	}
	return o
}
