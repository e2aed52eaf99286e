package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvfleet/sim/kvcache"
	"kvfleet/sim/latency"
)

// An action is something that happens to an engine from outside.
type action struct {
	at   time.Duration
	kind string // submit, clock, slow, clock+reprice, slow+reprice, look, kill
	req  Request
	x    float64
}

// A world is one engine, the requests it was given and everything it said.
type world struct {
	t        *testing.T
	e        *Engine
	now      time.Duration
	requests []*Request
	log      []string // callbacks, in order
	looks    []string // what an observer saw in between
	finished map[int64]int
	stored   map[uint64]int // copies, as a subscriber of the events counts them
	audit    bool
	ages     *[]time.Duration // idle ages of evicted blocks
}

func newWorld(t *testing.T, cfg Config, opts Options) *world {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	m, err := latency.New(testParams())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, finished: map[int64]int{}, stored: map[uint64]int{}, audit: true}
	w.e = New(cfg, m, w, opts)
	return w
}

// testParams are plain numbers that make different steps take different times.
func testParams() latency.Params {
	return latency.Params{
		WeightsMS: 5, DenseTokenMS: 0.2, TileTokens: 32, PairMS: 1e-4,
		MixedDecodeMS: 0.05, MixedContextMS: 1e-3, SustainedShare: 0.05, SustainedMS: 100,
		EagerMS: 1, PrefillMixedMS: 2, HostMS: 1.5, HostRequestMS: 0.1, ColdStartMS: 4,
		DecodeComputeShare: 0.4, NoiseShare: 0.02,
		DecodeLadder: []latency.Rung{
			{Batch: 1, MS: 5.8, ContextMS: 3e-4}, {Batch: 2, MS: 5.9, ContextMS: 2.5e-4},
			{Batch: 4, MS: 6.1, ContextMS: 2e-4}, {Batch: 8, MS: 7, ContextMS: 2e-4},
		},
	}
}

func (w *world) FirstToken(r *Request, at time.Duration) {
	w.passes(at)
	if r.Output() != 1 {
		w.t.Errorf("request %d: first token told at output %d, want 1", r.ID, r.Output())
	}
	w.log = append(w.log, fmt.Sprintf("%d first %d", at, r.ID))
}

func (w *world) Finished(r *Request, at time.Duration) {
	w.passes(at)
	if r.Output() != r.Stop {
		w.t.Errorf("request %d: finished after %d tokens, want %d", r.ID, r.Output(), r.Stop)
	}
	w.finished[r.ID]++
	w.log = append(w.log, fmt.Sprintf("%d finished %d", at, r.ID))
}

func (w *world) Stepped(at time.Duration, l *kvcache.Log) {
	w.passes(at)
	if l.Empty() {
		w.t.Error("told of a step without events")
	}
	for _, h := range l.Stored {
		w.stored[h]++
	}
	for _, h := range l.Removed {
		if w.stored[h]--; w.stored[h] < 0 {
			w.t.Errorf("block %x removed more often than stored", h)
		}
	}
	w.log = append(w.log, fmt.Sprintf("%d stored %x removed %x", at, l.Stored, l.Removed))
}

// passes checks that time never goes back.
func (w *world) passes(at time.Duration) {
	if at < w.now {
		w.t.Errorf("the engine speaks of %v after %v", at, w.now)
	}
	w.now = at
}

func (w *world) check() {
	if !w.audit {
		return
	}
	if err := w.e.Audit(); err != nil {
		w.t.Fatalf("at %v: %v", w.now, err)
	}
}

// until fires every step that ends before at.
func (w *world) until(at time.Duration) {
	for {
		due, ok := w.e.Due()
		if !ok || due >= at {
			return
		}
		if due < w.now {
			w.t.Fatalf("due at %v, but it is %v", due, w.now)
		}
		w.e.Fire()
		w.check()
	}
}

// run performs the actions, in order, and then lets the engine finish.
func (w *world) run(actions []action) {
	w.t.Helper()
	for _, a := range actions {
		w.until(a.at)
		w.passes(a.at)
		w.do(a)
		w.check()
	}
	w.until(1 << 62)
	if w.e.Running()+w.e.Waiting() > 0 {
		w.t.Fatalf("idle with %d running and %d waiting", w.e.Running(), w.e.Waiting())
	}
}

func (w *world) do(a action) {
	switch a.kind {
	case "submit":
		r := a.req
		w.requests = append(w.requests, &r)
		w.e.Submit(&r, a.at)
	case "clock":
		w.e.SetClock(a.x, 1+(a.x-1)/3)
	case "slow":
		w.e.SetSlow(a.x)
	case "clock+reprice":
		w.e.SetClock(a.x, 1+(a.x-1)/3)
		w.e.Reprice(a.at)
	case "slow+reprice":
		w.e.SetSlow(a.x)
		w.e.Reprice(a.at)
	case "look":
		w.e.CatchUp(a.at)
		w.looks = append(w.looks, w.state(a.at))
	case "kill":
		w.e.CatchUp(a.at)
		lost := w.e.Kill()
		w.looks = append(w.looks, fmt.Sprintf("killed: %d", len(lost)))
		for _, r := range lost {
			w.finished[r.ID]++
			w.looks = append(w.looks, outcome(r))
		}
		clear(w.stored)
	default:
		panic(a.kind)
	}
}

// state is all an observer can see of an engine that has caught up.
func (w *world) state(at time.Duration) string {
	busy, prefill := w.e.Usage()
	hits, queries := w.e.HitRate()
	s := fmt.Sprintf("%d: %d running %d waiting, %d steps, busy %d %d, %d preempted, %d/%d hits, %v tokens/s, out",
		at, w.e.Running(), w.e.Waiting(), w.e.Steps(), busy, prefill, w.e.Preemptions(), hits, queries, w.e.TokenRate())
	for _, r := range w.requests {
		s += fmt.Sprintf(" %d", r.Output())
	}
	return s
}

