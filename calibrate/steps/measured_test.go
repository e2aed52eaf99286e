package steps_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"kvfleet/calibrate/steps"
	"kvfleet/sim"
	"kvfleet/sim/latency"
)

func base(t testing.TB) latency.Params {
	t.Helper()
	fleet, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		t.Fatal(err)
	}
	return fleet.Step
}

// TestMeasuredSteps fits the steps of the published fleet's card and judges the fit
// on shapes held out.
func TestMeasuredSteps(t *testing.T) {
	l, err := steps.Read("../../../shared/reference/rtx3090/engine_steps.csv")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no measured steps: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		r, err := steps.Fit(context.Background(), l, base(t), steps.Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range r.Regions {
			t.Logf("seed %d, %s: %d shapes, absolute error in sample and held out: median %.2f%% %.2f%%, p90 %.2f%% %.2f%%, worst %.1f%% %.1f%%, bias %+.2f%% %+.2f%%",
				seed, g.Name, g.HeldOut.Rows, 100*g.InSample.Median, 100*g.HeldOut.Median, 100*g.InSample.P90, 100*g.HeldOut.P90,
				100*g.InSample.Worst, 100*g.HeldOut.Worst, 100*g.InSample.Bias, 100*g.HeldOut.Bias)
		}
		for _, want := range []struct {
			region      string
			rows        int
			median, p90 float64 // held out
		}{
			{"prefill only", 9, 0.025, 0.06},
			{"decode only, up to 128", 117, 0.015, 0.05},
			{"decode only, more than 128", 19, 0.015, 0.03},
			{"mixed, more new tokens", 106, 0.006, 0.02},
			{"all", 252, 0.01, 0.04},
		} {
			g := region(t, r, want.region)
			if e := g.HeldOut; e.Rows < want.rows || e.Median > want.median || e.P90 > want.p90 {
				t.Errorf("seed %d, %s: got %+.4v, want %d shapes or more, a median of at most %v and a p90 of %v", seed, g.Name, e, want.rows, want.median, want.p90)
			}
		}
		if !strings.HasPrefix(r.Ladder.Chosen, "the base file's") || !r.Ladder.Decided || r.Ladder.Curve != "tiles" || r.Ladder.Wave != 10.25 {
			t.Errorf("seed %d: got ladder %q, decided %v, %s, waves of %v, want the file's, tiles and 82 multiprocessors by 8 heads",
				seed, r.Ladder.Chosen, r.Ladder.Decided, r.Ladder.Curve, r.Ladder.Wave)
		}
		for _, e := range r.Estimates {
			if !strings.Contains(e.Path, "decode_ladder") || strings.Contains(e.Path, "[8]") || strings.Contains(e.Path, "[256]") {
				t.Logf("%s %.4g %s [%.4g, %.4g] %v: %s", e.Path, e.Value, e.Unit, e.Low, e.High, e.Verdict, e.How)
			}
		}
		if len(r.Remarks) != 3 || !strings.Contains(r.Remarks[0], "5.76 ms at the median") {
			t.Errorf("got remarks %q, want one for each kind of steps on what the GPU waits", r.Remarks)
		}
	}
}

func region(t *testing.T, r *steps.Result, name string) steps.Region {
	t.Helper()
	for _, g := range r.Regions {
		if g.Name == name {
			return g
		}
	}
	t.Fatalf("no region %q in %v", name, r.Regions)
	return steps.Region{}
}
