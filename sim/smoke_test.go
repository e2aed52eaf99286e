package sim

import (
	"context"
	"os"
	"runtime/pprof"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/traces/workload"
)

func TestSmoke(t *testing.T) {
	f, err := LoadFleet("rtx3090x5")
	if err != nil {
		t.Fatal(err)
	}
	if p := os.Getenv("PROF"); p != "" {
		o, _ := os.Create(p)
		pprof.StartCPUProfile(o)
		defer pprof.StopCPUProfile()
	}
	for _, pol := range []string{"round_robin", "least_outstanding", "session_affinity", "prefix_affinity", "prefix_affinity:spill_factor=0", "exact_residency", "exact_speculative"} {
		choice, err := policies.ParseChoice(pol)
		if err != nil {
			t.Fatal(err)
		}
		for _, ws := range []float64{0.25, 1, 8} {
			for _, skew := range []float64{0, 1.4} {
				w, err := workload.Published(ws, skew, f.KVTokens(), 1).Resolve()
				if err != nil {
					t.Fatal(err)
				}
				t0 := time.Now()
				r, err := Run(context.Background(), Config{Fleet: f, Policy: choice, Seed: 1, Workload: w, Epoch: 1, Users: 32, Window: 300 * time.Second, Warmup: 50 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				s := r.Summary
				t.Logf("%-30s ws %-5g skew %-4g good %.3f ttft50 %.1f p99 %.1f hit %.4f rec %.1f n %d busy %.3f spill %.4f | %v %.0f/s", pol, ws, skew, s.GoodputRPS, s.TTFTP50, s.TTFTP99, s.HitRate, s.RecomputedPerRequest, s.Requests, s.BusiestShare, s.SpillShare, time.Since(t0), float64(s.Requests)*1.2/time.Since(t0).Seconds())
			}
		}
	}
}
