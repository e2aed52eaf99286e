package policies

import (
	"time"

	"kvfleet/policies/ring"
)

type sessionAffinity struct {
	ring hashRing
	last ReplicaID // of the unidentified
}

// NewSessionAffinity returns the policy that keeps a session on the owner of its
// id on a consistent-hash ring, blind to load. Requests without a session id
// take the replicas in turn.
func NewSessionAffinity(virtualNodes int) Policy {
	return &sessionAffinity{ring: hashRing{virtualNodes: virtualNodes}, last: NoReplica}
}

func (p *sessionAffinity) Name() string { return "session_affinity" }

func (p *sessionAffinity) Pick(_ time.Duration, q Request, s *Snapshot) (Decision, error) {
	if q.Session == "" {
		return inTurn(s, &p.last, q.Exclude, ReasonSessionUnidentified)
	}
	owner := p.ring.first(s, ring.Key(q.Session), q.Exclude)
	if owner == nil {
		return Decision{Replica: NoReplica, Declined: NoReplica}, ErrNoReplica
	}
	return placed(owner, ReasonSessionAffinity), nil
}
