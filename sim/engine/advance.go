package engine

import (
	"math"
	"slices"
	"time"

	"kvfleet/sim/latency"
)

// plan decides how many steps the next Fire ends: one, or as many as decode the
// same requests before one of them is about to stop.
func (e *Engine) plan() {
	e.steps, e.due = 1, e.cur.end
	if e.opts.Stepwise || !e.steady() {
		return
	}
	q := e.stretch()
	if q < 2 {
		return
	}
	e.run(q)
	if expiry, ok := e.pool.NextExpiry(); ok {
		e.run(e.stepAt(expiry))
	}
}

// run lets the next Fire end q steps.
func (e *Engine) run(q int) { e.steps, e.due = q, e.stretchEnd(q) }

// CatchUp books the steps of a stretch that ended before at, which is not after
// Due. Usage, Steps and the output of requests are exact as of at then; without
// it they may lag by a stretch. It calls no one back and leaves Due as it is.
func (e *Engine) CatchUp(at time.Duration) {
	planned := e.steps
	k := e.stepAt(at) - 1
	if e.cur.empty() || k == 0 {
		return
	}
	e.run(k)
	e.Fire()
	if left := planned - k; e.steps > left {
		e.run(left)
	}
}

// interrupt makes the next Fire end the step that is running at time at,
// because something happens then that the next composed step must know of.
func (e *Engine) interrupt(at time.Duration) {
	e.CatchUp(at)
	e.run(1)
}

