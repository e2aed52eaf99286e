package engine

import (
	"testing"
	"time"

	"kvfleet/sim/latency"
)

// rank is a rank's owner: when first tokens and answers came out, by request.
type rank struct {
	Owner
	first, last map[int64]time.Duration
}

func (o *rank) FirstToken(r *Request, at time.Duration) { o.first[r.ID] = at }
func (o *rank) Finished(r *Request, at time.Duration)   { o.last[r.ID] = at }

func ranks(t *testing.T, n int, async bool) (*Ranks, []*Engine, *rank) {
	t.Helper()
	m, err := latency.New(testParams())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{BlockSize: 16, Blocks: 500, TokenBudget: 512, MaxSeqs: 8, Async: async}
	o := &rank{first: map[int64]time.Duration{}, last: map[int64]time.Duration{}}
	var all []*Engine
	for range n {
		all = append(all, New(cfg, m, o, Options{}))
	}
	return NewRanks(all...), all, o
}

func request(id int64, prompt, out int) *Request {
	return &Request{ID: id, Prompt: prompt, Stop: out, Max: out}
}

// What one rank prefills, the answers of the other wait for; what arrives at an
// idle rank waits for the next common step.
func TestRanksStepTogether(t *testing.T) {
	for _, async := range []bool{false, true} {
		g, e, o := ranks(t, 2, async)
		e[0].Submit(request(1, 16, 40), 0)
		for range 5 {
			g.Fire()
		}
		quiet := stepOf(t, g)
		before, _ := g.Due()
		e[1].Submit(request(2, 500, 2), before-time.Millisecond)
		if e[1].Running() != 0 {
			t.Errorf("async %v: an idle rank began to step while the other one did", async)
		}
		slow := 0
		for at, ok := g.Due(); ok; {
			g.Fire()
			var next time.Duration
			if next, ok = g.Due(); ok && next-at > 5*quiet {
				slow++
			}
			at = next
			for k := range e {
				if err := e[k].Audit(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if slow != 1 {
			t.Errorf("async %v: %d steps lasted as long as a prompt of 500 tokens, want the one that has it", async, slow)
		}
		if o.first[2] < before+50*time.Millisecond || o.last[1] < o.first[2] {
			t.Errorf("async %v: the prompt's first token came at %v, the other rank's answer ended at %v", async, o.first[2], o.last[1])
		}
		if e[0].TokenRate() != 0 || e[0].Running()+e[1].Running() != 0 {
			t.Errorf("async %v: something runs after the end", async)
		}
	}
}

// stepOf is how long the step after this one lasts.
func stepOf(t *testing.T, g *Ranks) time.Duration {
	t.Helper()
	from, ok := g.Due()
	if !ok {
		t.Fatal("idle")
	}
	g.Fire()
	to, _ := g.Due()
	return to - from
}

// A rank of its own steps as an engine does.
func TestOneRankIsAnEngine(t *testing.T) {
	for _, async := range []bool{false, true} {
		g, e, o := ranks(t, 1, async)
		_, other, alone := ranks(t, 1, async)
		other[0].ranks = nil
		for id := range int64(12) {
			at := time.Duration(id) * 23 * time.Millisecond
			for due, ok := g.Due(); ok && due < at; due, ok = g.Due() {
				g.Fire()
			}
			for due, ok := other[0].Due(); ok && due < at; due, ok = other[0].Due() {
				other[0].Fire()
			}
			e[0].Submit(request(id, 100+int(id)*37, 5+int(id)), at)
			other[0].Submit(request(id, 100+int(id)*37, 5+int(id)), at)
		}
		for _, ok := g.Due(); ok; _, ok = g.Due() {
			g.Fire()
		}
		for _, ok := other[0].Due(); ok; _, ok = other[0].Due() {
			other[0].Fire()
		}
		for id := range int64(12) {
			if o.first[id] != alone.first[id] || o.last[id] != alone.last[id] || o.last[id] == 0 {
				t.Errorf("async %v: request %d: %v to %v as a rank, %v to %v alone", async, id, o.first[id], o.last[id], alone.first[id], alone.last[id])
			}
		}
	}
}
