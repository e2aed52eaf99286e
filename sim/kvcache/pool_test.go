package kvcache

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A holder is a request as the pool sees it.
type holder struct {
	prompt []uint64 // hashes of its whole blocks
	held   []int32
	filled int // leading blocks that have content
}

// TestPoolEqualsTwin drives the pool and its slow twin with the same random
// operations and compares everything after each.
func TestPoolEqualsTwin(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 50
	}
	evicted, copies := 0, 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 1500)
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		e, c := drive(t, script)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		evicted += e
		copies += c
	}
	if evicted < 100*runs || copies < 5*runs {
		t.Errorf("got %d evictions and %d second copies in %d runs, want more", evicted, copies, runs)
	}
}

func FuzzPool(f *testing.F) {
	f.Add([]byte{3, 0, 0, 5, 2, 0, 1, 0, 9, 4, 0, 7, 1, 2, 3})
	f.Add([]byte{200, 30, 0, 255, 0, 16, 0, 255, 1, 3, 0, 6, 200, 0, 255, 3})
	f.Fuzz(func(t *testing.T, script []byte) { drive(t, script) })
}

// drive reads a script: two bytes for the size and the TTL, then operations.
func drive(t *testing.T, script []byte) (evicted, copies int) {
	t.Helper()
	next := func() int {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return int(b)
	}
	blocks, ttl := 2+next()%80, time.Duration(next()%40)*time.Second
	log := &Log{}
	var ages []time.Duration
	p, w := New(Options{Blocks: blocks, TTL: ttl, Log: log, Evicted: func(age time.Duration) { ages = append(ages, age) }}), newTwin(blocks, ttl)
	var holders []*holder
	now := time.Duration(0)
	for len(script) > 0 && !t.Failed() {
		switch op := next() % 10; op {
		case 0, 1, 2: // a request is admitted: prompts of one family share a prefix
			h := newHolder(next(), next(), next())
			cap := next() % (len(h.prompt) + 1) // the engine caps its look-up
			n := p.Match(h.prompt[:cap])
			if want := w.match(h.prompt[:cap]); n != want {
				t.Errorf("got a match of %d blocks, want %d", n, want)
				return
			}
			idle := p.IdleMatched(h.prompt[:n])
			if want := w.idleMatched(h.prompt[:n]); idle != want {
				t.Errorf("got %d of the matched blocks idle, want %d", idle, want)
			}
			need := len(h.prompt) - n + 1 // and a partial block
			if need+idle > p.Free() {
				continue
			}
			h.held = p.Touch(h.held, h.prompt[:n])
			h.filled = n
			same(t, "touched slots", h.held, w.touch(h.prompt[:n]))
			h.held = p.Allocate(h.held, need, now)
			same(t, "allocated slots", h.held[n:], w.allocate(need, now))
			holders = append(holders, h)
		case 3, 4: // a chunk of it is computed
			if h := pick(holders, next()); h != nil {
				to := min(h.filled+1+next()%8, len(h.prompt))
				if from := h.filled; from < to {
					copies += to - from - countNew(w, h.prompt[from:to])
					p.Cache(h.held[from:to], h.prompt[from:to])
					w.cache(h.held[from:to], h.prompt[from:to])
					h.filled = to
				}
			}
		case 5: // it generates a block and takes another
			if h := pick(holders, next()); h != nil && h.filled >= len(h.prompt) && h.filled < len(h.held) && p.Free() > 0 {
				p.CacheGenerated(h.held[h.filled])
				w.cacheGenerated(h.held[h.filled])
				if got, want := p.Hash(h.held[h.filled]), w.blocks[h.held[h.filled]].hash; got != want {
					t.Errorf("got hash %x of a generated block, want %x", got, want)
				}
				h.filled++
				h.held = p.Allocate(h.held, 1, now)
				same(t, "a decode's slot", h.held[h.filled:], w.allocate(1, now))
			}
		case 6, 7: // it ends
			if i := next(); len(holders) > 0 {
				i %= len(holders)
				p.Release(holders[i].held, now)
				w.release(holders[i].held, now)
				holders = slices.Delete(holders, i, i+1)
			}
		case 8: // time passes
			now += time.Duration(next()) * time.Second / 16
			expiry, ok := p.NextExpiry()
			if ok && expiry <= now {
				p.Expire(expiry - 1)
				if len(log.Removed) > len(w.removed) {
					t.Errorf("evicted before the next expiry, %v", expiry)
				}
				p.Expire(expiry)
				w.expire(expiry)
				if len(log.Removed) == 0 {
					t.Errorf("nothing evicted at the next expiry, %v", expiry)
				}
			}
			p.Expire(now)
			w.expire(now)
		case 9: // the engine is killed, or a slot that still has its content is taken up again
			if next()%16 == 0 {
				p.Reset()
				w.reset()
				holders = nil
			} else if s := int32(1 + next()%(blocks-1)); p.Hash(s) != 0 {
				p.TouchSlot(s)
				w.take(w.blocks[s])
				holders = append(holders, &holder{held: []int32{s}, filled: 1, prompt: []uint64{1}})
			}
		}
		evicted += len(w.removed)
		agree(t, p, w, ages)
		ages = ages[:0]
	}
	return evicted, copies
}

