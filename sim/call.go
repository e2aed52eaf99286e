package sim

import (
	"time"

	"kvfleet/policies"
	"kvfleet/sim/engine"
	"kvfleet/traces"
)

// A Prompt is what a driver sends: what the router and the engine need of it.
type Prompt struct {
	Session string
	Source  traces.SessionSource
	Turn    int
	User    int
	Bytes   int
	Tokens  int
	Prefix  []uint64 // 64-byte prefix block hashes
	Blocks  []uint64 // engine block ids
	// Trace, if not nil or TraceBlock is not 0, stands for Prefix and Blocks: ids
	// of the prompt's leading blocks of TraceBlock tokens, each for everything up
	// to its end. They are expanded when the prompt is sent.
	Trace        []uint64
	TraceBlock   int
	Distinct     bool // a trace's prompt that shares nothing with any other
	Max          int  // max_tokens
	Stop         int  // tokens the answer will have
	System       bool
	Branch       bool
	ScheduledAt  int64 // ns, traces.None in a closed loop
	RequestID    string
	driverCookie int64

	// What a replay may hold to the recording. Replica, if not empty, is where the
	// request went, whatever the policy would do. Recorded, if not 0, is one more
	// than the tokens the engine found cached. After, if not 0, is one more than
	// the place in the trace of the request whose end, ScheduledAt ns earlier, let
	// this one go: a closed loop.
	Replica  string
	Recorded int
	After    int
}

// A call is a request on its way through the fleet.
type call struct {
	open    bool
	waiting bool // in a front end
	replica policies.ReplicaID
	slot    int32

	generation int64 // of the process it was given to
	serial     int64
	prompt     Prompt
	req        *engine.Request
	decision   policies.Decision
	sent       time.Duration
	decided    time.Duration
	dispatched time.Duration
	submitAt   time.Duration // when its front end hands it to the engine
	firstSeen  time.Duration // when the client has the first token; -1 not yet known
	lastSeen   time.Duration // when the client has the last one
	prefilled  bool
	signalAge  int64 // of the engine's report the decision rested on, ns; None without one
	reroutes   int32
	from       policies.ReplicaID // rerouted from
	exclude    []policies.ReplicaID
	blocks     []uint64 // buffers of expanded prompts
	prefix     []uint64
}

// place takes a free call.
func (c *cluster) place() int32 {
	if n := len(c.freeCalls); n > 0 {
		i := c.freeCalls[n-1]
		c.freeCalls = c.freeCalls[:n-1]
		return i
	}
	c.calls = append(c.calls, call{req: &engine.Request{}})
	return int32(len(c.calls) - 1)
}

// send is a client sending a prompt now.
func (c *cluster) send(p Prompt) {
	if why := c.fleet.tooLong(&p); why != "" {
		c.reject(p, why)
		return
	}
	now := c.loop.Now()
	i := c.place()
	k := &c.calls[i]
	req := k.req
	req.Reset()
	c.serial++
	*k = call{
		open: true, serial: c.serial, prompt: p, req: req, sent: now, firstSeen: -1, lastSeen: -1,
		from: policies.NoReplica, replica: policies.NoReplica,
		exclude: k.exclude[:0], blocks: k.blocks[:0], prefix: k.prefix[:0],
	}
	if p.TraceBlock > 0 || p.Distinct {
		k.blocks = c.ids.blocks(k.blocks, &p)
		k.prefix = c.ids.prefix(k.prefix, &p)
		k.prompt.Blocks, k.prompt.Prefix = k.blocks, k.prefix
		p.Blocks = k.blocks
	}
	req.ID, req.Blocks, req.Prompt, req.Stop, req.Max, req.Recorded = int64(i), p.Blocks, p.Tokens, p.Stop, p.Max, p.Recorded
	if p.Replica != "" {
		k.exclude = c.allBut(k.exclude, p.Replica)
	}
	c.openCalls++
	if c.needsTokens {
		c.loop.At(now+c.tokenize(p.Tokens), rankArrive, (*decides)(c), int64(i))
		return
	}
	c.decide(i)
}

