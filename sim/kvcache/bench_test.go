package kvcache

import (
	"testing"
	"time"
)

// BenchmarkPrompt admits and releases a prompt of 190 blocks, half of them
// cached, in a pool that has long been full.
func BenchmarkPrompt(b *testing.B) {
	const blocks, cached = 190, 95
	p := New(Options{Blocks: 7872})
	prompt := make([]uint64, blocks)
	held := make([]int32, 0, blocks)
	next := uint64(1 << 20)
	one := func() {
		for i := range prompt {
			prompt[i] = 32 + uint64(i)
			if i >= cached {
				prompt[i] = next
				next++
			}
		}
		n := p.Match(prompt)
		held = p.Touch(held[:0], prompt[:n])
		held = p.Allocate(held, blocks-n, time.Second)
		p.Cache(held[n:], prompt[n:])
		p.Release(held, time.Second)
	}
	for range 200 {
		one()
	}
	b.ReportAllocs()
	for b.Loop() {
		one()
	}
}
