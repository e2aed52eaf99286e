package calibrate

import (
	"fmt"

	"kvfleet/calibrate/fit"
)

// roomC is the room that telemetry is taken to come from, degrees Celsius.
// Telemetry of cards that are all loaded alike fits rooms of 15 to 25 alike: what
// the room gains, the heat sinks lose.
const roomC = 20

// The rooms that ambient tries, degrees Celsius, and its step.
const (
	coldestRoom = 5.0
	warmestRoom = 45.0
	roomStep    = 0.5
)

// heldShare is the share of the time from which a card that its temperature limit
// holds lets a cell be set aside (../shared/design/methodology.md).
const heldShare = 0.5

// ambient finds the room in which the fleet serves. Telemetry does not tell it
// from the heat sinks, so it is bounded from the other side: cells in which a card
// was held for over half of its time are set aside, and the cells that were kept
// come from a room no warmer than the warmest in which steady work holds none so
// long.
func (r *run) ambient() error {
	t := r.base.Thermal
	best := coldestRoom
	for c := coldestRoom; c <= warmestRoom; c += roomStep {
		share, err := t.Held(c)
		if err != nil {
			return err
		}
		if share > heldShare {
			break
		}
		best = c
	}
	t.AmbientC = best
	r.Estimates = append(r.Estimates, fit.Estimate{
		Path: "thermal.ambient_c", Unit: "degrees Celsius", Value: best, Low: best, High: best, Verdict: fit.Prior,
		How:    fmt.Sprintf("not measured: the warmest half degree in which steady work holds no card by its temperature limit for over half the time, the published rule for setting cells aside; the telemetry is taken to come from a room of %d", roomC),
		Advice: "log the room's temperature with the telemetry",
	})
	return nil
}
