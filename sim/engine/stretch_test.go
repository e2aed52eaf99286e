package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kvfleet/sim/latency"
)

// TestStretchEqualsStepwise holds the closed form to its slow twin, which takes
// every step: every time and gap of every request, every event, what an observer
// sees at any moment, and what is left in the cache, to the tick.
func TestStretchEqualsStepwise(t *testing.T) {
	scenes := 900
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
	scenes := 400
	if testing.Short() {
		scenes = 100
	}
	for seed := range uint64(scenes) {
		s := randomScene(1<<32+seed, seed%2 == 0)
		plain := seed%3 == 0 // every step at its list price
		if plain {
			s.noise = 0
			s.actions = slices.DeleteFunc(s.actions, func(a action) bool { return a.x != 0 })
		}
		model, err := latency.New(testParams())
		if err != nil {
			t.Fatal(err)
		}
		var end time.Duration
		w, _ := s.play(t, true, func(x Step) {
			if x.Start < end {
				t.Errorf("scene %d: a step starts at %v, the one before ends at %v", seed, x.Start, end)
			}
			end = x.Start + x.Busy
			if n := x.DecodeReqs + x.PrefillReqs; plain && x.PrefillTokens == x.PrefillReqs {
				base, per := model.Decode(n, 1, 1)
				want := (base + per*latency.Ticks(x.DecodeContext+x.PrefillContext)).Duration()
				if x.Busy != want {
					t.Errorf("scene %d: %d requests over %d tokens take %v, want %v", seed, n, x.DecodeContext, x.Busy, want)
				}
			}
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

func TestSubmitRefuses(t *testing.T) {
	for name, r := range map[string]Request{
		"no answer":           {Prompt: 4, Max: 1},
		"more than max":       {Prompt: 4, Max: 1, Stop: 2},
		"no prompt":           {Max: 1, Stop: 1},
		"too many blocks":     {Prompt: 7, Blocks: []uint64{1, 2}, Max: 1, Stop: 1},
		"longer than a cache": {Prompt: 30, Max: 12, Stop: 1},
	} {
		w := newWorld(t, Config{BlockSize: 4, Blocks: 11, TokenBudget: 8, MaxSeqs: 8}, Options{})
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic, want one", name)
				}
			}()
			w.e.Submit(&r, 0)
		}()
	}
	w := newWorld(t, Config{BlockSize: 4, Blocks: 11, TokenBudget: 8, MaxSeqs: 8}, Options{})
	w.run([]action{{kind: "submit", req: Request{Prompt: 30, Max: 11, Stop: 11}}})
}

func TestConfigFaults(t *testing.T) {
	err := Config{BlockSize: 0, Blocks: 1, MaxSeqs: 0, TokenBudget: 0, IdleTTL: -1}.Validate()
	for _, name := range []string{"block_size", "num_gpu_blocks", "max_num_seqs", "max_num_batched_tokens", "idle_ttl"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+name+":") {
			t.Errorf("got %v, want a line about %s", err, name)
		}
	}
	err = Config{BlockSize: 16, Blocks: 2, MaxSeqs: 8, TokenBudget: 7}.Validate()
	if err == nil {
		t.Error("got no error for a budget under max_num_seqs, want one")
	}
}

// TestGaps checks the summary against the sorted gaps.
func TestGaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	for range 200 {
		r := &Request{Stop: 1 << 30}
		var want []int64
		last := latency.Ticks(1000)
		r.emit(1, last, 0, 0, last)
		for range rng.IntN(6) {
			k := 1 + rng.IntN(5)
			first, gap, inc := latency.Ticks(1+rng.IntN(1<<20)), latency.Ticks(1+rng.IntN(1<<20)), latency.Ticks(rng.IntN(1<<12))
			end := last + first
			want = append(want, int64(first))
			for i := range k - 1 {
				want = append(want, int64(gap+inc*latency.Ticks(i)))
				end += gap + inc*latency.Ticks(i)
			}
			r.emit(k, last+first, gap, inc, end)
			last = end
		}
		got, _ := r.Gaps(nil)
		if got.N != len(want) || got.N != r.Output()-1 {
			t.Fatalf("got %d gaps, want %d", got.N, len(want))
		}
		if len(want) == 0 {
			continue
		}
		slices.Sort(want)
		sum := int64(0)
		for _, v := range want {
			sum += v
		}
		at := func(percent int) time.Duration { // the smallest with that many at or under it
			return time.Duration(want[(len(want)*percent+99)/100-1] >> 10)
		}
		exp := Gaps{N: len(want), Mean: time.Duration(sum / int64(len(want)) >> 10), P50: at(50), P99: at(99), Max: at(100)}
		if got != exp {
			t.Errorf("got %+v of %d, want %+v", got, want, exp)
		}
	}
}
