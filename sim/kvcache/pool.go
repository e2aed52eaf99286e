package kvcache

import "time"

// anonymous marks the hash of a block filled by generated tokens. What an engine
// generated is never resent, so nobody but the request itself, if it is
// preempted, can look such a block up: it takes room and is evicted like any
// other but is not in the table.
const anonymous = uint64(1) << 63

// A Pool is one replica's KV cache. It is not safe for concurrent use.
type Pool struct {
	hash  []uint64 // of each slot's content; 0 when not cached
	ref   []int32
	next  []int32 // free queue links; slot 0 is the queue's sentinel
	prev  []int32
	copy  []int32 // next slot with the same hash, or 0
	freed []time.Duration
	table *table

	free    int
	cached  int32 // first slot of the free queue that holds content, or 0
	serial  uint64
	log     *Log
	evicted func(time.Duration)
	ttl     time.Duration
}

// Options configures a pool.
type Options struct {
	// Blocks is the engine's num_gpu_blocks. One block is the engine's null
	// block, so Blocks-1 are usable. Required, at least 2.
	Blocks int
	// TTL evicts a cached block that has been idle for this long, although there
	// is room; 0 never does.
	TTL time.Duration
	// Log receives the pool's KV events; nil records none.
	Log *Log
	// Evicted is told the idle age of every cached block at its eviction; nil is
	// not.
	Evicted func(age time.Duration)
}

// New returns an empty pool.
func New(o Options) *Pool {
	n := o.Blocks
	if n < 2 {
		panic("kvcache: a pool needs at least 2 blocks, one of which is the null block")
	}
	p := &Pool{
		hash: make([]uint64, n), ref: make([]int32, n),
		next: make([]int32, n), prev: make([]int32, n), copy: make([]int32, n),
		freed: make([]time.Duration, n),
		table: newTable(n), log: o.Log, evicted: o.Evicted, ttl: o.TTL,
	}
	p.link()
	return p
}

// link puts every usable slot in the free queue in slot order.
func (p *Pool) link() {
	n := int32(len(p.hash))
	for i := range n {
		p.next[i], p.prev[i] = (i+1)%n, (i+n-1)%n
	}
	p.free, p.cached = int(n)-1, 0
}

// Blocks is the number of usable blocks.
func (p *Pool) Blocks() int { return len(p.hash) - 1 }

// Free is the number of blocks no request holds; most of them may be cached.
func (p *Pool) Free() int { return p.free }

// Reset drops everything, as a killed engine does, and reports it as cleared.
func (p *Pool) Reset() {
	clear(p.hash)
	clear(p.ref)
	clear(p.copy)
	clear(p.freed)
	p.table = newTable(len(p.hash))
	p.link()
	if p.log != nil {
		p.log.clear()
	}
}

// Match returns how many of the leading hashes are cached.
func (p *Pool) Match(hashes []uint64) int {
	for i := 0; i < len(hashes); {
		h := hashes[i]
		pg := p.table.find(h)
		if pg == nil {
			return i
		}
		// Stay on the page while the hashes stay on it.
		key := h >> pageBits
		for ; i < len(hashes) && hashes[i]>>pageBits == key; i++ {
			if pg.slot[hashes[i]&pageMask] == 0 {
				return i
			}
		}
	}
	return len(hashes)
}

// IdleMatched returns how many of the cached leading hashes are held by no
// request: they count as free until they are touched.
func (p *Pool) IdleMatched(hashes []uint64) int {
	idle := 0
	for _, h := range hashes {
		if s := p.table.get(h); p.ref[s] == 0 {
			idle++
		}
	}
	return idle
}

// Touch takes a reference on every one of the cached hashes and appends their
// slots to held.
func (p *Pool) Touch(held []int32, hashes []uint64) []int32 {
	for i := 0; i < len(hashes); {
		pg := p.table.find(hashes[i])
		key := hashes[i] >> pageBits
		for ; i < len(hashes) && hashes[i]>>pageBits == key; i++ {
			s := pg.slot[hashes[i]&pageMask] - 1
			p.TouchSlot(s)
			held = append(held, s)
		}
	}
	return held
}

// Allocate takes n blocks off the head of the free queue, evicting what they
// had cached, and appends their slots to held. The caller has checked Free.
func (p *Pool) Allocate(held []int32, n int, now time.Duration) []int32 {
	if n > p.free {
		panic("kvcache: allocating more blocks than are free")
	}
	for range n {
		s := p.next[0]
		p.unlink(s)
		if p.hash[s] != 0 {
			p.evict(s, now)
		}
		p.ref[s] = 1
		held = append(held, s)
	}
	p.free -= n
	return held
}

