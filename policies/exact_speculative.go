package policies

import (
	"math"
	"time"

	"kvfleet/policies/belief"
	"kvfleet/policies/block"
	"kvfleet/policies/residency"
)

type exactSpeculative struct {
	placer
	index     residency.Index
	sent      *belief.Index
	believed  []uint64
	blockSize int
}

// NewExactSpeculative returns exact_residency with a layer on top of the facts:
// for the time speculate, a replica is also taken to hold what this router just
// sent it. A replica's run is the longer of the reported and the believed one.
// The reason is SPECULATIVE when the chosen replica's run rests on the belief.
//
// It needs the bounds BlockSize, BytesPerToken and BeliefBlocks; the last, which
// measures the fleet's whole cache in prefix blocks, bounds the layer too.
func NewExactSpeculative(spill SpillRule, speculate time.Duration, b Bounds) (Policy, error) {
	if err := b.need(needBlockSize | needBytesPerToken | needBeliefBlocks); err != nil {
		return nil, err
	}
	fleetTokens := float64(b.BeliefBlocks) * block.Size / b.BytesPerToken
	blocks := math.Min(math.Ceil(fleetTokens/float64(b.BlockSize)), 1<<30)
	sent, err := belief.New(belief.Config{TTL: speculate, Blocks: int(blocks)})
	if err != nil {
		return nil, err
	}
	return &exactSpeculative{placer: newPlacer(spill), sent: sent, blockSize: b.BlockSize}, nil
}

func (p *exactSpeculative) Name() string { return "exact_speculative" }

func (p *exactSpeculative) Pick(at time.Duration, q Request, s *Snapshot) (Decision, error) {
	if q.Blocks == nil {
		return onLoad(s, &p.cold, q.Exclude, ReasonPromptUntokenized)
	}
	in, holders := p.sets(s, q.Exclude)
	prompt := p.sent.Find(q.Blocks)
	run := p.longest(at, q, prompt, in, holders)
	d, err := p.place(q, s, run, holders)
	if err != nil {
		return d, err
	}
	switch {
	case d.DeclinedMatch > 0:
		reported := p.index.Run(int32(d.Replica), q.Blocks)
		d.Match = max(reported, p.sent.Run(at, prompt, int32(d.Replica)))
	case d.Match > 0 && p.index.Run(int32(d.Replica), q.Blocks) < d.Match:
		d.Reason = ReasonSpeculative
	}
	d.countTokens(float64(p.blockSize), q)
	p.sent.Admit(at, prompt, int32(d.Replica))
	return d, nil
}

// longest is the longest run, reported or believed, and who has it either way.
func (p *exactSpeculative) longest(at time.Duration, q Request, prompt belief.Place, in, holders []uint64) int {
	for len(p.believed) < len(in) {
		p.believed = append(p.believed, 0)
	}
	believers := p.believed[:len(in)]
	reported := p.index.Longest(q.Blocks, in, holders)
	believed := p.sent.Longest(at, prompt, in, believers)
	switch {
	case believed > reported:
		copy(holders, believers)
	case believed == reported:
		for w := range holders {
			holders[w] |= believers[w]
		}
	}
	return max(believed, reported)
}

// Events applies one replica's KV cache events.
func (p *exactSpeculative) Events(_ time.Duration, id ReplicaID, events []residency.Event) {
	p.index.Apply(int32(id), events)
}

// Gap forgets a replica's residency, some events of which were lost. What was
// sent to it was sent all the same.
func (p *exactSpeculative) Gap(id ReplicaID) { p.index.Forget(int32(id)) }

// Forget drops a replica's residency and what was sent to it.
func (p *exactSpeculative) Forget(id ReplicaID) {
	p.index.Forget(int32(id))
	p.sent.Forget(int32(id))
}