// stepAt is the first step of the planned stretch that ends at time at or later:
// the one running at that time. A step that ends at that very instant still is.
func (e *Engine) stepAt(at time.Duration) int {
	lo, hi := 1, e.steps
	for lo < hi {
		mid := (lo + hi) / 2
		if e.stretchEnd(mid).Duration() >= at {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// steady reports whether the steps after the current one would decode the very
// same requests, until one of them stops or the blocks run out. Requests may be
// waiting: the last composed step did not admit them, and nothing frees a block
// or a place before that.
func (e *Engine) steady() bool {
	if len(e.cur.chunks) > 0 {
		return false
	}
	if e.cfg.Async {
		return e.cur.version == e.nxt.version
	}
	// A step that preempted did not even try to admit.
	return e.cur.preempt == 0
}

// stretch is the number of steps, the current one included, until a request
// stops or, if events are reported, takes a block; 1 if the free blocks would
// not last.
func (e *Engine) stretch() int {
	q := math.MaxInt
	for _, r := range e.cur.decodes {
		if r == nil {
			return 1 // a burnt slot: the next step is another one
		}
		q = min(q, r.remaining())
		if e.log != nil {
			// Events must leave at the step that caused them, so a stretch ends
			// before the next block does.
			q = min(q, len(r.held)*e.cfg.BlockSize-r.computed)
		}
	}
	if e.cfg.Async {
		// The last step before a request stops is left to the ordinary path,
		// which knows who is still in the step composed ahead of it.
		q--
	}
	if e.log != nil || q < 2 {
		return q
	}
	need := 0
	for _, r := range e.cur.decodes {
		need += e.blocks(r.computed+q-1) - len(r.held)
	}
	if need > e.pool.Free() {
		return 1
	}
	return q
}

// stretchEnd is when the q-th step from the current one ends, over the current
// decode set.
func (e *Engine) stretchEnd(q int) latency.Ticks {
	c := e.cur
	n, k := latency.Ticks(len(c.decodes)), latency.Ticks(q-1)
	each := c.host + c.base + latency.Ticks(c.context)*c.per
	return c.end + k*each + c.per*n*(k*(k+1)/2)
}

// update accounts for the steps that have ended: tokens come out, requests
// finish.
func (e *Engine) update(end latency.Ticks) {
	c, q := e.cur, e.steps
	e.account(c, q, end)
	finished := false
	if q > 1 {
		e.catchUp(q)
	}
	gap, inc := latency.Ticks(0), latency.Ticks(0)
	if q > 1 {
		inc = c.per * latency.Ticks(len(c.decodes))
		gap = c.host + c.base + latency.Ticks(c.context)*c.per + inc
	}
	for _, r := range c.decodes {
		if r == nil {
			continue // a slot burnt after an early stop
		}
		r.emit(q, c.end, gap, inc, end)
		finished = finished || r.out >= r.Stop
	}
	for _, k := range c.chunks {
		if !k.last {
			continue
		}
		first := k.r.out == 0
		k.r.emit(1, end, 0, 0, end)
		if first {
			e.owner.FirstToken(k.r, end.Duration())
		}
		finished = finished || k.r.out >= k.r.Stop
	}
	if finished {
		e.retire(end)
	}
}

// retire releases the requests that have stopped.
func (e *Engine) retire(end latency.Ticks) {
	kept := e.running[:0]
	for _, r := range e.running {
		if r.out < r.Stop {
			kept = append(kept, r)
			continue
		}
		e.pool.Release(r.held, end.Duration())
		r.held = r.held[:0]
		if r.sched > r.out {
			e.burn(r)
		}
		e.owner.Finished(r, end.Duration())
	}
	clear(e.running[len(kept):])
	e.running = kept
	e.version++
	if e.displaced > 0 {
		e.retireDisplaced(end)
	}
}

// burn takes a request that stopped early out of the step composed ahead, which
// still runs at its full width.
func (e *Engine) burn(r *Request) {
	for i, other := range e.nxt.decodes {
		if other == r {
			e.nxt.decodes[i] = nil
			return
		}
	}
	panic("engine: a scheduled token is in no step")
}

// retireDisplaced drops the requests whose last token was in flight when they
// were preempted.
func (e *Engine) retireDisplaced(end latency.Ticks) {
	kept := e.waiting[:e.head]
	for _, r := range e.waiting[e.head:] {
		if r.out < r.Stop {
			kept = append(kept, r)
			continue
		}
		e.displaced--
		e.owner.Finished(r, end.Duration())
	}
	clear(e.waiting[len(kept):])
	e.waiting = kept
}

// A growth is a block that a request takes inside a stretch.
type growth struct {
	step int // of the stretch, 1 the first
	r    *Request
}

// catchUp schedules, for a stretch of q steps that has just ended, what the
// steps composed inside it would have scheduled: at the end of each but the last,
// one token a request. Blocks are taken in that order and at those times, since
// each may evict another.
func (e *Engine) catchUp(q int) {
	size := e.cfg.BlockSize
	e.growing = e.growing[:0]
	for _, r := range e.cur.decodes {
		for i := len(r.held)*size - r.computed + 1; i < q; i += size {
			e.growing = append(e.growing, growth{i, r})
		}
	}
	slices.SortStableFunc(e.growing, func(a, b growth) int { return a.step - b.step })
	for _, g := range e.growing {
		g.r.held = e.pool.Allocate(g.r.held, 1, e.stretchEnd(g.step).Duration())
	}
	for _, r := range e.cur.decodes {
		before := r.computed
		r.computed += q - 1
		r.sched += q - 1
		e.cacheFull(r, before)
	}
	if e.cfg.Async {
		e.nxt.context += int64(len(e.cur.decodes)) * int64(q-1)
		e.nxt.busy = e.nxt.base + latency.Ticks(e.nxt.context)*e.nxt.per
	}
}

// account books the steps' time, the host's share included: a card draws power
// over a step's whole span.
func (e *Engine) account(c *step, q int, end latency.Ticks) {
	span := end - c.start + c.host
	e.busy += span
	e.stepsRun += int64(q)
	if len(c.chunks) > 0 {
		e.prefill += span
	}
	if e.opts.Steps != nil {
		e.opts.Steps(c.record())
	}
}

func (s *step) record() Step {
	r := Step{
		Start: s.start.Duration(), Busy: (s.end - s.start).Duration(),
		PrefillReqs: len(s.chunks), DecodeReqs: len(s.decodes), DecodeContext: s.context,
		Preemptions: s.preempt,
	}
	for _, k := range s.chunks {
		r.PrefillTokens += k.n
		r.PrefillContext += int64(k.ctx)
	}
	return r
}
