package kvcache

import (
	"slices"
	"time"
)

// A twin is the pool as one would explain it: blocks, a list of those that are
// free in the order they will be taken, and for every hash the list of copies,
// the one that answers look-ups first.
type twin struct {
	blocks  []*block
	queue   []*block
	copies  map[uint64][]*block
	ttl     time.Duration
	serial  uint64
	stored  []uint64
	removed []uint64
	cleared bool
	idle    []time.Duration
}

type block struct {
	slot  int32
	hash  uint64
	refs  int
	freed time.Duration
}

func newTwin(blocks int, ttl time.Duration) *twin {
	w := &twin{ttl: ttl}
	for i := range blocks {
		w.blocks = append(w.blocks, &block{slot: int32(i)})
	}
	w.reset()
	w.cleared = false
	return w
}

func (w *twin) reset() {
	for i := range w.blocks {
		w.blocks[i] = &block{slot: int32(i)}
	}
	w.queue = slices.Clone(w.blocks[1:]) // block 0 is the null block
	w.copies = map[uint64][]*block{}
	w.stored, w.removed, w.cleared = nil, nil, true
}

func (w *twin) match(hashes []uint64) int {
	for i, h := range hashes {
		if len(w.copies[h]) == 0 {
			return i
		}
	}
	return len(hashes)
}

func (w *twin) idleMatched(hashes []uint64) int {
	n := 0
	for _, h := range hashes {
		if w.copies[h][0].refs == 0 {
			n++
		}
	}
	return n
}

func (w *twin) touch(hashes []uint64) (held []int32) {
	for _, h := range hashes {
		held = append(held, w.take(w.copies[h][0]))
	}
	return held
}

func (w *twin) take(b *block) int32 {
	if b.refs == 0 {
		w.queue = slices.DeleteFunc(w.queue, func(o *block) bool { return o == b })
	}
	b.refs++
	return b.slot
}

func (w *twin) allocate(n int, now time.Duration) (held []int32) {
	for range n {
		b := w.queue[0]
		w.forget(b, now)
		held = append(held, w.take(b))
	}
	return held
}

func (w *twin) forget(b *block, now time.Duration) {
	if b.hash == 0 {
		return
	}
	w.removed = append(w.removed, b.hash)
	w.idle = append(w.idle, now-b.freed)
	w.copies[b.hash] = slices.DeleteFunc(w.copies[b.hash], func(o *block) bool { return o == b })
	b.hash = 0
}

func (w *twin) cache(slots []int32, hashes []uint64) {
	for i, s := range slots {
		b, h := w.blocks[s], hashes[i]
		b.hash = h
		w.stored = append(w.stored, h)
		// The first copy goes on answering; a newer one stands behind it.
		w.copies[h] = slices.Insert(w.copies[h], min(1, len(w.copies[h])), b)
	}
}

func (w *twin) cacheGenerated(s int32) {
	w.serial++
	w.cache([]int32{s}, []uint64{1<<63 | w.serial})
}

func (w *twin) release(held []int32, now time.Duration) {
	for _, s := range slices.Backward(held) {
		b := w.blocks[s]
		b.refs--
		if b.refs > 0 {
			continue
		}
		b.freed = now
		if b.hash == 0 {
			w.queue = slices.Insert(w.queue, 0, b)
		} else {
			w.queue = append(w.queue, b)
		}
	}
}

func (w *twin) expire(now time.Duration) {
	for _, b := range w.queue {
		if w.ttl > 0 && b.hash != 0 && now-b.freed > w.ttl {
			w.forget(b, now)
		}
	}
}
