package latency_test

import (
	"fmt"
	"time"

	"kvfleet/sim/latency"
)

func Example() {
	m, err := latency.New(latency.Params{
		WeightsMS: 4.8, DenseTokenMS: 0.21, TileTokens: 64, PairMS: 8.5e-6,
		SustainedShare: 0.04, SustainedMS: 500, EagerMS: 1.4, HostMS: 1.7, HostRequestMS: 0.08,
		DecodeLadder: []latency.Rung{{Batch: 1, MS: 5.8, ContextMS: 2.4e-4}, {Batch: 8, MS: 6.1, ContextMS: 2.1e-4}},
	})
	if err != nil {
		panic(err)
	}
	// A prompt of 1,000 tokens, 200 of which are cached.
	prefill := m.Mixed([]latency.Chunk{{Tokens: 800, Context: 1000}}, 0, 0, 1)
	fmt.Println("prefill:", (prefill + m.Host(1)).Duration().Round(time.Microsecond))
	// Five requests decode over 15,000 tokens of context; the graph is one of 8.
	base, perToken := m.Decode(5, 1, 1)
	fmt.Println("decode:", (base + 15_000*perToken + m.Host(5)).Duration().Round(time.Microsecond))
	// Output:
	// prefill: 177.8ms
	// decode: 11.35ms
}
