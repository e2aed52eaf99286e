package engine

import (
	"fmt"
	"testing"
	"time"

	"kvfleet/sim/latency"
)

// TestStretchEqualsStepwise holds the closed form to its slow twin, which takes
// every step: every time and gap of every request, every event, what an observer
// sees at any moment, and what is left in the cache, to the tick.
func TestStretchEqualsStepwise(t *testing.T) {
	scenes := 1500
	if testing.Short() {
		scenes = 200
	}
	var preempted, burnt, steps int
	for seed := range uint64(scenes) {
		s := randomScene(seed, true)
		fast, got := s.play(t, false, nil)
		_, want := s.play(t, true, nil)
		compare(t, fmt.Sprintf("scene %d (%+v, events %v, noise %v)", seed, s.cfg, s.events, s.noise > 0), got, want)
		if t.Failed() {
			return
		}
		preempted += fast.e.Preemptions()
		steps += int(fast.e.Steps())
		for _, r := range fast.requests {
			if r.Stop < r.Max && s.cfg.Async {
				burnt++
			}
		}
	}
	t.Logf("%d steps, %d preemptions, %d early stops", steps, preempted, burnt)
	if preempted < scenes || burnt < scenes {
		t.Errorf("got %d preemptions and %d early stops in %d scenes, want more of both", preempted, burnt, scenes)
	}
}

func compare(t *testing.T, name string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("%s: line %d:\n got %s\nwant %s", name, i, g, w)
			return
		}
	}
}

// TestLaws audits random runs after every event and holds the whole run to the
// conservation laws.
func TestLaws(t *testing.T) {
	scenes := 600
	if testing.Short() {
		scenes = 100
	}
	for seed := range uint64(scenes) {
		s := randomScene(1<<32+seed, seed%2 == 0)
		var end time.Duration
		tokens := 0
		w, _ := s.play(t, true, func(x Step) {
			if x.Start < end {
				t.Errorf("scene %d: a step starts at %v, the one before ends at %v", seed, x.Start, end)
			}
			end = x.Start + x.Busy
			tokens += x.DecodeReqs
			if n := x.PrefillTokens + x.DecodeReqs; n > s.cfg.TokenBudget || n == 0 {
				t.Errorf("scene %d: a step of %d tokens, want 1 to %d", seed, n, s.cfg.TokenBudget)
			}
			if n := x.PrefillReqs + x.DecodeReqs; n > s.cfg.MaxSeqs {
				t.Errorf("scene %d: a step of %d requests, want at most %d", seed, n, s.cfg.MaxSeqs)
			}
		})
		for _, r := range w.requests {
			law(t, seed, r)
			if w.finished[r.ID] != 1 {
				t.Errorf("scene %d: request %d ended %d times, want once", seed, r.ID, w.finished[r.ID])
			}
		}
		if t.Failed() {
			return
		}
	}
}

func law(t *testing.T, seed uint64, r *Request) {
	t.Helper()
	if r.Cached > r.Prompt-1 || r.Cached < 0 {
		t.Errorf("scene %d: request %d: %d tokens cached of %d, want at most one less", seed, r.ID, r.Cached, r.Prompt)
	}
	gaps := 0
	sum := r.First
	for _, g := range r.runs {
		gaps += g.n
		for i := range g.n {
			v := g.first + g.inc*(latency.Ticks(i))
			if v <= 0 {
				t.Errorf("scene %d: request %d: a gap of %d ticks", seed, r.ID, v)
			}
			sum += v
		}
	}
	if r.Output() > 0 && gaps != r.Output()-1 {
		t.Errorf("scene %d: request %d: %d gaps between %d tokens", seed, r.ID, gaps, r.Output())
	}
	if sum != r.Last {
		t.Errorf("scene %d: request %d: gaps lead from %d to %d, want %d", seed, r.ID, r.First, sum, r.Last)
	}
	if r.Output() > 0 && !(r.Submitted <= r.Admitted && r.Admitted < r.First && r.First <= r.Last) {
		t.Errorf("scene %d: request %d: submitted %d admitted %d first %d last %d, want them in order", seed, r.ID, r.Submitted, r.Admitted, r.First, r.Last)
	}
}
