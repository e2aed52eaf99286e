package sim

import (
	"context"
	"strings"
	"testing"
	"time"

	"kvfleet/traces"
)

// Ranks that step together conserve what engines of their own do, are slower, and
// die together.
func TestLockstepRanks(t *testing.T) {
	f := smallFleet(t).Scale(4)
	cfg := Config{
		Fleet: f, Policy: choice(t, "prefix_affinity"), Users: 12, Window: 20 * time.Second,
		Workload: smallLoad(t, f), Audit: true,
	}
	apart, _ := rowsOf(t, cfg)
	f.Engine.LockstepRanks = 2
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	together, _ := rowsOf(t, cfg)
	again, _ := rowsOf(t, cfg)
	sameRows(t, "again", again, together)
	if len(together) < len(apart)/2 || len(together) >= len(apart) {
		t.Errorf("%d requests on ranks that step together, %d on engines of their own: want fewer, and over half", len(together), len(apart))
	}
	cfg.Faults = []Fault{
		{At: 5 * time.Second, Replica: "replica-3", Kind: "kill"},
		{At: 9 * time.Second, Replica: "replica-2", Kind: "restart"},
	}
	served := map[string][2]int{} // while dead, and after
	cfg.Rows = func(r *traces.Row) {
		n := served[r.Replica]
		if at := time.Duration(r.FirstTokenAt); r.Outcome == traces.Success && at > 5*time.Second && at < 9*time.Second {
			n[0]++
		} else if at > 11*time.Second {
			n[1]++
		}
		served[r.Replica] = n
	}
	if _, err := Run(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"replica-2", "replica-3"} {
		if n := served[name]; n[0] != 0 || n[1] == 0 {
			t.Errorf("%s: %d answers began while it and its rank were dead, %d after the restart; want none and some", name, n[0], n[1])
		}
	}
	for _, name := range []string{"replica-0", "replica-1"} {
		if served[name][0] == 0 {
			t.Errorf("%s is another deployment and served nothing meanwhile", name)
		}
	}
}

func TestLockstepRanksDivideTheFleet(t *testing.T) {
	f := smallFleet(t)
	f.Engine.LockstepRanks = 2
	if err := f.Validate(); err == nil || !strings.Contains(err.Error(), "engine.lockstep_ranks: got 2, which does not divide the 3 replicas") {
		t.Errorf("got %v", err)
	}
}
