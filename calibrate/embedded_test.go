package calibrate

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"kvfleet/calibrate/fit"
	"kvfleet/sim"
)

const reference = "../../shared/reference/rtx3090"

// The embedded published fleet is this command's output: run again on the step
// log, both probes, the open loop's rows and the telemetry alone, it comes out
// within its intervals, at most one in ten of them aside.
func TestEmbeddedFleetIsReproduced(t *testing.T) {
	if testing.Short() {
		t.Skip("a whole calibration takes some 45 s")
	}
	if _, err := os.Stat(reference); err != nil {
		t.Skip("the published measurements are not here")
	}
	base, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(reference, name) }
	r, err := Run(context.Background(), Inputs{
		Base: base, BaseName: "rtx3090x5", Steps: file("engine_steps.csv"), Thermal: file("thermal.csv"),
		Traces: []string{file("probe_c1_replica0.csv"), file("probe_c32_replica0.csv"), file("rows_session_affinity_open6.csv")},
	}, Options{Seed: 1, Folds: -1})
	if err != nil {
		t.Fatal(err)
	}
	told, outside := 0, 0
	for _, e := range r.Estimates {
		p := base.Provenance[e.Path]
		if e.Verdict != fit.Measured || len(p.Interval) != 2 {
			continue
		}
		told++
		width := p.Interval[1] - p.Interval[0]
		if e.Value >= p.Interval[0] && e.Value <= p.Interval[1] {
			continue
		}
		outside++
		t.Logf("%s: got %.5g, the embedded file has %.5g to %.5g", e.Path, e.Value, p.Interval[0], p.Interval[1])
		if e.Value < p.Interval[0]-width || e.Value > p.Interval[1]+width {
			t.Errorf("%s: got %.5g, over a whole width outside %.5g to %.5g", e.Path, e.Value, p.Interval[0], p.Interval[1])
		}
	}
	if told < 80 || outside*10 > told {
		t.Errorf("%d of %d numbers are outside the embedded file's intervals, want at most a tenth of at least 80", outside, told)
	}
	// Step times: whole shapes held out in turn.
	for _, g := range r.Steps.Regions {
		if g.Name == "all" && (g.HeldOut.Median > 0.03 || g.HeldOut.P90 > 0.08) {
			t.Errorf("held-out step shapes: median %.3f, p90 %.3f, want at most 0.03 and 0.08", g.HeldOut.Median, g.HeldOut.P90)
		}
	}
}
