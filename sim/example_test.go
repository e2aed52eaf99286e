package sim_test

import (
	"context"
	"fmt"
	"time"

	"kvfleet/policies"
	"kvfleet/sim"
	"kvfleet/traces"
	"kvfleet/traces/workload"
)

// A cell of the published grid, shortened: five replicas, an open loop of four
// requests a second, half of what the fleet's caches hold. Even arrivals make
// the number of requests certain.
func Example() {
	fleet, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := policies.ParseChoice("round_robin")
	if err != nil {
		fmt.Println(err)
		return
	}
	load, err := workload.Published(0.5, 0, fleet.KVTokens(), 1).Resolve()
	if err != nil {
		fmt.Println(err)
		return
	}
	on := map[string]int{}
	result, err := sim.Run(context.Background(), sim.Config{
		Fleet: fleet, Policy: policy, Seed: 1,
		Workload: load, Rate: 4, Epoch: sim.Epoch(sim.DriverOpen, 4, 0.5, 0, 1),
		Window: 50 * time.Second, Warmup: 10 * time.Second,
		Rows: func(r *traces.Row) { on[r.Replica]++ },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := &result.Summary
	fmt.Println(s.Requests, "requests counted,", s.Success, "answered,", s.OutsideWarmup, "in the warm-up")
	fmt.Println(on)
	// Output:
	// 160 requests counted, 160 answered, 40 in the warm-up
	// map[replica-0:40 replica-1:40 replica-2:40 replica-4:40 replica-5:40]
}
