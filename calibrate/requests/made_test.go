package requests

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"kvfleet/calibrate/replay"
	"kvfleet/sim"
	"kvfleet/traces"
	"kvfleet/traces/seed"
)

// A load is requests to make a trace of.
type load struct {
	n      int
	gap    time.Duration // mean between arrivals
	prompt func(rng *rand.Rand) int
	output func(rng *rand.Rand) int
	even   bool // arrivals at one distance
}

// varied is a load that shows everything: lengths of all kinds, bursts and pauses.
func varied(n int) load {
	return load{n: n, gap: 450 * time.Millisecond,
		prompt: func(rng *rand.Rand) int { return 40 + rng.IntN(1400) },
		output: func(rng *rand.Rand) int { return 4 + rng.IntN(60) },
	}
}

// record serves a load on a fleet and opens what a client would have written
// down.
func record(t testing.TB, f *sim.Fleet, l load, s uint64) *replay.Recording {
	t.Helper()
	rng := seed.Seed(s).Stream("made")
	var prompts []sim.Prompt
	at := 0.0
	for range l.n {
		out := l.output(rng)
		prompts = append(prompts, sim.Prompt{ScheduledAt: int64(at), Tokens: l.prompt(rng), Max: out, Stop: out, Distinct: true})
		if l.even {
			at += float64(l.gap)
		} else {
			at += float64(l.gap) * rng.ExpFloat64()
		}
	}
	policy, err := sim.ParsePolicy("least_outstanding")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "made.arrows")
	sink, err := traces.Create(path, traces.Meta{Producer: "test"}, traces.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sim.Run(context.Background(), sim.Config{
		Fleet: f, Policy: policy, Seed: seed.Seed(s), Trace: prompts, KeepIDs: true,
		Rows: func(r *traces.Row) {
			row := *r
			row.Blocks, row.BlockSize = nil, 0
			if err := sink.Write(&row); err != nil {
				t.Fatal(err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := replay.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fleet(t testing.TB, name string) *sim.Fleet {
	t.Helper()
	f, err := sim.LoadFleet(name)
	if err != nil {
		t.Fatal(err)
	}
	return f.Copy()
}
