package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kvfleet/traces/convert"
	"kvfleet/traces/workload"
)

// mainPolicies are those of the pressure grid.
var mainPolicies = [...]string{"round_robin", "least_outstanding", "session_affinity", "prefix_affinity", "exact_residency"}

// benchRun runs the cell over and over and reports what a request costs, and how
// many there are in a second.
func benchRun(b *testing.B, cfg Config) {
	b.ReportAllocs()
	requests := int64(0)
	for b.Loop() {
		r, err := Run(context.Background(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		requests += r.Summary.Rows()
	}
	took := b.Elapsed()
	b.ReportMetric(float64(requests)/took.Seconds(), "requests/s")
	b.ReportMetric(float64(took.Nanoseconds())/float64(requests), "ns/request")
	b.ReportMetric(0, "ns/op")
}

// A cell of the published grid: working set 1, skew 1, 32 users, 300 s. Its
// prompts are made anew every time, as for the first policy of a point.
func BenchmarkCell(b *testing.B) {
	f := loadFleet(b, "rtx3090x5")
	for _, name := range mainPolicies {
		b.Run(name, func(b *testing.B) {
			cfg := Config{Fleet: f, Policy: choice(b, name), Seed: 1, Users: 32, Window: 300 * time.Second, Warmup: 50 * time.Second}
			load, err := workload.Published(1, 1, f.KVTokens(), 1).Resolve()
			if err != nil {
				b.Fatal(err)
			}
			cfg.Workload, cfg.Epoch = load, Epoch(DriverClosed, 32, 1, 1, 1)
			benchRun(b, cfg)
		})
	}
}

// The public Mooncake conversation sample: prompts of 12,000 tokens.
func BenchmarkMooncake(b *testing.B) {
	f := loadFleet(b, "rtx3090x5")
	for _, name := range mainPolicies[1:] {
		b.Run(name, func(b *testing.B) {
			prompts, _ := samplePrompts(b, "mooncake_fast25_conversation_first3000.jsonl", convert.Options{SpreadBin: 3 * time.Second})
			benchRun(b, Config{Fleet: f, Policy: choice(b, name), Seed: 1, Trace: prompts})
		})
	}
}

// Cost of a request as the fleet and its load grow together: one request a second
// a replica. Prompts are made before the clock starts; building the replicas,
// whose caches are arrays, is in it.
func BenchmarkReplicas(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		f := loadFleet(b, "rtx3090x5").Scale(n)
		for _, name := range []string{"prefix_affinity", "session_affinity", "prefix_hash"} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				load, err := workload.Published(1, 1, f.KVTokens(), 1).Resolve()
				if err != nil {
					b.Fatal(err)
				}
				cfg := Config{
					Fleet: f, Policy: choice(b, name), Seed: 1, Workload: load, Rate: float64(n), Arrivals: "poisson",
					Epoch: 1, Window: max(15*time.Second, 3000*time.Second/time.Duration(n)),
					Content: load.Content(1, f.Tokenizer, f.Engine.BlockSize), Draws: load.Draws(),
				}
				if _, err := Run(context.Background(), cfg); err != nil {
					b.Fatal(err)
				}
				benchRun(b, cfg)
			})
		}
	}
}
