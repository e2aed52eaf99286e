package steps_test

import (
	"context"
	"fmt"

	"kvfleet/calibrate/steps"
	"kvfleet/sim"
	"kvfleet/sim/latency"
)

func Example() {
	fleet, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		panic(err)
	}
	// A card that takes twice as long as the fleet file says over every decode step.
	model, err := latency.New(fleet.Step)
	if err != nil {
		panic(err)
	}
	log := &steps.Log{Path: "slow.csv", Pooled: true}
	for n := 1; n <= 32; n++ {
		for _, each := range []int{500, 4000} {
			ticks, perToken := model.Decode(n, 1, 1)
			busy := ticks + latency.Ticks(n*each)*perToken
			log.Rows = append(log.Rows, steps.Row{DecodeRequests: n, DecodeContext: int64(n * each), Steps: 1, BusyMS: 2 * float64(busy) / 1024 / 1e6})
		}
	}
	result, err := steps.Fit(context.Background(), log, fleet.Step, steps.Options{Seed: 1})
	if err != nil {
		panic(err)
	}
	for _, e := range result.Estimates {
		switch e.Path {
		case "step.weights_ms", "step.decode_ladder[8].ms", "step.host_ms":
			fmt.Printf("%s: %.2f %s, %s\n", e.Path, e.Value, e.Unit, e.Verdict)
		}
	}
	all := result.Regions[len(result.Regions)-1]
	fmt.Printf("%s: %d shapes, held out within 1%%: %v\n", all.Name, all.HeldOut.Rows, all.HeldOut.P90 < 0.01)
	// Output:
	// step.weights_ms: 5.28 ms, prior
	// step.decode_ladder[8].ms: 12.65 ms, measured
	// step.host_ms: 1.46 ms per step, prior
	// all: 64 shapes, held out within 1%: true
}
