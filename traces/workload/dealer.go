package workload

import (
	"math"
	"math/rand/v2"
	"time"
)

// A Dealer deals the arrivals of an open loop over a pool of concurrent
// conversations: one to each in a round, in an order shuffled anew for every
// round. So each conversation's turns come in order, and all conversations are
// at the same turn.
type Dealer struct {
	draws *Draws
	epoch int
	slots []Conversation
	order []int
	round int
	next  int // within the round
	pcg   rand.PCG
}

// Slots is the pool size at which a conversation's turns are think apart when
// rate requests arrive a second: rate times think, rounded, at least 1.
func Slots(rate float64, think time.Duration) int {
	return max(1, int(math.Round(rate*think.Seconds())))
}

// Dealer deals over a pool of slots conversations, at least 1. The order depends
// on (seed, epoch, round) alone.
func (d *Draws) Dealer(epoch, slots int) *Dealer {
	deal := &Dealer{draws: d, epoch: epoch, slots: make([]Conversation, slots), order: make([]int, slots)}
	for i := range deal.slots {
		deal.slots[i] = d.Conversation(i)
	}
	return deal
}

// Next is the turn that the next arrival sends.
func (d *Dealer) Next() Conversation {
	if d.next == 0 {
		for i := range d.order {
			d.order[i] = i
		}
		d.draws.m.Seed.Reset(&d.pcg, "deal", d.epoch, d.round)
		rand.New(&d.pcg).Shuffle(len(d.order), func(a, b int) { d.order[a], d.order[b] = d.order[b], d.order[a] })
		d.round++
	}
	slot := &d.slots[d.order[d.next]]
	d.next = (d.next + 1) % len(d.slots)
	turn := *slot
	d.draws.Advance(slot)
	return turn
}