// outcome is all that is recorded of a request.
func outcome(r *Request) string {
	s := fmt.Sprintf("%d: out %d cached %d preempted %d submitted %d admitted %d first %d last %d gaps",
		r.ID, r.Output(), r.Cached, r.Preemptions, r.Submitted, r.Admitted, r.First, r.Last)
	for _, g := range r.runs {
		v := g.first
		for range g.n {
			s += fmt.Sprintf(" %d", v)
			v += g.inc
		}
	}
	return s
}

// drained is what is in the free queue, in order: the idle ages of everything
// that is evicted when all of it is allocated.
func (w *world) drained() string {
	p := w.e.Pool()
	s := fmt.Sprintf("%d free; evicted before %v; left", p.Free(), *w.ages)
	*w.ages = nil
	p.Allocate(nil, p.Free(), w.now)
	return s + fmt.Sprint(*w.ages)
}

// A scene is a random engine and a random day of it.
type scene struct {
	cfg     Config
	events  bool
	noise   uint64 // seed, 0 for none
	actions []action
	known   [][]uint64 // every prompt's hashes
}

func randomScene(seed uint64, kills bool) scene {
	rng := rand.New(rand.NewPCG(seed, 0x5ce9e))
	c := Config{BlockSize: []int{1, 4, 16}[rng.IntN(3)], MaxSeqs: 1 + rng.IntN(10), Async: rng.IntN(2) == 0}
	c.TokenBudget = c.MaxSeqs + rng.IntN(1+rng.IntN(100))
	c.Blocks = 12 + rng.IntN(1+rng.IntN(200))
	if rng.IntN(3) == 0 {
		c.IdleTTL = time.Duration(1+rng.IntN(2000)) * time.Millisecond
	}
	s := scene{cfg: c, events: rng.IntN(2) == 0}
	if rng.IntN(2) == 0 {
		s.noise = seed + 1
	}
	spread := time.Duration(1+rng.IntN(1500)) * time.Millisecond
	at := time.Duration(0)
	requests := 10 + rng.IntN(40)
	if rng.IntN(20) == 0 {
		requests *= 8
	}
	for id := range requests {
		if rng.IntN(4) > 0 { // or at the same instant
			at += time.Duration(rng.Int64N(int64(spread)))
		}
		if rng.IntN(12) == 0 {
			at += 20 * spread // let it go idle
		}
		s.actions = append(s.actions, action{at: at, kind: "submit", req: s.request(rng, int64(id))})
		for rng.IntN(3) == 0 {
			a := action{at: at + time.Duration(rng.Int64N(int64(spread))), kind: "look"}
			switch k := rng.IntN(12); {
			case k < 2:
				a.kind, a.x = "clock", 1+rng.Float64()/2
			case k < 4:
				a.kind, a.x = "slow", 1+rng.Float64()*2
			case k < 5:
				a.kind, a.x = "clock+reprice", 1+rng.Float64()/2
			case k < 6:
				a.kind, a.x = "slow+reprice", 1+rng.Float64()*2
			case k < 7 && kills:
				a.kind = "kill"
			}
			s.actions = append(s.actions, a)
		}
	}
	slices.SortStableFunc(s.actions, func(a, b action) int { return int(a.at - b.at) })
	return s
}

// request is of one of a few families that share prefixes; half of the prompts
// are whole blocks.
func (s *scene) request(rng *rand.Rand, id int64) Request {
	size, most := s.cfg.BlockSize, s.cfg.Tokens()
	prompt := 1 + rng.IntN(most*2/3)
	if rng.IntN(3) == 0 {
		prompt = 1 + rng.IntN(min(prompt, 3*size))
	}
	if rng.IntN(2) == 0 && prompt > size {
		prompt -= prompt % size
	}
	top := min(1+most-prompt, 1+rng.IntN(60))
	top = 1 + rng.IntN(top)
	r := Request{ID: id, Prompt: prompt, Max: top, Stop: top}
	if rng.IntN(3) == 0 {
		r.Stop = 1 + rng.IntN(top)
	}
	family, shared := uint64(1+rng.IntN(4))<<20, rng.IntN(prompt/size+1)
	for i := range prompt / size {
		h := family + uint64(i)
		if i >= shared {
			h += uint64(id+1) << 32
		}
		r.Blocks = append(r.Blocks, h)
	}
	s.known = append(s.known, r.Blocks)
	return r
}

// play runs the scene and returns everything there is to compare.
func (s *scene) play(t *testing.T, stepwise bool, steps func(Step)) (*world, []string) {
	t.Helper()
	var ages []time.Duration
	evicted := func(age time.Duration) { ages = append(ages, age) }
	opts := Options{Events: s.events, Stepwise: stepwise, Evicted: evicted, Steps: steps}
	if s.noise > 0 {
		opts.Noise = rand.New(rand.NewPCG(s.noise, 0))
	}
	w := newWorld(t, s.cfg, opts)
	w.ages = &ages
	w.run(s.actions)
	var all []string
	for _, r := range w.requests {
		all = append(all, outcome(r))
	}
	all = append(all, w.log...)
	all = append(all, w.looks...)
	for i, blocks := range s.known {
		all = append(all, fmt.Sprintf("match %d: %d", i, w.e.Pool().Match(blocks)))
	}
	all = append(all, w.state(w.now), w.drained())
	return w, all
}
