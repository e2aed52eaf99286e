package engine

import (
	"time"

	"kvfleet/sim/latency"
)

// Ranks are the engines of one data-parallel deployment that exchange tokens in
// every layer, as the experts of a mixture-of-experts model make them do. They step
// together: a step begins when all have composed theirs and lasts as long as the
// longest. A rank without requests runs an empty step meanwhile, so what arrives
// there waits for the next common one.
type Ranks struct{ engines []*Engine }

// NewRanks binds engines that have not stepped yet. They advance step by step.
func NewRanks(engines ...*Engine) *Ranks {
	g := &Ranks{engines: engines}
	for _, e := range engines {
		if e.ranks != nil || !e.cur.empty() {
			panic("engine: ranks are bound once, before they step")
		}
		e.ranks, e.opts.Stepwise = g, true
	}
	return g
}

// Due is when the common step ends, as Engine.Due; false when all are idle.
func (g *Ranks) Due() (time.Duration, bool) {
	for _, e := range g.engines {
		if due, ok := e.Due(); ok {
			return due, true
		}
	}
	return 0, false
}

// Fire handles the end of the common step.
func (g *Ranks) Fire() {
	var end latency.Ticks
	for _, e := range g.engines {
		if !e.cur.empty() {
			end = e.due
		}
	}
	for _, e := range g.engines {
		if !e.cur.empty() {
			e.update(end)
		}
		e.next(end)
	}
	g.launch(end, 0)
}

// start begins stepping from idle, for the one that has a request.
func (g *Ranks) start(at latency.Ticks) {
	for _, e := range g.engines {
		e.pool.Expire(at.Duration())
		e.schedule(e.cur, nil, at)
	}
	g.launch(at, g.engines[0].model.ColdStart())
}

func (g *Ranks) launch(at, extra latency.Ticks) {
	var end latency.Ticks
	for _, e := range g.engines {
		if c := e.cur; !c.empty() {
			c.start = at + c.host + extra
			end = max(end, c.start+c.busy)
		}
	}
	for _, e := range g.engines {
		if e.cur.empty() {
			e.flush(at)
			continue
		}
		e.cur.end = end
		if e.cfg.Async {
			e.schedule(e.nxt, e.cur, at)
		}
		e.flush(at)
		e.steps, e.due = 1, end
	}
}
