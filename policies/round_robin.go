package policies

import "time"

type roundRobin struct{ last ReplicaID }

// NewRoundRobin returns the policy that takes the replicas in turn, whatever
// their load.
func NewRoundRobin() Policy { return &roundRobin{last: NoReplica} }

func (p *roundRobin) Name() string { return "round_robin" }

func (p *roundRobin) Pick(_ time.Duration, q Request, s *Snapshot) (Decision, error) {
	return inTurn(s, &p.last, q.Exclude, ReasonRoundRobin)
}
