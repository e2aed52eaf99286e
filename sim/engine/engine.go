package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kvfleet/sim/kvcache"
	"kvfleet/sim/latency"
)

// Config describes an engine.
type Config struct {
	BlockSize   int `yaml:"block_size"`             // tokens per KV block
	Blocks      int `yaml:"num_gpu_blocks"`         // KV blocks, one of them the null block
	TokenBudget int `yaml:"max_num_batched_tokens"` // tokens a step
	MaxSeqs     int `yaml:"max_num_seqs"`           // running requests
	// Async schedules a step ahead: while step k runs, step k+1 is already
	// composed, so that an arrival joins step k+2 at the earliest. Without it an
	// arrival joins the next step.
	Async bool `yaml:"async_scheduling"`
	// LockstepRanks is how many engines, one after another in the fleet file, are
	// the ranks of one data-parallel deployment that step together; see Ranks. 0
	// and 1 are engines of their own.
	LockstepRanks int `yaml:"lockstep_ranks,omitempty"`
	// IdleTTL evicts cached blocks idle for this long; 0 never does.
	IdleTTL time.Duration `yaml:"idle_ttl,omitempty"`
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	atLeast := func(name string, v, least int) {
		if v < least {
			faults = append(faults, fmt.Errorf("%s: got %d, want at least %d", name, v, least))
		}
	}
	atLeast("block_size", c.BlockSize, 1)
	atLeast("num_gpu_blocks", c.Blocks, 2)
	atLeast("max_num_seqs", c.MaxSeqs, 1)
	atLeast("max_num_batched_tokens", c.TokenBudget, max(1, c.MaxSeqs))
	atLeast("lockstep_ranks", c.LockstepRanks, 0)
	if c.IdleTTL < 0 {
		faults = append(faults, fmt.Errorf("idle_ttl: got %v, want zero or more", c.IdleTTL))
	}
	return errors.Join(faults...)
}

// Tokens is how many tokens of KV the engine can hold.
func (c Config) Tokens() int { return (c.Blocks - 1) * c.BlockSize }

// An Owner is told what happens to its requests. Times are when the GPU and the
// host are done with a step; what the client sees comes later. The engine is in
// the middle of a step when it calls, so an owner must not call it back.
type Owner interface {
	// FirstToken is called once per request, when its first token is out.
	FirstToken(r *Request, at time.Duration)
	// Finished is called once per request; the owner may reuse r once it returns.
	Finished(r *Request, at time.Duration)
	// Stepped is called after each composed step with the KV events it caused;
	// they are valid until the call returns.
	Stepped(at time.Duration, events *kvcache.Log)
}

// A Step is one engine step, as a step log records it.
type Step struct {
	Start, Busy    time.Duration
	PrefillReqs    int
	PrefillTokens  int
	PrefillContext int64 // sequence lengths after the step, summed
	DecodeReqs     int
	DecodeContext  int64
	Preemptions    int
}

// Options are what a run wants of an engine beyond its configuration.
type Options struct {
	Noise    *rand.Rand              // the engine's own named stream; nil for no noise
	Events   bool                    // report KV events, step by step
	Stepwise bool                    // never advance a stretch in closed form
	Evicted  func(age time.Duration) // told the idle age of every evicted block
	Steps    func(Step)              // step log; implies Stepwise
}

// An Engine is one replica's engine. It is not safe for concurrent use.
type Engine struct {
	cfg   Config
	model *latency.Model
	opts  Options
	owner Owner
	pool  *kvcache.Pool
	log   *kvcache.Log
	ranks *Ranks // that step together with it, or nil

	waiting []*Request
	head    int // first waiting
	running []*Request

	cur, nxt *step
	version  int64
	steps    int           // how many steps the pending Fire ends
	due      latency.Ticks // when it is due
	growing  []growth      // scratch of catchUp
	chunks   []latency.Chunk
	clock    float64 // multiplies compute-bound time
	memory   float64 // multiplies bandwidth-bound time
	slow     float64 // fault: multiplies everything

	busy        latency.Ticks // time in steps, the host's share included
	prefill     latency.Ticks // of it, in steps that prefill
	preemptions int
	displaced   int // preempted requests among the waiting
	stepsRun    int64
	queries     int64
	hits        int64
}

// New builds an idle engine.
func New(cfg Config, model *latency.Model, owner Owner, opts Options) *Engine {
	e := &Engine{cfg: cfg, model: model, owner: owner, opts: opts, cur: &step{}, nxt: &step{}, clock: 1, memory: 1, slow: 1}
	if opts.Steps != nil {
		e.opts.Stepwise = true
	}
	if opts.Events {
		e.log = &kvcache.Log{}
	}
	e.pool = kvcache.New(kvcache.Options{Blocks: cfg.Blocks, TTL: cfg.IdleTTL, Log: e.log, Evicted: opts.Evicted})
	return e
}

// SetClock sets the factors by which compute-bound and bandwidth-bound work take
// longer than at the reference clock. They take effect when the set of decoding
// requests next changes.
func (e *Engine) SetClock(compute, memory float64) { e.clock, e.memory = compute, memory }

// SetSlow sets a fault's factor on everything the engine does; 1 is none. It
// takes effect as SetClock does.
func (e *Engine) SetSlow(factor float64) { e.slow = factor }

