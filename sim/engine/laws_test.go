package engine

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestShift: adding a constant to all times changes nothing else.
func TestShift(t *testing.T) {
	for seed := range uint64(60) {
		s := randomScene(1<<50+seed, false)
		a, _ := s.play(t, false, nil)
		later := s
		later.actions = slices.Clone(s.actions)
		for i := range later.actions {
			later.actions[i].at += 17*time.Second + 3
		}
		b, _ := later.play(t, false, nil)
		for i, r := range a.requests {
			if got, want := relative(b.requests[i]), relative(r); got != want {
				t.Fatalf("scene %d, 17s later:\n got %s\nwant %s", seed, got, want)
			}
		}
	}
}

// relative is a request's outcome in time since it was submitted.
func relative(r *Request) string {
	c := *r
	c.Submitted, c.Admitted, c.First, c.Last = 0, r.Admitted-r.Submitted, r.First-r.Submitted, r.Last-r.Submitted
	return outcome(&c)
}

// TestReset: a request that is used again behaves like a new one.
func TestReset(t *testing.T) {
	cfg := Config{BlockSize: 4, Blocks: 9, TokenBudget: 8, MaxSeqs: 4}
	var want string
	r := &Request{}
	for i := range 3 {
		w := newWorld(t, cfg, Options{})
		r.Reset()
		r.Prompt, r.Stop, r.Max = 14, 9, 9
		other := &Request{ID: 1, Prompt: 4, Stop: 12, Max: 12}
		w.requests = append(w.requests, other, r)
		w.e.Submit(other, 0)
		w.e.Submit(r, 0)
		w.run(nil)
		if r.Preemptions == 0 {
			t.Fatal("the request was not preempted, want it to be")
		}
		if got := outcome(r); i > 0 && got != want {
			t.Errorf("used %d times:\n got %s\nwant %s", i+1, got, want)
		} else {
			want = got
		}
	}
}

// TestAuditSees spoils a running engine, one law at a time.
func TestAuditSees(t *testing.T) {
	for name, spoil := range map[string]func(e *Engine){
		"more cached than can be":     func(e *Engine) { e.running[0].Cached = e.running[0].Prompt },
		"a block too few":             func(e *Engine) { e.running[0].held = e.running[0].held[1:] },
		"a token out of nowhere":      func(e *Engine) { e.running[0].out += 2 },
		"a token computed twice":      func(e *Engine) { e.running[0].computed++ },
		"a reference nobody holds":    func(e *Engine) { e.Pool().Allocate(nil, 1, 0) },
		"a waiting request with room": func(e *Engine) { e.waiting[e.head].computed = 1 },
		"a preemption uncounted":      func(e *Engine) { e.displaced++ },
	} {
		w := newWorld(t, Config{BlockSize: 4, Blocks: 30, TokenBudget: 8, MaxSeqs: 1}, Options{})
		for id := range 2 {
			w.e.Submit(&Request{ID: int64(id), Prompt: 5, Stop: 9, Max: 9}, 0)
		}
		w.e.Fire()
		if err := w.e.Audit(); err != nil {
			t.Fatal(err)
		}
		spoil(w.e)
		if w.e.Audit() == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}

// TestTokenRate: what comes out of the step under way, by the second.
func TestTokenRate(t *testing.T) {
	w := newWorld(t, Config{BlockSize: 4, Blocks: 99, TokenBudget: 64, MaxSeqs: 8}, Options{})
	if got := w.e.TokenRate(); got != 0 {
		t.Errorf("got %v tokens a second of an idle engine, want 0", got)
	}
	for id := range 2 {
		w.e.Submit(&Request{ID: int64(id), Prompt: 5, Stop: 9, Max: 9}, 0)
	}
	w.e.Fire()
	w.e.Fire()
	// The first decodes its third token, the second, a step later, its second.
	host, gpu := 1.5+2*0.1, 5.9+(7+6)*2.5e-4
	if got, want := w.e.TokenRate(), 2/(host+gpu)*1000; math.Abs(got/want-1) > 1e-6 {
		t.Errorf("got %v tokens a second, want %v", got, want)
	}
}
