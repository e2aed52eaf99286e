package policies

import (
	"math/rand/v2"
	"slices"
	"time"
)

type powerOfTwo struct {
	rng     *rand.Rand
	skip    []int // places of excluded replicas, ascending
	weighed [2]Candidate
}

// NewPowerOfTwo returns the policy that draws two distinct replicas at random
// and takes the one with fewer requests in flight. The first drawn wins a tie,
// which favours no replica since the draw is uniform.
func NewPowerOfTwo(rng *rand.Rand) Policy { return &powerOfTwo{rng: rng} }

func (p *powerOfTwo) Name() string { return "power_of_two" }

func (p *powerOfTwo) Pick(_ time.Duration, q Request, s *Snapshot) (Decision, error) {
	p.skip = p.skip[:0]
	for _, id := range q.Exclude {
		if at, in := slices.BinarySearch(s.order, id); in && !slices.Contains(p.skip, at) {
			p.skip = append(p.skip, at)
		}
	}
	slices.Sort(p.skip)
	eligible := s.Len() - len(p.skip)
	if eligible == 0 {
		return Decision{Replica: NoReplica, Declined: NoReplica}, ErrNoReplica
	}
	first := p.rng.IntN(eligible)
	one := p.eligible(s, first)
	p.weighed[0] = Candidate{Replica: one.ID, Cost: float64(one.InFlight)}
	if eligible == 1 {
		d := placed(one, ReasonPowerOfTwo)
		d.Candidates = p.weighed[:1]
		return d, nil
	}
	second := p.rng.IntN(eligible - 1)
	if second >= first {
		second++
	}
	two := p.eligible(s, second)
	p.weighed[1] = Candidate{Replica: two.ID, Cost: float64(two.InFlight)}
	best := one
	if two.InFlight < one.InFlight {
		best = two
	}
	d := placed(best, ReasonPowerOfTwo)
	d.Candidates = p.weighed[:]
	return d, nil
}

// eligible returns the i-th replica in rotation, not counting excluded ones.
func (p *powerOfTwo) eligible(s *Snapshot, i int) *Replica {
	for _, at := range p.skip {
		if i >= at {
			i++
		}
	}
	return s.At(i)
}
