package main

import (
	"fmt"
	"math"
	"time"

	"kvfleet/traces"
	"kvfleet/traces/seed"
	"kvfleet/traces/workload"
)

// planned is the open-loop schedule that sim's open driver sends: the same
// sessions and turns at the same times, by the same draws. A test holds the two
// together.
func planned(l *loadOptions, m workload.MultiTurn, fleet fleetFile, rate float64, epoch int) (traces.Source, error) {
	arrivals, err := workload.NewArrivals(l.arrivals, rate, l.shape, seed.Seed(l.seed).Stream("arrivals", epoch))
	if err != nil {
		return nil, err
	}
	p := &plan{m: m, epoch: epoch, content: m.Content(epoch, fleet.Tokenizer, fleet.Engine.BlockSize), draws: m.Draws()}
	slots := max(1, int(math.Round(rate*l.think.Seconds())))
	return func(yield func(traces.Row, error) bool) {
		p.start(slots)
		arrivals := arrivals
		for at := arrivals.Next(); at < l.window; at = arrivals.Next() {
			if !yield(p.row(at, int32(fleet.Engine.BlockSize)), nil) {
				return
			}
		}
	}, nil
}

// A plan deals arrivals over conversations, in an order shuffled anew each
// round.
type plan struct {
	m       workload.MultiTurn
	epoch   int
	content *workload.Content
	draws   *workload.Draws
	slots   []conversation
	order   []int
	round   int
	k       int
}

type conversation struct{ visit, turn, session int }

func (p *plan) start(slots int) {
	p.slots, p.order = make([]conversation, slots), make([]int, slots)
	for i := range p.slots {
		p.slots[i].session = p.draws.Session(i, 0)
	}
}

func (p *plan) row(at time.Duration, blockSize int32) traces.Row {
	i := p.k % len(p.slots)
	if i == 0 {
		for j := range p.order {
			p.order[j] = j
		}
		rng := p.m.Seed.Stream("deal", p.epoch, p.round)
		rng.Shuffle(len(p.order), func(a, b int) { p.order[a], p.order[b] = p.order[b], p.order[a] })
		p.round++
	}
	slot := p.order[i]
	s := &p.slots[slot]
	prompt := p.content.Prompt(s.session, s.turn)
	r := traces.NewRow()
	r.RequestID = fmt.Sprint("gen-", p.k)
	r.Session, r.SessionSource, r.Turn, r.VirtualUser = prompt.Session, traces.SessionSupplied, int32(s.turn), int32(slot)
	r.Epoch, r.ScheduledAt = int64(p.epoch), traces.At(at)
	r.PromptBytes, r.PromptTokens, r.MaxTokens = int64(prompt.Bytes), int64(prompt.Tokens), int64(p.m.OutputTokens)
	r.BlockSize, r.Blocks = blockSize, prompt.Blocks
	r.SystemPrompt, r.Branch = prompt.System, prompt.Branch
	p.k++
	if s.turn++; s.turn == p.m.Turns {
		s.turn = 0
		s.visit++
		s.session = p.draws.Session(slot, s.visit)
	}
	return r
}
