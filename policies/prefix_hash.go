package policies

import (
	"slices"
	"time"

	"kvfleet/policies/ring"
)

type prefixHash struct {
	window  int
	weight  float64
	ring    hashRing
	last    ReplicaID // of the unhashed
	weighed []Candidate
}

// NewPrefixHash returns the policy that hashes a prompt's first window prefix
// blocks onto a ring and takes the replica with the least inflight +
// weight * rank, where rank 0 is the owner and 1 the next replica clockwise. Of
// equal costs the first on the ring wins, which is another replica for another
// prompt. A prompt shorter than the window is placed on load. Candidates holds
// the replicas walked, in ring order.
func NewPrefixHash(window int, weight float64, virtualNodes int) Policy {
	return &prefixHash{
		window: window, weight: weight,
		ring: hashRing{virtualNodes: virtualNodes}, last: NoReplica,
	}
}

func (p *prefixHash) Name() string { return "prefix_hash" }

func (p *prefixHash) Pick(_ time.Duration, q Request, s *Snapshot) (Decision, error) {
	if len(q.Prefix) < p.window {
		return onLoad(s, &p.last, q.Exclude, ReasonPromptUnhashed)
	}
	least := float64(s.MinInFlight())
	walk := p.ring.at(s).Walk(ring.Mix(q.Prefix[p.window-1]))
	p.weighed = p.weighed[:0]
	var owner, best *Replica
	lowest, rank := 0.0, 0
	for id, ok := walk.Next(); ok; id, ok = walk.Next() {
		r := &s.replicas[id]
		if slices.Contains(q.Exclude, r.ID) {
			continue
		}
		away := p.weight * float64(rank)
		if best != nil && least+away >= lowest {
			break // nobody further on can be cheaper
		}
		cost := float64(r.InFlight) + away
		if len(p.weighed) < maxCandidates {
			p.weighed = append(p.weighed, Candidate{Replica: r.ID, Cost: cost})
		}
		if owner == nil {
			owner = r
		}
		if best == nil || cost < lowest {
			best, lowest = r, cost
		}
		rank++
	}
	if best == nil {
		return Decision{Replica: NoReplica, Declined: NoReplica}, ErrNoReplica
	}
	d := placed(best, ReasonPrefixHash)
	if best != owner {
		d = deflected(best, owner, ReasonHashDeflected)
	}
	d.Candidates = p.weighed
	return d, nil
}
