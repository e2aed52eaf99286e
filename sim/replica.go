package sim

import (
	"time"

	"kvfleet/policies"
	"kvfleet/sim/engine"
	"kvfleet/sim/kvcache"
)

// A replica is one at run time: its process, its front end and its engine.
type replica struct {
	c      *cluster
	id     policies.ReplicaID
	name   string
	engine *engine.Engine
	lead   *replica      // whose events step it: itself, or the first of its ranks
	ranks  *engine.Ranks // of a lead

	alive      bool
	generation int64         // of the process; what was scheduled for an older one is void
	started    int64         // of the start-up under way; a kill voids it
	armed      int64         // of the pending engine event
	dueAt      time.Duration // when that is due
	frontEnd   time.Duration // when the front end is free
	inside     []int32       // calls in the front end, engine or on the way out, unordered
	fails      int           // health checks failed in a row
	passes     int
	rotation   bool // as the router knows it
	drained    bool // by the operator
	cleared    bool // the router knows that the process died since it was last in rotation
	muted      bool // its event stream is broken

	seq     uint64 // of the next event batch
	slow    float64
	samples []sample // engine counters, for the hit rate's window

	busySeen, prefillSeen time.Duration
}

type sample struct {
	at            time.Duration
	hits, queries int64
}

// accept takes a request at the front end's door: it queues for the process and
// reaches the engine when it has been rendered and tokenized.
func (n *replica) accept(call int32, at time.Duration) {
	f := &n.c.fleet.FrontEnd
	k := &n.c.calls[call]
	tokens := float64(k.req.Prompt)
	begin := max(at, n.frontEnd)
	// Arrivals come after the engine's steps of the same instant.
	n.engine.CatchUp(n.c.loop.Now() + 1)
	n.frontEnd = begin + n.scaled(f.service(tokens, n.engine.TokenRate()))
	k.generation = n.generation
	k.slot = int32(len(n.inside))
	n.inside = append(n.inside, call)
	k.submitAt = n.frontEnd + n.scaled(f.delay(tokens))
	n.c.loop.At(k.submitAt, rankSubmit, (*submits)(n.c), int64(call))
}

func (n *replica) scaled(d time.Duration) time.Duration {
	if n.slow == 1 {
		return d
	}
	return time.Duration(float64(d) * n.slow)
}

// leave takes a call off the replica's books.
func (n *replica) leave(call int32) {
	k := &n.c.calls[call]
	last := len(n.inside) - 1
	moved := n.inside[last]
	n.inside[k.slot] = moved
	n.c.calls[moved].slot = k.slot
	n.inside = n.inside[:last]
}

// arm makes sure an event stands for the engine's next due time.
func (n *replica) arm() {
	n = n.lead
	due, ok := n.engine.Due()
	if n.ranks != nil {
		due, ok = n.ranks.Due()
	}
	if !ok || due == n.dueAt {
		return
	}
	n.dueAt = due
	n.armed++
	n.c.loop.At(due, rankEngine, n, n.armed)
}

// Fire is the end of an engine step.
func (n *replica) Fire(at time.Duration, armed int64) {
	if armed != n.armed {
		return // planned anew since
	}
	n.dueAt = -1
	if n.ranks != nil {
		n.ranks.Fire()
	} else {
		n.engine.Fire()
	}
	n.arm()
}

// submits delivers calls from front ends to engines.
type submits cluster

func (s *submits) Fire(at time.Duration, arg int64) {
	c := (*cluster)(s)
	k := &c.calls[arg]
	// A call that was placed again, or its reused place, is due another time.
	if !k.open || !k.waiting || k.submitAt != at {
		return
	}
	n := c.replicas[k.replica]
	if k.generation != n.generation {
		return
	}
	k.waiting = false
	n.engine.Submit(k.req, at)
	n.arm()
}

// FirstToken, Finished and Stepped are what the engine tells its replica.
func (n *replica) FirstToken(r *engine.Request, at time.Duration) {
	k := &n.c.calls[r.ID]
	k.firstSeen = at + n.c.egress
	n.c.loop.At(k.firstSeen, rankClient, (*firsts)(n.c), r.ID)
}

// Finished schedules the end of the answer at the client.
func (n *replica) Finished(r *engine.Request, at time.Duration) {
	k := &n.c.calls[r.ID]
	k.lastSeen = at + n.c.egress
	n.c.loop.At(k.lastSeen, rankClient, (*ends)(n.c), r.ID)
}

// Stepped sends the step's KV events on their way.
func (n *replica) Stepped(at time.Duration, log *kvcache.Log) {
	n.c.publish(n, at, log)
}

// hitRate is the engine's hit rate over the window that ends now.
func (n *replica) hitRate(at, window time.Duration) (float64, bool) {
	hits, queries := n.engine.HitRate()
	n.samples = append(n.samples, sample{at, hits, queries})
	first := 0
	for first < len(n.samples)-1 && n.samples[first+1].at <= at-window {
		first++
	}
	n.samples = n.samples[:copy(n.samples, n.samples[first:])]
	base := n.samples[0]
	if queries == base.queries {
		return 0, false
	}
	return float64(hits-base.hits) / float64(queries-base.queries), true
}
