package engine_test

import (
	"fmt"
	"time"

	"kvfleet/sim/engine"
	"kvfleet/sim/kvcache"
	"kvfleet/sim/latency"
)

type client struct{}

func (client) FirstToken(r *engine.Request, at time.Duration) {
	fmt.Printf("%v request %d: first token, %d of %d prompt tokens cached\n", at.Round(time.Millisecond), r.ID, r.Cached, r.Prompt)
}

func (client) Finished(r *engine.Request, at time.Duration) {
	gaps, _ := r.Gaps(nil)
	fmt.Printf("%v request %d: %d tokens, median gap %v\n", at.Round(time.Millisecond), r.ID, r.Output(), gaps.P50.Round(time.Microsecond))
}

func (client) Stepped(time.Duration, *kvcache.Log) {}

func Example() {
	model, err := latency.New(latency.Params{
		WeightsMS: 5, DenseTokenMS: 0.2, TileTokens: 64, PairMS: 1e-5, SustainedMS: 1,
		HostMS: 2, DecodeLadder: []latency.Rung{{Batch: 1, MS: 6, ContextMS: 1e-4}},
	})
	if err != nil {
		panic(err)
	}
	e := engine.New(engine.Config{BlockSize: 16, Blocks: 100, TokenBudget: 2048, MaxSeqs: 256}, model, client{}, engine.Options{})
	for id, at := range []time.Duration{0, time.Second} {
		r := &engine.Request{ID: int64(id), Prompt: 200, Blocks: []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Stop: 50, Max: 64}
		e.Submit(r, at)
		fires := 0
		for _, busy := e.Due(); busy; _, busy = e.Due() {
			e.Fire()
			fires++
		}
		fmt.Println(e.Steps(), "steps so far,", fires, "fires")
	}
	// Output:
	// 46ms request 0: first token, 0 of 200 prompt tokens cached
	// 439ms request 0: 50 tokens, median gap 8.023ms
	// 50 steps so far, 2 fires
	// 1.007s request 1: first token, 192 of 200 prompt tokens cached
	// 1.4s request 1: 50 tokens, median gap 8.023ms
	// 100 steps so far, 2 fires
}
