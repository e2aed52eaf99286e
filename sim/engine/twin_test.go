package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kvfleet/sim/latency"
)

// A twin is the scheduler as vLLM's documentation explains it, step by step and
// with lists: a request has tokens that exist (its prompt and what it was
// scheduled to answer) and tokens that are computed, and every step lets each
// request catch up. It shares nothing with the engine but the latency model, and
// knows no noise, clocks or events.
type twin struct {
	cfg     Config
	model   *latency.Model
	free    []*twinBlock // in the order they will be taken
	copies  map[uint64][]*twinBlock
	waiting []*twinRequest
	running []*twinRequest
	cur     *twinStep
	next    *twinStep // composed ahead, if Config.Async
	all     []*twinRequest
}

type twinBlock struct {
	key   uint64 // content; 0 is none
	refs  int
	freed time.Duration
}

type twinRequest struct {
	Request  // the given part
	computed int
	answers  int // scheduled
	out      []latency.Ticks
	blocks   []*twinBlock
	catchUp  bool // since it was admitted, no answer was scheduled
	cached   int
	admitted latency.Ticks
	evicted  int
}

type twinStep struct {
	chunks     []latency.Chunk
	decodes    int
	context    int64
	answering  []*twinRequest
	preempted  bool
	start, end latency.Ticks
}

func (w *twin) exists(r *twinRequest) int { return r.Prompt + r.answers }

func (w *twin) ceil(tokens int) int { return (tokens + w.cfg.BlockSize - 1) / w.cfg.BlockSize }

// key is the content of a request's i-th block: a prompt's, or its own.
func (w *twin) key(r *twinRequest, i int) uint64 {
	if i < len(r.Blocks) {
		return r.Blocks[i]
	}
	return 1<<63 | uint64(r.ID)<<32 | uint64(i)
}

func (w *twin) hits(r *twinRequest) (found []*twinBlock) {
	for i := range (w.exists(r) - 1) / w.cfg.BlockSize {
		copies := w.copies[w.key(r, i)]
		if len(copies) == 0 {
			break
		}
		found = append(found, copies[0])
	}
	return found
}

func (w *twin) forget(b *twinBlock) {
	if b.key != 0 {
		w.copies[b.key] = slices.DeleteFunc(w.copies[b.key], func(o *twinBlock) bool { return o == b })
		b.key = 0
	}
}

func (w *twin) hold(r *twinRequest, b *twinBlock) {
	if b.refs == 0 {
		w.free = slices.DeleteFunc(w.free, func(o *twinBlock) bool { return o == b })
	}
	b.refs++
	r.blocks = append(r.blocks, b)
}

func (w *twin) letGo(r *twinRequest, at latency.Ticks) {
	for _, b := range slices.Backward(r.blocks) {
		if b.refs--; b.refs > 0 {
			continue
		}
		b.freed = at.Duration()
		if b.key == 0 {
			w.free = slices.Insert(w.free, 0, b)
		} else {
			w.free = append(w.free, b)
		}
	}
	r.blocks, r.computed = nil, 0
}

// compute schedules n tokens of a request into the step.
func (w *twin) compute(s *twinStep, r *twinRequest, n int) {
	for range w.ceil(r.computed+n) - len(r.blocks) {
		b := w.free[0]
		w.forget(b)
		w.hold(r, b)
	}
	before := r.computed
	r.computed += n
	for i := before / w.cfg.BlockSize; i < r.computed/w.cfg.BlockSize; i++ {
		b, k := r.blocks[i], w.key(r, i)
		b.key = k
		w.copies[k] = slices.Insert(w.copies[k], min(1, len(w.copies[k])), b)
		if k >= 1<<63 {
			w.copies[k] = []*twinBlock{b} // of one's own blocks, the newest counts
		}
	}
	if r.catchUp {
		s.chunks = append(s.chunks, latency.Chunk{Tokens: n, Context: r.computed})
	} else {
		s.decodes++
		s.context += int64(r.computed)
	}
	if r.computed == w.exists(r) {
		r.answers++
		r.catchUp = false
		s.answering = append(s.answering, r)
	}
}

func (w *twin) compose(at latency.Ticks) *twinStep {
	s := &twinStep{}
	budget := w.cfg.TokenBudget
	for i := 0; i < len(w.running) && budget > 0; i++ {
		r := w.running[i]
		n := min(w.exists(r)-r.computed, budget)
		if r.answers == r.Max {
			continue
		}
		for w.ceil(r.computed+n)-len(r.blocks) > len(w.free) && len(w.running) > i {
			last := w.running[len(w.running)-1]
			w.running = w.running[:len(w.running)-1]
			w.letGo(last, at)
			last.evicted++
			w.waiting = slices.Insert(w.waiting, 0, last)
			s.preempted = true
		}
		if i < len(w.running) {
			w.compute(s, r, n)
			budget -= n
		}
	}
	for !s.preempted && len(w.waiting) > 0 && budget > 0 && len(w.running) < w.cfg.MaxSeqs {
		r := w.waiting[0]
		found := w.hits(r)
		idle := 0
		for _, b := range found {
			if b.refs == 0 {
				idle++
			}
		}
		if w.ceil(w.exists(r))-len(found)+idle > len(w.free) {
			break
		}
		for _, b := range found {
			w.hold(r, b)
		}
		r.computed, r.catchUp = len(found)*w.cfg.BlockSize, true
		if r.admitted < 0 {
			r.admitted, r.cached = at, r.computed
		}
		w.waiting = w.waiting[1:]
		w.running = append(w.running, r)
		n := min(w.exists(r)-r.computed, budget)
		w.compute(s, r, n)
		budget -= n
	}
	if len(s.chunks)+s.decodes == 0 {
		return nil
	}
	return s
}

