package thermal_test

import (
	"fmt"
	"time"

	"kvfleet/sim/thermal"
)

// Two cards side by side, the second badly cooled: alone it keeps its clock,
// beside a busy neighbour it meets its temperature limit and slows down.
func ExampleChassis() {
	good := thermal.Params{
		ReferenceClockMHz: 1545, ClockFloorMHz: 210, ClockTopMHz: 1695, ClockStepMHz: 15,
		PowerLimitW: 280, IdleW: 26, AwakeW: 120, AwakeHold: 16 * time.Second,
		StaticW: 197, ComputeW: 76, BandwidthW: 76, PowerExponent: 2.7,
		LeakageWPerK: 1, LeakageReferenceC: 65,
		DieKPerW: 0.09, DieJPerK: 15, SinkKPerW: 0.08, SinkJPerK: 315, AirLag: 24 * time.Second,
		TemperatureLimitC: 80, HysteresisK: 1, ControlPeriod: time.Second,
		ComputeExponent: 0.85, MemoryExponent: 0.15,
	}
	bad := good
	bad.SinkKPerW = 0.11
	for _, neighbour := range []float64{0, 1} {
		c, err := thermal.New([]thermal.Params{good, bad}, [][]float64{{0, 0.03}, {0.03, 0}}, 20)
		if err != nil {
			fmt.Println(err)
			return
		}
		c.Advance(5*time.Minute, []thermal.Activity{{Busy: neighbour}, {Busy: 1, Prefill: 0.4}})
		fmt.Printf("neighbour busy %v: %.0f MHz, throttled %v, prefill takes %.2f times as long, decode %.2f\n",
			neighbour, c.ClockMHz(1), c.Throttled(1), c.ComputeFactor(1), c.MemoryFactor(1))
	}
	// Output:
	// neighbour busy 0: 1500 MHz, throttled false, prefill takes 1.03 times as long, decode 1.00
	// neighbour busy 1: 1275 MHz, throttled true, prefill takes 1.18 times as long, decode 1.03
}
