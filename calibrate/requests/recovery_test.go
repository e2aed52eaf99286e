package requests

import (
	"context"
	"os"
	"strconv"
	"testing"

	"kvfleet/calibrate/fit"
	"kvfleet/sim"
)

// another is a fleet like the base whose constants are all others.
func another(base *sim.Fleet) *sim.Fleet {
	f := base.Copy()
	setLine(f, 8.5, 0.35)
	for i := range f.Step.DecodeLadder {
		f.Step.DecodeLadder[i].ContextMS = 8e-4
	}
	f.Step.DenseTokenMS, f.Step.PairMS, f.Step.EagerMS = 0.22, 2e-5, 4
	f.Step.PrefillMixedMS, f.Step.MixedDecodeMS, f.Step.MixedContextMS = 3, 0.3, 9e-4
	f.Step.ColdStartMS, f.Step.NoiseShare = 5, 0.02
	f.FrontEnd.ServiceMS, f.FrontEnd.ServiceTokenMS, f.FrontEnd.DelayMS, f.FrontEnd.StreamMS = 2, 0.006, 6, 0.15
	return f
}

// Traces made from known constants give them back: the 95% intervals of what is
// said to be measured hold the truth about as often as they say. Few seeds here;
// KVFLEET_RECOVERY=100 (make recovery) is the whole experiment, whose limits are
// 90 and 98%.
func TestRecovery(t *testing.T) {
	seeds := 6
	if text := os.Getenv("KVFLEET_RECOVERY"); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil {
			t.Fatalf("KVFLEET_RECOVERY: %v", err)
		}
	} else if testing.Short() {
		seeds = 1
	}
	base := fleet(t, "cpu-vllm")
	truth := another(base)
	held, said := map[string]int{}, map[string]int{}
	all, inside := 0, 0
	for s := range seeds {
		rec := record(t, truth, varied(400), uint64(s+1))
		if err := rec.FitTo(base); err != nil {
			t.Fatal(err)
		}
		result, err := Fit(context.Background(), base, []Trace{{Recording: rec}}, Options{Seed: 1, Async: true})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		for _, k := range append(engineKnobs(base), frontEndKnobs(base)...) {
			want[k.path] = k.get(truth)
		}
		for _, e := range result.Estimates {
			if e.Verdict != fit.Measured {
				continue
			}
			said[e.Path]++
			all++
			if w := want[e.Path]; w >= e.Low && w <= e.High {
				held[e.Path]++
				inside++
			} else if testing.Verbose() {
				t.Logf("seed %d: %s: %.5g [%.5g, %.5g], truth %.5g", s+1, e.Path, e.Value, e.Low, e.High, w)
			}
		}
	}
	for path, n := range said {
		t.Logf("%s: measured in %d of %d, the interval holds the truth in %d", path, n, seeds, held[path])
	}
	share := float64(inside) / float64(all)
	t.Logf("%d of %d intervals hold the truth: %.1f%%", inside, all, 100*share)
	if all < 3*seeds {
		t.Errorf("%d constants measured over %d seeds, want at least 3 a seed", all, seeds)
	}
	least, most := 0.75, 1.0
	if seeds >= 50 {
		least, most = 0.90, 0.98
	}
	if share < least || share > most {
		t.Errorf("%.1f%% of the intervals hold the truth, want %.0f to %.0f%%", 100*share, 100*least, 100*most)
	}
}
