package kvcache_test

import (
	"fmt"
	"time"

	"kvfleet/sim/kvcache"
)

func Example() {
	log := &kvcache.Log{}
	pool := kvcache.New(kvcache.Options{Blocks: 6, Log: log}) // 5 are usable

	// A prompt of three blocks, none of which is cached yet.
	prompt := []uint64{101, 102, 103}
	held := pool.Allocate(nil, 3, 0)
	pool.Cache(held, prompt)
	pool.Release(held, time.Second)
	fmt.Println("cached:", pool.Match(prompt), "free:", pool.Free(), "stored:", log.Stored)

	// Four blocks of something else leave the root of the chain: its tail was
	// released first.
	log.Reset()
	pool.Allocate(nil, 4, 2*time.Second)
	fmt.Println("cached:", pool.Match(prompt), "free:", pool.Free(), "removed:", log.Removed)
	// Output:
	// cached: 3 free: 5 stored: [101 102 103]
	// cached: 1 free: 1 removed: [103 102]
}