// newHolder makes a prompt of up to 40 blocks in one of four families; at the
// depth where it leaves its family it takes one of three branches.
func newHolder(family, length, leave int) *holder {
	h := &holder{}
	root, branch := uint64(1+family%4)*1000, uint64(1+leave%3)*1_000_000
	for i := range length % 40 {
		hash := root + uint64(i)
		if i >= leave/3 {
			hash += branch
		}
		h.prompt = append(h.prompt, hash)
	}
	return h
}

func pick(holders []*holder, i int) *holder {
	if len(holders) == 0 {
		return nil
	}
	return holders[i%len(holders)]
}

func countNew(w *twin, hashes []uint64) int {
	n := 0
	for _, h := range hashes {
		if len(w.copies[h]) == 0 {
			n++
		}
	}
	return n
}

func same(t *testing.T, what string, got, want []int32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// agree compares all state and takes the events.
func agree(t *testing.T, p *Pool, w *twin, ages []time.Duration) {
	t.Helper()
	if p.Free() != len(w.queue) {
		t.Errorf("got %d blocks free, want %d", p.Free(), len(w.queue))
	}
	var queue, want []int32
	for s := p.next[0]; s != 0; s = p.next[s] {
		queue = append(queue, s)
	}
	for _, b := range w.queue {
		want = append(want, b.slot)
	}
	same(t, "free queue", queue, want)
	refs := 0
	for _, b := range w.blocks {
		if p.hash[b.slot] != b.hash || int(p.ref[b.slot]) != b.refs {
			t.Errorf("slot %d: got hash %x and %d references, want %x and %d", b.slot, p.hash[b.slot], p.ref[b.slot], b.hash, b.refs)
		}
		refs += b.refs
	}
	if p.References() != refs {
		t.Errorf("got %d references, want %d", p.References(), refs)
	}
	if !slices.Equal(p.log.Stored, w.stored) || !slices.Equal(p.log.Removed, w.removed) || p.log.Cleared != w.cleared {
		t.Errorf("got events %+v, want stored %x removed %x cleared %v", *p.log, w.stored, w.removed, w.cleared)
	}
	if !slices.Equal(ages, w.idle) {
		t.Errorf("got idle ages %v, want %v", ages, w.idle)
	}
	if err := p.Audit(); err != nil {
		t.Error(err)
	}
	p.log.Reset()
	w.stored, w.removed, w.cleared, w.idle = nil, nil, false, nil
}

func TestPoolRefuses(t *testing.T) {
	for name, f := range map[string]func(p *Pool, held []int32){
		"allocating more than is free":  func(p *Pool, _ []int32) { p.Allocate(nil, 3, 0) },
		"releasing what nobody holds":   func(p *Pool, _ []int32) { p.Release([]int32{3}, 0) },
		"caching a slot twice":          func(p *Pool, held []int32) { p.Cache(held, []uint64{8}) },
		"generating into a cached slot": func(p *Pool, held []int32) { p.CacheGenerated(held[0]) },
		"hash 0":                        func(p *Pool, _ []int32) { p.Cache(p.Allocate(nil, 1, 0), []uint64{0}) },
		"a hash of the pool's own":      func(p *Pool, _ []int32) { p.Cache(p.Allocate(nil, 1, 0), []uint64{1 << 63}) },
		"a pool of the null block only": func(*Pool, []int32) { New(Options{Blocks: 1}) },
	} {
		p := New(Options{Blocks: 4})
		held := p.Allocate(nil, 1, 0)
		p.Cache(held, []uint64{7})
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic, want one", name)
				}
			}()
			f(p, held)
		}()
	}
}

func TestAuditSees(t *testing.T) {
	for name, spoil := range map[string]func(p *Pool){
		"a lost block":           func(p *Pool) { p.free-- },
		"a held block queued":    func(p *Pool) { p.ref[p.next[0]] = 1; p.free-- },
		"a queue out of order":   func(p *Pool) { p.freed[p.cached] = time.Hour },
		"content before nothing": func(p *Pool) { p.hash[p.next[0]] = 9 },
		"a wrong first":          func(p *Pool) { p.cached = p.next[p.cached] },
	} {
		p := New(Options{Blocks: 8})
		held := p.Allocate(nil, 3, 0)
		p.Cache(held, []uint64{1, 2, 3})
		p.Release(held, time.Second)
		if err := p.Audit(); err != nil {
			t.Fatal(err)
		}
		spoil(p)
		if p.Audit() == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}
