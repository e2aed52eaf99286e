package engine

import "kvfleet/sim/latency"

// A step is one composed engine step.
type step struct {
	chunks  []chunk
	decodes []*Request
	context int64 // sequence lengths of the decodes after the step, summed
	version int64 // equal for consecutive steps over one unchanged decode set
	preempt int

	busy       latency.Ticks // GPU time of the step
	base, per  latency.Ticks // of a decode-only step: busy = base + context*per
	host       latency.Ticks // the host's share, before the GPU starts
	start, end latency.Ticks // of the GPU
}

// A chunk is a part of a prompt, or of what a preempted request had.
type chunk struct {
	r    *Request
	n    int  // tokens
	ctx  int  // sequence length after the step
	last bool // a token comes out
}

func (s *step) empty() bool   { return len(s.chunks) == 0 && len(s.decodes) == 0 }
func (s *step) requests() int { return len(s.chunks) + len(s.decodes) }
func (s *step) reset() {
	s.chunks, s.decodes, s.context, s.preempt, s.version = s.chunks[:0], s.decodes[:0], 0, 0, -1
}

// uniform reports whether every request computes a single token, so that the
// step runs as a CUDA graph.
func (s *step) uniform() bool {
	for _, c := range s.chunks {
		if c.n > 1 {
			return false
		}
	}
	return true
}

// schedule composes the next step from what has arrived by now: running
// requests first, then waiting ones unless something was preempted.
func (e *Engine) schedule(s, prev *step, at latency.Ticks) {
	s.reset()
	budget := e.cfg.TokenBudget
	preempted := 0
	for i := 0; i < len(e.running) && budget > 0; i++ {
		r := e.running[i]
		n := 1
		if r.computed < r.target {
			n = min(r.target-r.computed, budget)
		} else if r.sched >= r.Max {
			continue
		}
		need := e.blocks(r.computed+n) - len(r.held)
		for need > e.pool.Free() {
			victim := e.running[len(e.running)-1]
			e.preempt(victim, at)
			preempted++
			if victim == r {
				break
			}
		}
		if i >= len(e.running) {
			break
		}
		e.take(s, r, n, need, at)
		budget -= n
	}
	if preempted == 0 {
		e.admit(s, budget, at)
	}
	s.preempt = preempted
	e.price(s, prev)
}

// admit schedules waiting requests in order until one does not fit.
func (e *Engine) admit(s *step, budget int, at latency.Ticks) {
	for e.head < len(e.waiting) && budget > 0 && len(e.running) < e.cfg.MaxSeqs {
		r := e.waiting[e.head]
		hits, own := e.lookUp(r)
		if r.Recorded > 0 && !r.admitted {
			hits, own = 0, 0
		}
		need := e.blocks(r.target) - hits
		if need > e.pool.Free() {
			break
		}
		// Hits that nobody holds leave the free queue too. Few prompts come near
		// the limit, so they are counted only if it matters.
		if need+hits > e.pool.Free() && need+own+e.pool.IdleMatched(r.Blocks[:hits-own]) > e.pool.Free() {
			break
		}
		r.held = e.pool.Touch(r.held, r.Blocks[:hits-own])
		for _, b := range r.own[:own] {
			e.pool.TouchSlot(b.slot)
			r.held = append(r.held, b.slot)
		}
		r.computed = hits * e.cfg.BlockSize
		if r.Recorded > 0 && !r.admitted {
			r.computed = min(r.Recorded-1, r.target-1)
		}
		if !r.admitted {
			r.admitted, r.Admitted, r.Cached = true, at, r.computed
			e.queries += int64(r.Prompt)
			e.hits += int64(r.Cached)
		}
		if r.displaced {
			r.displaced = false
			e.displaced--
		}
		e.waiting[e.head] = nil
		e.head++
		e.running = append(e.running, r)
		n := min(r.target-r.computed, budget)
		e.take(s, r, n, e.blocks(r.computed+n)-len(r.held), at)
		budget -= n
	}
	if e.head > 64 && e.head*2 > len(e.waiting) {
		e.waiting = e.waiting[:copy(e.waiting, e.waiting[e.head:])]
		e.head = 0
	}
}

// lookUp counts the leading blocks of a waiting request that are cached, and how
// many of them, the last, are its own generated ones. The last token is always
// computed, or none would come out.
func (e *Engine) lookUp(r *Request) (hits, own int) {
	limit := (r.target - 1) / e.cfg.BlockSize
	hits = e.pool.Match(r.Blocks[:min(len(r.Blocks), limit)])
	if hits < len(r.Blocks) {
		return hits, 0
	}
	for own < len(r.own) && hits < limit && e.pool.Hash(r.own[own].slot) == r.own[own].hash {
		own++
		hits++
	}
	return hits, own
}

