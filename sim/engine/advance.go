package engine

import (
	"time"

	"kvfleet/sim/latency"
)

// plan decides how many steps the next Fire ends: one, or as many as decode the
// same requests before one of them is about to stop.
func (e *Engine) plan() {
	e.steps, e.due = 1, e.cur.end
	// Requests may wait: the last composed step did not admit them, and nothing
	// frees a block or a place before the stretch ends.
	if e.opts.Stepwise || len(e.cur.chunks) > 0 {
		return
	}
	if e.cfg.Async && e.cur.version != e.nxt.version {
		return
	}
	q := int(^uint(0) >> 1)
	for _, r := range e.cur.decodes {
		if r == nil {
			return // a burnt slot: the next step is another one
		}
		q = min(q, r.remaining())
	}
	if e.cfg.Async {
		// The last step before a request stops is left to the ordinary path,
		// which knows who is still in the step composed ahead of it.
		q--
	}
	if q < 2 {
		return
	}
	need := 0
	size := e.cfg.BlockSize
	for _, r := range e.cur.decodes {
		if e.log != nil {
			// Events must leave at the step that caused them, so a stretch ends
			// before the next block does.
			q = min(q, len(r.held)*size-r.computed)
			continue
		}
		need += e.blocks(r.computed+q-1) - len(r.held)
	}
	if q < 2 || need > e.pool.Free() {
		return
	}
	e.steps, e.due = q, e.stretchEnd(q)
}

// stretchEnd is when the q-th step from the current one ends, over the current
// decode set.
func (e *Engine) stretchEnd(q int) latency.Ticks {
	c := e.cur
	n, k := latency.Ticks(len(c.decodes)), latency.Ticks(q-1)
	each := c.host + c.base + latency.Ticks(c.context)*c.per
	return c.end + k*each + c.per*n*(k*(k+1)/2)
}

// cut ends a planned stretch with the step that is running at time at, because
// a request has arrived.
func (e *Engine) cut(at time.Duration) {
	if e.steps <= 1 {
		return
	}
	lo, hi := 1, e.steps
	for lo < hi {
		mid := (lo + hi) / 2
		if e.stretchEnd(mid).Duration() >= at {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	e.steps, e.due = lo, e.stretchEnd(lo)
}

// update accounts for the steps that have ended: tokens come out, requests
// finish.
func (e *Engine) update(end latency.Ticks) {
	c, q := e.cur, e.steps
	e.account(c, q, end)
	finished := false
	if q > 1 {
		e.catchUp(q, end)
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

// catchUp schedules, for a stretch of q steps, what the steps composed inside it
// would have scheduled: q-1 tokens a request.
func (e *Engine) catchUp(q int, end latency.Ticks) {
	for _, r := range e.cur.decodes {
		before := r.computed
		if need := e.blocks(before+q-1) - len(r.held); need > 0 {
			r.held = e.pool.Allocate(r.held, need, end.Duration())
		}
		r.computed += q - 1
		r.sched += q - 1
		e.cacheFull(r, before)
	}
	if !e.cfg.Async {
		return
	}
	n := int64(len(e.cur.decodes))
	e.nxt.context += n * int64(q-1)
	e.nxt.busy = e.nxt.base + latency.Ticks(e.nxt.context)*e.nxt.per
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

func (c *step) record() Step {
	s := Step{
		Start: c.start.Duration(), Busy: c.busy.Duration(),
		PrefillReqs: len(c.chunks), DecodeReqs: len(c.decodes), DecodeContext: c.context,
		Preemptions: c.preempt,
	}
	for _, k := range c.chunks {
		s.PrefillTokens += k.n
		s.PrefillContext += int64(k.ctx)
	}
	return s
}
