package policies

import (
	"time"

	"kvfleet/policies/residency"
)

type exactResidency struct {
	placer
	index     residency.Index
	blockSize int
}

// NewExactResidency returns the policy that decides as prefix_affinity does, but
// on what engines report through KV cache events, in engine blocks. A prompt that
// was not tokenized in time is placed on load.
//
// It needs the bound BlockSize.
func NewExactResidency(spill SpillRule, b Bounds) (Policy, error) {
	if err := b.need(needBlockSize); err != nil {
		return nil, err
	}
	return &exactResidency{placer: newPlacer(spill), blockSize: b.BlockSize}, nil
}

func (p *exactResidency) Name() string { return "exact_residency" }

func (p *exactResidency) Pick(_ time.Duration, q Request, s *Snapshot) (Decision, error) {
	if q.Blocks == nil {
		return onLoad(s, &p.cold, q.Exclude, ReasonPromptUntokenized)
	}
	in, holders := p.sets(s, q.Exclude)
	run := p.index.Longest(q.Blocks, in, holders)
	d, err := p.place(q, s, run, holders)
	if err != nil {
		return d, err
	}
	if d.DeclinedMatch > 0 {
		d.Match = p.index.Run(int32(d.Replica), q.Blocks)
	}
	d.countTokens(float64(p.blockSize), q)
	return d, nil
}

// Events applies one replica's KV cache events.
func (p *exactResidency) Events(_ time.Duration, id ReplicaID, events []residency.Event) {
	p.index.Apply(int32(id), events)
}

// Gap forgets a replica's residency, some events of which were lost.
func (p *exactResidency) Gap(id ReplicaID) { p.index.Forget(int32(id)) }

// Forget drops a replica's residency.
func (p *exactResidency) Forget(id ReplicaID) { p.index.Forget(int32(id)) }