// take schedules n tokens of a request, with need new blocks.
func (e *Engine) take(s *step, r *Request, n, need int, at latency.Ticks) {
	if need > 0 {
		r.held = e.pool.Allocate(r.held, need, at.Duration())
	}
	before := r.computed
	r.computed += n
	e.cacheFull(r, before)
	if before >= r.target {
		r.sched++
		s.decodes = append(s.decodes, r)
		s.context += int64(r.computed)
		return
	}
	last := r.computed == r.target
	if last {
		r.sched = r.target - r.Prompt + 1
	}
	s.chunks = append(s.chunks, chunk{r: r, n: n, ctx: r.computed, last: last})
}

// cacheFull gives the blocks that filled up since before their hashes.
func (e *Engine) cacheFull(r *Request, before int) {
	size := e.cfg.BlockSize
	from, to := before/size, r.computed/size
	if from == to {
		return
	}
	whole := min(to, len(r.Blocks))
	if from < whole {
		e.pool.Cache(r.held[from:whole], r.Blocks[from:whole])
		from = whole
	}
	for ; from < to; from++ {
		e.pool.CacheGenerated(r.held[from])
	}
}

// preempt evicts the last running request, to be computed again later.
func (e *Engine) preempt(r *Request, at latency.Ticks) {
	e.running = e.running[:len(e.running)-1]
	e.rememberOwn(r)
	e.pool.Release(r.held, at.Duration())
	r.held = r.held[:0]
	r.computed = 0
	// What is in flight still comes out; it is computed again with the rest.
	r.target = r.Prompt + r.sched
	r.Preemptions++
	r.displaced = true
	e.displaced++
	e.preemptions++
	if e.head > 0 {
		e.head--
		e.waiting[e.head] = r
	} else {
		e.waiting = append(e.waiting, nil)
		copy(e.waiting[1:], e.waiting)
		e.waiting[0] = r
	}
	e.version++
}

// rememberOwn notes where a request's full blocks of generated tokens are, before
// it lets go of them. What a recording found cached is in no block, and what
// follows it is not found without it.
func (e *Engine) rememberOwn(r *Request) {
	r.own = r.own[:0]
	for i := len(r.Blocks); i < r.computed/e.cfg.BlockSize; i++ {
		h := e.pool.Hash(r.held[i])
		if h == 0 {
			return
		}
		r.own = append(r.own, ownBlock{hash: h, slot: r.held[i]})
	}
}

// blocks is how many blocks hold so many tokens.
func (e *Engine) blocks(tokens int) int {
	return (tokens + e.cfg.BlockSize - 1) / e.cfg.BlockSize
}

// price works out what the step costs, and marks whether it continues prev, the
// step before it, over the same requests.
func (e *Engine) price(s, prev *step) {
	if s.empty() {
		return
	}
	if len(s.chunks) > 0 || len(s.decodes) != len(e.running) {
		e.version++
	}
	s.version = e.version
	if prev != nil && s.version == prev.version && len(s.chunks)+len(prev.chunks) == 0 {
		s.base, s.per, s.host = prev.base, prev.per, prev.host
		s.busy = s.base + latency.Ticks(s.context)*s.per
		return
	}
	s.host = scale(e.model.Host(s.requests()), e.slow)
	noise := e.slow
	if e.opts.Noise != nil {
		noise *= max(0.5, 1+e.model.NoiseShare()*e.opts.Noise.NormFloat64())
	}
	if s.uniform() {
		n := s.requests()
		base, per := e.model.Decode(n, e.clock, e.memory)
		s.base, s.per = scale(base, noise), scale(per, noise)
		context := s.context
		for _, c := range s.chunks {
			context += int64(c.ctx)
		}
		s.busy = s.base + latency.Ticks(context)*s.per
		return
	}
	e.chunks = e.chunks[:0]
	for _, c := range s.chunks {
		e.chunks = append(e.chunks, latency.Chunk{Tokens: c.n, Context: c.ctx})
	}
	s.busy = scale(e.model.Mixed(e.chunks, len(s.decodes), s.context, e.clock), noise)
}

func scale(t latency.Ticks, f float64) latency.Ticks {
	if f == 1 {
		return t
	}
	return latency.Ticks(float64(t) * f)
}
