package calibrate

import (
	"fmt"

	"kvfleet/calibrate/fit"
)

// The rooms that telemetry of cards that are all loaded alike fits alike, degrees
// Celsius: what the room gains, the heat sinks lose. The middle is the one it is
// taken to come from.
const (
	coldestRoom = 15.0
	warmestRoom = 25.0
	roomC       = (coldestRoom + warmestRoom) / 2
	roomStep    = 0.5
)

// heldShare is the share of the time from which a card that its temperature limit
// holds lets a cell be set aside (../shared/design/methodology.md).
const heldShare = 0.5

// ambient finds the room in which the fleet serves. Telemetry does not tell it
// from the heat sinks, so it is bounded from the other side: cells in which a card
// was held for over half of its time are set aside, and the cells that were kept
// come from a room no warmer than the warmest in which steady work holds none so
// long. What is left is from there down to the coldest room that the telemetry
// fits; the requests move it further, within a degree or so.
func (r *run) ambient() error {
	t := r.base.Thermal
	bound := coldestRoom
	for c := coldestRoom; c <= warmestRoom; c += roomStep {
		share, err := t.Held(c)
		if err != nil {
			return err
		}
		if share > heldShare {
			break
		}
		bound = c
	}
	t.AmbientC = (coldestRoom + bound) / 2
	r.Estimates = append(r.Estimates, fit.Estimate{
		Path: "thermal.ambient_c", Unit: "degrees Celsius", Value: t.AmbientC, Low: t.AmbientC, High: t.AmbientC, Verdict: fit.Prior,
		How:    fmt.Sprintf("not measured: the middle between %g degrees, the coldest room that fits the telemetry, and %g, the warmest in which steady work holds no card by its temperature limit for over half the time (the published rule for setting cells aside)", coldestRoom, bound),
		Advice: "log the room's temperature with the telemetry",
	})
	return nil
}