func (w *twin) launch(s *twinStep, at, extra latency.Ticks) {
	w.cur = s
	s.start = at + extra + w.model.Host(len(s.chunks)+s.decodes)
	s.end = s.start + w.price(s)
	if w.cfg.Async {
		w.next = w.compose(at)
	}
}

func (w *twin) price(s *twinStep) latency.Ticks {
	context, single := s.context, true
	for _, c := range s.chunks {
		context += int64(c.Context)
		single = single && c.Tokens == 1
	}
	if single {
		base, per := w.model.Decode(len(s.chunks)+s.decodes, 1, 1)
		return base + per*latency.Ticks(context)
	}
	return w.model.Mixed(s.chunks, s.decodes, s.context, 1)
}

func (w *twin) submit(given Request, at time.Duration) {
	r := &twinRequest{Request: given, admitted: -1}
	w.all = append(w.all, r)
	w.waiting = append(w.waiting, r)
	if w.cur == nil {
		w.expire(at)
		if s := w.compose(latency.TicksOf(at)); s != nil {
			w.launch(s, latency.TicksOf(at), w.model.ColdStart())
		}
	}
}

// fire ends the current step.
func (w *twin) fire() {
	end := w.cur.end
	for _, r := range w.cur.answering {
		if len(r.out) < r.Stop { // or the slot was burnt
			r.out = append(r.out, end)
		}
	}
	for _, r := range slices.Clone(w.running) {
		if len(r.out) == r.Stop {
			w.letGo(r, end)
			w.running = slices.DeleteFunc(w.running, func(o *twinRequest) bool { return o == r })
		}
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(o *twinRequest) bool { return len(o.out) == o.Stop })
	w.expire(end.Duration())
	s := w.next
	w.cur, w.next = nil, nil
	if s == nil {
		s = w.compose(end)
	}
	if s != nil {
		w.launch(s, end, 0)
	}
}

func (w *twin) expire(now time.Duration) {
	for _, b := range w.free {
		if w.cfg.IdleTTL > 0 && b.key != 0 && now-b.freed > w.cfg.IdleTTL {
			w.forget(b)
		}
	}
}

// TestEngineEqualsTwin compares every token of every request of random scenes.
func TestEngineEqualsTwin(t *testing.T) {
	scenes := 500
	if testing.Short() {
		scenes = 150
	}
	preempted, again := 0, 0
	for seed := range uint64(scenes) {
		s := randomScene(1<<40+seed, false)
		s.noise, s.events = 0, false
		s.actions = slices.DeleteFunc(s.actions, func(a action) bool { return a.kind != "submit" })
		got, _ := s.play(t, false, nil)
		w := &twin{cfg: s.cfg, copies: map[uint64][]*twinBlock{}, model: got.e.model}
		for range s.cfg.Blocks - 1 {
			w.free = append(w.free, &twinBlock{})
		}
		for _, a := range s.actions {
			for w.cur != nil && w.cur.end.Duration() < a.at {
				w.fire()
			}
			w.submit(a.req, a.at)
		}
		for w.cur != nil {
			w.fire()
		}
		for i, r := range got.requests {
			x := w.all[i]
			preempted += x.evicted
			if x.evicted > 1 {
				again++
			}
			want := fmt.Sprintf("%d: cached %d preempted %d admitted %d tokens %d", x.ID, x.cached, x.evicted, x.admitted, x.out)
			if g := fmt.Sprintf("%d: cached %d preempted %d admitted %d tokens %d", r.ID, r.Cached, r.Preemptions, r.Admitted, tokens(r)); g != want {
				t.Fatalf("scene %d (%+v):\n got %s\nwant %s", seed, s.cfg, g, want)
			}
		}
	}
	if preempted < scenes || again < 10 {
		t.Errorf("got %d preemptions, %d requests more than once, want more", preempted, again)
	}
}

// tokens is when each token of a request came out.
func tokens(r *Request) []latency.Ticks {
	at := r.First
	out := []latency.Ticks{at}
	for _, g := range r.runs {
		for i := range g.n {
			at += g.first + g.inc*latency.Ticks(i)
			out = append(out, at)
		}
	}
	return out
}
