package sim

import (
	"slices"
	"testing"
	"time"
)

// A fault that begins where another of its kind ends is not ended by it, in
// whatever order the file has them.
func TestFaultsThatTouch(t *testing.T) {
	f := smallFleet(t)
	faults := []Fault{
		{At: 1 * time.Second, For: time.Second, Replica: "replica-0", Kind: "slow", Factor: 8},
		{At: 2 * time.Second, For: 3 * time.Second, Replica: "replica-0", Kind: "slow", Factor: 8},
	}
	cfg := Config{
		Fleet: f, Policy: choice(t, "round_robin"), Users: 6, Window: 6 * time.Second,
		Workload: smallLoad(t, f), Faults: faults,
	}
	inOrder, _ := rowsOf(t, cfg)
	cfg.Faults = slices.Clone(faults)
	slices.Reverse(cfg.Faults)
	swapped, _ := rowsOf(t, cfg)
	sameRows(t, "swapped", swapped, inOrder)
	cfg.Faults = faults[:1]
	if first, _ := rowsOf(t, cfg); len(first) <= len(inOrder) {
		t.Errorf("%d rows with both, %d with the first alone: the second did nothing", len(inOrder), len(first))
	}
}
