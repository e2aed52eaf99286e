package kvcache

import "fmt"

// Audit checks that free and referenced blocks add up to all of them, and that
// the free queue is what the counters say: first what holds nothing, then cached
// blocks in the order of their release.
func (p *Pool) Audit() error {
	referenced := 0
	for s := 1; s < len(p.ref); s++ {
		if p.ref[s] > 0 {
			referenced++
		}
	}
	if p.free+referenced != p.Blocks() {
		return fmt.Errorf("kvcache: %d blocks free and %d referenced, want %d together", p.free, referenced, p.Blocks())
	}
	queued, first := 0, int32(0)
	for s := p.next[0]; s != 0 && queued <= p.free; s = p.next[s] {
		queued++
		switch {
		case p.ref[s] != 0:
			return fmt.Errorf("kvcache: slot %d is in the free queue with %d references", s, p.ref[s])
		case p.hash[s] != 0 && first == 0:
			first = s
		case p.hash[s] == 0 && first != 0:
			return fmt.Errorf("kvcache: slot %d holds nothing, but is in the free queue behind slot %d, which is cached", s, first)
		case first != 0 && p.prev[s] != 0 && p.freed[p.prev[s]] > p.freed[s]:
			return fmt.Errorf("kvcache: slot %d, released at %v, is in the free queue behind slot %d, released at %v", s, p.freed[s], p.prev[s], p.freed[p.prev[s]])
		}
	}
	if queued != p.free {
		return fmt.Errorf("kvcache: %d blocks in the free queue, want %d", queued, p.free)
	}
	if first != p.cached {
		return fmt.Errorf("kvcache: the free queue's first cached slot is %d, want %d", first, p.cached)
	}
	return nil
}

// References is the sum of all blocks' reference counts.
func (p *Pool) References() int {
	n := 0
	for _, r := range p.ref {
		n += int(r)
	}
	return n
}
