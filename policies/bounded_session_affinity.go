package policies

import (
	"math"
	"slices"
	"time"

	"kvfleet/policies/ring"
)

type boundedSessionAffinity struct {
	eps  float64
	ring hashRing
	last ReplicaID // of the unidentified
}

// NewBoundedSessionAffinity returns consistent hashing with bounded loads
// (Mirrokni, Thorup, Zadimoghaddam 2018): a session goes to the first replica,
// clockwise from its id, with fewer than ceil((1+eps)*(total inflight+1)/replicas)
// in flight. Requests without a session id take the replicas under the bound in
// turn. When every replica under the bound is excluded, the first on the ring
// that is not excluded is taken.
func NewBoundedSessionAffinity(eps float64, virtualNodes int) Policy {
	return &boundedSessionAffinity{
		eps: eps, ring: hashRing{virtualNodes: virtualNodes}, last: NoReplica,
	}
}

func (p *boundedSessionAffinity) Name() string { return "bounded_session_affinity" }

func (p *boundedSessionAffinity) Pick(_ time.Duration, q Request, s *Snapshot) (Decision, error) {
	if s.Len() == 0 {
		return Decision{Replica: NoReplica, Declined: NoReplica}, ErrNoReplica
	}
	// A hair less keeps rounding from lifting a whole number to the next.
	bound := int(math.Ceil((1+p.eps)*float64(s.TotalInFlight()+1)/float64(s.Len()) - 1e-9))
	if q.Session == "" {
		return p.unidentified(q, s, bound)
	}
	key := ring.Key(q.Session)
	walk := p.ring.at(s).Walk(key)
	var owner *Replica
	for id, ok := walk.Next(); ok; id, ok = walk.Next() {
		r := &s.replicas[id]
		if slices.Contains(q.Exclude, r.ID) {
			continue
		}
		if owner == nil {
			owner = r
		}
		if r.InFlight >= bound {
			continue
		}
		if r == owner {
			return placed(r, ReasonBoundedSessionAffinity), nil
		}
		return deflected(r, owner, ReasonBoundDeflected), nil
	}
	if owner == nil {
		return Decision{Replica: NoReplica, Declined: NoReplica}, ErrNoReplica
	}
	return placed(owner, ReasonBoundedSessionAffinity), nil
}

func (p *boundedSessionAffinity) unidentified(q Request, s *Snapshot, bound int) (Decision, error) {
	id := p.last
	for range s.Len() {
		next, ok := s.Next(id, q.Exclude)
		if !ok {
			break
		}
		if id = next; s.replicas[id].InFlight < bound {
			p.last = id
			return placed(&s.replicas[id], ReasonSessionUnidentified), nil
		}
	}
	return inTurn(s, &p.last, q.Exclude, ReasonSessionUnidentified)
}