// allBut appends every replica but the one of that name, so that any policy picks
// it: the router's books are kept as always.
func (c *cluster) allBut(dst []policies.ReplicaID, name string) []policies.ReplicaID {
	for _, n := range c.replicas {
		if n.name != name {
			dst = append(dst, n.id)
		}
	}
	return dst
}

type decides cluster

func (d *decides) Fire(_ time.Duration, arg int64) { (*cluster)(d).decide(int32(arg)) }

// decide routes a call and dispatches it; with no replica to take it, it is
// dropped.
func (c *cluster) decide(i int32) {
	now := c.loop.Now()
	k := &c.calls[i]
	p := &k.prompt
	q := policies.Request{
		Session: p.Session, PromptTokens: p.Tokens, PromptBytes: p.Bytes,
		Prefix: p.Prefix, Exclude: k.exclude,
	}
	if c.needsTokens {
		q.Blocks = p.Blocks
		if q.Blocks == nil {
			q.Blocks = []uint64{} // tokenized, and shorter than a block
		}
	}
	d, err := c.router.Route(now, q)
	k.decided = now
	if err != nil {
		c.finish(i, traces.Dropped, "no replica in rotation")
		return
	}
	d.Candidates = nil
	k.signalAge = c.signalAge(d.Replica, now)
	k.decision, k.replica, k.prefilled = d, d.Replica, false
	k.dispatched = now + c.overhead
	c.decided(k)
	n := c.replicas[d.Replica]
	if !n.alive {
		// The connection is refused: the router knows at once.
		c.refused(i, n)
		return
	}
	k.waiting = true
	n.accept(i, k.dispatched)
}

// signalAge is how old the report is that the policy read of a replica.
func (c *cluster) signalAge(id policies.ReplicaID, now time.Duration) int64 {
	if !c.readsReports {
		return traces.None
	}
	r, ok := c.router.Snapshot().ByID(id)
	if !ok || !r.HitRateRead {
		return traces.None
	}
	return int64(now - r.Reported)
}

// reroute gives a call that has reached nobody's eyes to another replica.
func (c *cluster) reroute(i int32) {
	k := &c.calls[i]
	c.router.Done(c.loop.Now(), k.replica, k.decision.Pending)
	k.exclude = append(k.exclude, k.replica)
	k.reroutes++
	k.from, k.replica = k.replica, policies.NoReplica
	k.firstSeen = -1 // a token that was on its way is lost
	k.waiting = false
	req := k.req
	id, blocks, prompt, stop, most, recorded := req.ID, req.Blocks, req.Prompt, req.Stop, req.Max, req.Recorded
	req.Reset()
	req.ID, req.Blocks, req.Prompt, req.Stop, req.Max, req.Recorded = id, blocks, prompt, stop, most, recorded
	c.decide(i)
}

type firsts cluster

// Fire is a first token reaching the router and the client.
func (f *firsts) Fire(at time.Duration, arg int64) {
	c := (*cluster)(f)
	k := &c.calls[arg]
	if !k.open || k.firstSeen != at || k.prefilled || k.generation != c.replicas[k.replica].generation {
		return
	}
	k.prefilled = true
	c.router.Prefilled(at, k.replica, k.decision.Pending)
}

type ends cluster

// Fire is the end of an answer reaching the router and the client.
func (e *ends) Fire(at time.Duration, arg int64) {
	c := (*cluster)(e)
	k := &c.calls[arg]
	if !k.open || k.lastSeen != at || k.generation != c.replicas[k.replica].generation || k.req.Output() < k.req.Stop {
		return
	}
	c.replicas[k.replica].leave(int32(arg))
	c.finish(int32(arg), traces.Success, "")
}

// finish ends a call with its one outcome, and tells the driver.
func (c *cluster) finish(i int32, outcome traces.Outcome, reason string) {
	now := c.loop.Now()
	k := &c.calls[i]
	if k.replica != policies.NoReplica {
		pending := k.decision.Pending
		if k.prefilled {
			pending = 0
		}
		c.router.Done(now, k.replica, pending)
	}
	c.row(k, outcome, reason, now)
	cookie, refused := k.prompt.driverCookie, k.replica == policies.NoReplica
	c.lastEnd = now
	k.open = false
	c.openCalls--
	c.freeCalls = append(c.freeCalls, i)
	c.driver.ended(cookie, now, refused)
}
