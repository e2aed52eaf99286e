package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// recorded lets about half of a scene's requests say how much of their prompt a
// recording found cached.
func (s *scene) recorded(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x4ec))
	for i := range s.actions {
		a := &s.actions[i]
		if a.kind == "submit" && rng.IntN(2) == 0 {
			a.req.Recorded = 1 + rng.IntN(a.req.Prompt+1)
			a.req.Blocks = a.req.Blocks[:rng.IntN(len(a.req.Blocks)+1)]
		}
	}
}

// A request that says what was cached has that cached, whatever the pool holds,
// but for the last token, which is always computed. The books add up as ever (the
// harness audits them), and a stretch is still what its steps would have been.
func TestRecordedRequests(t *testing.T) {
	partial, overfull := 0, 0
	for seed := range uint64(150) {
		s := randomScene(seed, false)
		s.recorded(seed)
		w, got := s.play(t, false, nil)
		for _, r := range w.requests {
			if r.Recorded == 0 {
				continue
			}
			if want := min(r.Recorded-1, r.Prompt-1); r.Cached != want {
				t.Fatalf("scene %d: request %d of %d tokens: %d cached, recorded %d", seed, r.ID, r.Prompt, r.Cached, r.Recorded-1)
			}
			if r.Cached%s.cfg.BlockSize > 0 {
				partial++
			}
			if r.Recorded > r.Prompt {
				overfull++
			}
		}
		_, want := s.play(t, true, nil)
		compare(t, fmt.Sprintf("scene %d (%+v)", seed, s.cfg), got, want)
		if t.Failed() {
			return
		}
	}
	if partial < 100 || overfull < 20 {
		t.Errorf("%d requests cached part of a block, %d all of their prompt: too few to show anything", partial, overfull)
	}
}

// What a recording found cached is in no block of the pool. Of two requests for
// which there is not room the second is preempted, and when the first is gone it
// computes its prompt as well: nobody finds it anywhere.
func TestRecordedIsLostWhenPreempted(t *testing.T) {
	for _, blocks := range [][][]uint64{{nil, nil}, {{1, 2, 3, 4}, {5, 6, 7, 8}}} {
		prefilled, most := 0, 0
		w := newWorld(t, Config{BlockSize: 4, Blocks: 12, MaxSeqs: 4, TokenBudget: 64}, Options{Steps: func(s Step) {
			prefilled += s.PrefillTokens
			most = max(most, s.PrefillTokens)
		}})
		var actions []action
		for i, stop := range []int{10, 20} {
			actions = append(actions, action{kind: "submit", req: Request{ID: int64(i), Prompt: 16, Blocks: blocks[i], Recorded: 16, Stop: stop, Max: 20}})
		}
		w.run(actions)
		r := w.requests[1]
		if w.e.Preemptions() != 1 || r.Preemptions != 1 || r.Cached != 15 {
			t.Fatalf("%d preemptions, %d of them of the second request, which found %d of 16 tokens; want 1, 1, 15", w.e.Preemptions(), r.Preemptions, r.Cached)
		}
		if most < 16 || prefilled < 2+16 {
			t.Errorf("prompts of %d known blocks: %d tokens prefilled, %d of them at once, want the prompt of 16 again after one token each", len(blocks[1]), prefilled, most)
		}
	}
}

// What the pool found, recorded and run again on prompts that nobody knows, takes
// the very same times, if there is room: the pool itself costs no time.
func TestRecordedIsWhatThePoolWouldSay(t *testing.T) {
	cached := 0
	for seed := range uint64(60) {
		s := randomScene(seed, false)
		s.cfg.Blocks, s.cfg.IdleTTL = 1, 0
		for _, a := range s.actions {
			s.cfg.Blocks += (a.req.Prompt+a.req.Max)/s.cfg.BlockSize + 1
		}
		first, _ := s.play(t, false, nil)
		byID := map[int64]*Request{}
		for _, r := range first.requests {
			byID[r.ID] = r
			cached += r.Cached
		}
		for i := range s.actions {
			if a := &s.actions[i]; a.kind == "submit" {
				a.req.Recorded, a.req.Blocks = byID[a.req.ID].Cached+1, nil
			}
		}
		again, _ := s.play(t, false, nil)
		for i, r := range again.requests {
			if got, want := outcome(r), outcome(first.requests[i]); got != want {
				t.Fatalf("scene %d: got\n%s, want\n%s", seed, got, want)
			}
		}
		if a, b := fmt.Sprint(again.e.HitRate()), fmt.Sprint(first.e.HitRate()); a != b {
			t.Fatalf("scene %d: hits and queries %s, want %s", seed, a, b)
		}
	}
	if cached == 0 {
		t.Error("nothing was cached: there is nothing to show")
	}
}
