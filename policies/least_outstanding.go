package policies

import "time"

type leastOutstanding struct{ last ReplicaID }

// NewLeastOutstanding returns the policy that takes the replica with the fewest
// requests in flight; ties rotate.
func NewLeastOutstanding() Policy { return &leastOutstanding{last: NoReplica} }

func (p *leastOutstanding) Name() string { return "least_outstanding" }

func (p *leastOutstanding) Pick(_ time.Duration, q Request, s *Snapshot) (Decision, error) {
	return onLoad(s, &p.last, q.Exclude, ReasonLeastOutstanding)
}