// Cache gives the slots their content's hashes, so that later prompts find
// them: slots[i] holds hashes[i].
func (p *Pool) Cache(slots []int32, hashes []uint64) {
	for i, s := range slots {
		h := hashes[i]
		if p.hash[s] != 0 {
			panic("kvcache: caching a slot that has content")
		}
		if h == 0 || h >= anonymous {
			panic("kvcache: a block hash must be between 1 and 1<<63 - 1")
		}
		p.hash[s] = h
		if first := p.table.get(h); first >= 0 {
			// A second copy of the same content: the engine does not
			// de-duplicate. The first copy goes on answering look-ups.
			p.copy[s] = p.copy[first]
			p.copy[first] = s
		} else {
			p.table.set(h, s)
		}
		if p.log != nil {
			p.log.store(h)
		}
	}
}

// CacheGenerated marks a slot as filled by generated tokens, which gives it a
// hash of its own: see Hash.
func (p *Pool) CacheGenerated(s int32) {
	if p.hash[s] != 0 {
		panic("kvcache: caching a slot that has content")
	}
	p.serial++
	p.hash[s] = anonymous | p.serial
	if p.log != nil {
		p.log.store(p.hash[s])
	}
}

// Hash is the hash of a slot's content, 0 when it is not cached. A request that
// is preempted remembers the hashes of its generated blocks, and finds the block
// again as long as its slot still has that hash.
func (p *Pool) Hash(s int32) uint64 { return p.hash[s] }

// TouchSlot takes a reference on a slot that still holds what the caller looks
// for.
func (p *Pool) TouchSlot(s int32) {
	if p.ref[s] == 0 {
		p.unlink(s)
		p.free--
	}
	p.ref[s]++
}

// Release drops one reference on each slot, last first, so that the tail of a
// chain is evicted before its root. Slots that hold nothing cached go to the
// head of the queue, cached ones to its tail, as vLLM does since 0.24.
func (p *Pool) Release(held []int32, now time.Duration) {
	for i := len(held) - 1; i >= 0; i-- {
		s := held[i]
		if p.ref[s] <= 0 {
			panic("kvcache: releasing a block nobody holds")
		}
		p.ref[s]--
		if p.ref[s] > 0 {
			continue
		}
		p.free++
		p.freed[s] = now
		if p.hash[s] == 0 {
			p.insert(s, 0, p.next[0])
		} else {
			p.insert(s, p.prev[0], 0)
			if p.cached == 0 {
				p.cached = s
			}
		}
	}
}

// Expire evicts cached blocks idle for longer than the pool's TTL. In the free
// queue, what holds nothing comes first and the rest is in the order of its
// release, so only expired blocks are visited.
func (p *Pool) Expire(now time.Duration) {
	if p.ttl <= 0 {
		return
	}
	for s := p.cached; s != 0 && now-p.freed[s] > p.ttl; s = p.cached {
		p.evict(s, now)
		p.cached = p.next[s]
	}
}

// NextExpiry returns the earliest time at which Expire would evict something,
// if nothing else happens before; false when it never would.
func (p *Pool) NextExpiry() (time.Duration, bool) {
	if p.ttl <= 0 || p.cached == 0 {
		return 0, false
	}
	return p.freed[p.cached] + p.ttl + 1, true
}

func (p *Pool) evict(s int32, now time.Duration) {
	h := p.hash[s]
	p.hash[s] = 0
	if p.evicted != nil {
		p.evicted(now - p.freed[s])
	}
	if p.log != nil {
		p.log.remove(h)
	}
	if h&anonymous != 0 {
		return
	}
	first := p.table.get(h)
	if first == s {
		if other := p.copy[s]; other != 0 {
			p.table.set(h, other)
		} else {
			p.table.remove(h)
		}
	} else {
		for p.copy[first] != s {
			first = p.copy[first]
		}
		p.copy[first] = p.copy[s]
	}
	p.copy[s] = 0
}

// unlink takes a slot out of the free queue.
func (p *Pool) unlink(s int32) {
	if s == p.cached {
		p.cached = p.next[s]
	}
	n, v := p.next[s], p.prev[s]
	p.next[v], p.prev[n] = n, v
}

// insert puts a slot between two neighbours in the free queue.
func (p *Pool) insert(s, before, after int32) {
	p.next[before], p.prev[s] = s, before
	p.next[s], p.prev[after] = after, s
}