// Reprice makes what SetClock and SetSlow set apply from the next composed step
// on. It may bring Due forward.
func (e *Engine) Reprice(at time.Duration) {
	if !e.cur.empty() {
		e.interrupt(at)
	}
	e.version++
}

// Pool is the engine's KV cache, for inspection.
func (e *Engine) Pool() *kvcache.Pool { return e.pool }

// Running counts the requests that the scheduler serves.
func (e *Engine) Running() int { return len(e.running) }

// Waiting counts the requests that are not served: not yet, or preempted.
func (e *Engine) Waiting() int { return len(e.waiting) - e.head }

// Usage is the time spent in steps that have ended, the host's share included,
// and the part of it in steps that prefilled.
func (e *Engine) Usage() (busy, prefill time.Duration) {
	return e.busy.Duration(), e.prefill.Duration()
}

// Preemptions counts preemptions since the start.
func (e *Engine) Preemptions() int { return e.preemptions }

// Steps counts the steps run since the start.
func (e *Engine) Steps() int64 { return e.stepsRun }

// HitRate is prefix-cache hits and queries so far, in tokens, as the engine's
// own counters have them.
func (e *Engine) HitRate() (hits, queries int64) { return e.hits, e.queries }

// Due is when the next Fire is due, in whole nanoseconds rounded down; false
// when the engine is idle.
func (e *Engine) Due() (time.Duration, bool) {
	if e.cur.empty() {
		return 0, false
	}
	return e.due.Duration(), true
}

// Submit hands a request to the engine at time at, which is not before the last
// Fire nor after Due. It panics if the request could never be served, which its
// owner checks beforehand: see Config.Tokens.
func (e *Engine) Submit(r *Request, at time.Duration) {
	switch {
	case r.Stop < 1 || r.Stop > r.Max:
		panic("engine: a request must stop after 1 to max tokens")
	case r.Prompt < 1 || len(r.Blocks) > r.Prompt/e.cfg.BlockSize:
		panic("engine: a request needs a prompt, and no more block hashes than that has whole blocks")
	case e.blocks(r.Prompt+r.Max-1) > e.pool.Blocks():
		panic("engine: a request is longer than the KV cache")
	}
	r.Submitted = latency.TicksOf(at)
	r.target = r.Prompt
	if !e.cur.empty() {
		e.interrupt(at)
		e.waiting = append(e.waiting, r)
		return
	}
	e.waiting = append(e.waiting, r)
	if e.ranks == nil {
		e.start(latency.TicksOf(at))
	} else if _, ok := e.ranks.Due(); !ok {
		e.ranks.start(latency.TicksOf(at))
	}
}

// start begins stepping from idle.
func (e *Engine) start(at latency.Ticks) {
	e.pool.Expire(at.Duration())
	e.schedule(e.cur, nil, at)
	if e.cur.empty() {
		e.flush(at)
		return
	}
	e.launch(at, e.model.ColdStart())
}

// Fire handles the end of the step, or stretch of steps, that is due.
func (e *Engine) Fire() {
	end := e.due
	e.update(end)
	e.next(end)
	if e.cur.empty() {
		e.flush(end)
		return
	}
	e.launch(end, 0)
}

// next makes the step composed ahead the current one, or composes it.
func (e *Engine) next(at latency.Ticks) {
	e.cur, e.nxt = e.nxt, e.cur
	e.pool.Expire(at.Duration())
	if e.cur.empty() {
		// Nothing was composed ahead.
		e.schedule(e.cur, e.nxt, at)
	}
	e.nxt.reset()
}

// launch starts the composed step after the host's share of it, composes the
// next one if scheduling runs ahead, and plans the next Fire.
func (e *Engine) launch(at latency.Ticks, extra latency.Ticks) {
	c := e.cur
	c.start = at + c.host + extra
	c.end = c.start + c.busy
	if e.cfg.Async {
		e.schedule(e.nxt, e.cur, at)
	}
	e.flush(at)
	e.plan()
}

// flush hands the KV events since the last step to the owner.
func (e *Engine) flush(at latency.Ticks) {
	if e.log != nil && !e.log.Empty() {
		e.owner.Stepped(at.Duration(), e.log)
		e.log.Reset()
	}
}

// Kill drops every request and the cache, and returns the requests that were
// lost, running first. CatchUp beforehand makes their output exact.
func (e *Engine) Kill() []*Request {
	var lost []*Request
	lost = append(lost, e.running...)
	lost = append(lost, e.waiting[e.head:]...)
	for _, r := range lost {
		r.held = r.held[:0]
	}
	clear(e.running)
	clear(e.waiting)
	e.running, e.waiting, e.head, e.displaced = e.running[:0], e.waiting[:0], 0, 0
	e.cur.reset()
	e.nxt.reset()
	e.version++
	e.pool.Reset()
	if e.log != nil {
		e.log.Reset()
	}
	return lost
}

// TokenRate is how many tokens per second the step under way brings out for
// requests that decode; 0 when none does. CatchUp beforehand finds the step.
func (e *Engine) TokenRate() float64 {
	c := e.cur
	if len(c.decodes) == 0 {
		return 0
	}
	return float64(len(c.decodes)) / (c.host + c.end - c.start).Duration().Seconds()
}
