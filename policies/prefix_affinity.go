package policies

import (
	"time"

	"kvfleet/policies/belief"
	"kvfleet/policies/block"
)

type prefixAffinity struct {
	placer
	index    *belief.Index
	perBlock float64 // engine tokens in a prefix block
}

// NewPrefixAffinity returns the policy that follows the router's own belief
// about which replica holds the longest leading run of a prompt's prefix blocks,
// the least loaded of equal holders, unless the spill rule declines it. Prompts
// nobody holds, and those without a whole block, go to the least loaded. However
// it was placed, a prompt is believed to be where it was sent from then on.
// Candidates holds the holders of the longest run with their inflight as cost.
//
// It needs the bounds BeliefTTL, BeliefBlocks and BytesPerToken.
func NewPrefixAffinity(spill SpillRule, b Bounds) (Policy, error) {
	if err := b.need(needBelief | needBytesPerToken); err != nil {
		return nil, err
	}
	index, err := belief.New(belief.Config{TTL: b.BeliefTTL, Blocks: b.BeliefBlocks})
	if err != nil {
		return nil, err
	}
	return &prefixAffinity{
		placer: newPlacer(spill), index: index, perBlock: block.Size / b.BytesPerToken,
	}, nil
}

func (p *prefixAffinity) Name() string { return "prefix_affinity" }

func (p *prefixAffinity) Pick(at time.Duration, q Request, s *Snapshot) (Decision, error) {
	in, holders := p.sets(s, q.Exclude)
	prompt := p.index.Find(q.Prefix)
	run := p.index.Longest(at, prompt, in, holders)
	d, err := p.place(q, s, run, holders)
	if err != nil {
		return d, err
	}
	if d.DeclinedMatch > 0 {
		d.Match = p.index.Run(at, prompt, int32(d.Replica))
	}
	d.countTokens(p.perBlock, q)
	p.index.Admit(at, prompt, int32(d.Replica))
	return d, nil
}

// Forget drops what a replica was believed to hold.
func (p *prefixAffinity) Forget(id ReplicaID) { p.index.Forget(int32(id)) }
