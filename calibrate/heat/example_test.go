package heat_test

import (
	"context"
	"fmt"

	"kvfleet/calibrate/heat"
	"kvfleet/sim"
)

// Two cards of another make than the published fleet's first two, which work at the
// same times: their resistances come out, and how much they heat each other does not.
func Example() {
	telemetry, err := heat.Read("testdata/two-cards.csv")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d cards, bins of %v, at work %v\n", len(telemetry.GPUs), telemetry.Length, telemetry.Loads[0])
	fleet, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		fmt.Println(err)
		return
	}
	base := *fleet.Thermal
	base.Cards, base.Coupling = base.Cards[:2], [][]float64{{0, 0.02}, {0.02, 0}}
	result, err := heat.Fit(context.Background(), telemetry, &base, heat.Options{RoomC: 20, Starts: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range result.Estimates {
		switch e.Path {
		case "thermal.cards[0].die_k_per_w", "thermal.cards[1].die_k_per_w":
			fmt.Printf("%s: %.2f %s, %s\n", e.Path, e.Value, e.Unit, e.Verdict)
		case "thermal.coupling_k_per_w":
			fmt.Printf("%s: %s; %s\n", e.Path, e.Verdict, e.Advice)
		}
	}
	// Output:
	// 2 cards, bins of 5s, at work [{10s 3m8s}]
	// thermal.coupling_k_per_w: prior; load one card alone for some minutes, then with its neighbour: here all cards work at the same times
	// thermal.cards[0].die_k_per_w: 0.12 K/W, measured
	// thermal.cards[1].die_k_per_w: 0.11 K/W, measured
}
