package sim

import (
	"time"

	"kvfleet/policies"
	"kvfleet/policies/residency"
	"kvfleet/policies/router"
	"kvfleet/sim/kvcache"
)

// A batch is one step's KV events on their way to the router.
type batch struct {
	replica policies.ReplicaID
	seq     uint64
	events  []residency.Event
	stored  []uint64
	gone    []uint64
}

// publish sends a step's events off, unless the replica's stream is broken.
// Stored goes before removed: within a step a block may be given up and stored
// again, and a subscriber counts copies.
func (c *cluster) publish(n *replica, at time.Duration, log *kvcache.Log) {
	seq := n.seq
	n.seq++
	if n.muted {
		return
	}
	number := c.freeBatch()
	b := c.batches[number]
	b.replica, b.seq = n.id, seq
	b.stored = append(b.stored[:0], log.Stored...)
	b.gone = append(b.gone[:0], log.Removed...)
	b.events = b.events[:0]
	if log.Cleared {
		b.events = append(b.events, residency.Event{Kind: residency.Cleared})
	}
	if len(b.stored) > 0 {
		b.events = append(b.events, residency.Event{Kind: residency.Stored, Hashes: b.stored})
	}
	if len(b.gone) > 0 {
		b.events = append(b.events, residency.Event{Kind: residency.Removed, Hashes: b.gone})
	}
	c.loop.At(at+c.eventDelay, rankHealth, (*deliveries)(c), number)
}

func (c *cluster) freeBatch() int64 {
	if n := len(c.freeBatches); n > 0 {
		number := c.freeBatches[n-1]
		c.freeBatches = c.freeBatches[:n-1]
		return number
	}
	c.batches = append(c.batches, &batch{})
	return int64(len(c.batches) - 1)
}

type deliveries cluster

// Fire is a batch reaching the router.
func (d *deliveries) Fire(at time.Duration, number int64) {
	c := (*cluster)(d)
	b := c.batches[number]
	c.router.Observe(at, router.Observation{Kind: router.Events, Replica: b.replica, Seq: b.seq, Events: b.events})
	c.freeBatches = append(c.freeBatches, number)
}
