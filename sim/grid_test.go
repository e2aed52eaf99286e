package sim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
		t.Skip("72 cells of 300 simulated seconds")
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
		Fleet: f, Policies: choices, WorkingSets: []float64{0.25, 1, 8}, Skews: []float64{0, 1.4},
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
		MaxTTFTP50: 0.08, MaxTTFTP99: 0.15, RequireWinners: true, RequireOverlap: true,
	}
	for _, broken := range limits.Check(v) {
		t.Error(broken)
	}
	if f := v.Frozen; f == nil {
		t.Error("the frozen point is not among the cells")
	}
	for _, c := range r.Cells {
		if c.Policy != "prefix_affinity" {
			continue
		}
		if c.BusiestReplicaShare < 0.2 || c.BusiestReplicaShare > 0.23 {
			t.Errorf("working set %v, skew %v: busiest replica has %.3f of prefix_affinity's requests, want 0.20 to 0.23", c.WorkingSet, c.Skew, c.BusiestReplicaShare)
		}
		if c.SpillShare < 0.0005 || c.SpillShare > 0.025 {
			t.Errorf("working set %v, skew %v: %.4f of the decisions spill, want 0.0005 to 0.025", c.WorkingSet, c.Skew, c.SpillShare)
		}
	}
}
