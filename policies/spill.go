package policies

import "slices"

// A Denominator is what a best match's inflight is compared with.
type Denominator uint8

const (
	// DenominatorMin compares with the least inflight in rotation.
	DenominatorMin Denominator = iota
	// DenominatorMean compares with the mean inflight in rotation.
	DenominatorMean
)

// A SpillRule says when the best match is declined because of pressure. Its zero
// value never declines.
type SpillRule struct {
	// Factor declines a match with more in flight than Factor * max(1,
	// denominator); 0 switches this branch off, else it is >= 1.
	Factor      float64
	Denominator Denominator
	// HitRateLowWater declines a match whose engine reports a prefix-cache hit
	// rate under it, 0..1; 0 switches this branch off. It is tested first. A rate
	// never read is under no mark.
	HitRateLowWater float64
}

func (w SpillRule) underMark(r *Replica) bool {
	return w.HitRateLowWater > 0 && r.HitRateRead && r.HitRate < w.HitRateLowWater
}

func (w SpillRule) overloaded(r *Replica, s *Snapshot) bool {
	if w.Factor == 0 {
		return false
	}
	denominator := float64(s.MinInFlight())
	if w.Denominator == DenominatorMean {
		denominator = s.MeanInFlight()
	}
	return float64(r.InFlight) > w.Factor*max(1, denominator)
}

// A placer is the decision that prefix_affinity and the exact policies share,
// once it is known who holds the longest run. Cold, equal and spilled requests
// rotate ties by cursors of their own.
type placer struct {
	spill                   SpillRule
	cold, equal, spilled    ReplicaID
	allowed, holders, among []uint64
	excluded                []ReplicaID
	weighed                 []Candidate
}

func newPlacer(spill SpillRule) placer {
	return placer{spill: spill, cold: NoReplica, equal: NoReplica, spilled: NoReplica}
}

// sets returns the replicas that may hold the match, which are those in rotation
// and not excluded, and room of the same length for who does.
func (p *placer) sets(s *Snapshot, exclude []ReplicaID) (in, holders []uint64) {
	in = s.Rotation()
	for len(p.holders) < len(in) {
		p.holders = append(p.holders, 0)
	}
	if len(exclude) > 0 {
		p.allowed = append(p.allowed[:0], in...)
		for _, id := range exclude {
			if id >= 0 && int(id)>>6 < len(in) {
				p.allowed[id>>6] &^= 1 << (id & 63)
			}
		}
		in = p.allowed
	}
	return in, p.holders[:len(in)]
}

// place decides for a request whose longest run is run blocks, held by holders.
func (p *placer) place(q Request, s *Snapshot, run int, holders []uint64) (Decision, error) {
	if run == 0 {
		return onLoad(s, &p.cold, q.Exclude, ReasonCold)
	}
	id, ok := s.LeastLoadedIn(p.equal, holders)
	if !ok {
		return onLoad(s, &p.cold, q.Exclude, ReasonCold)
	}
	match := &s.replicas[id]
	to, why := p.decline(q, s, match)
	d := placed(match, ReasonPrefixAffinity)
	if to != nil {
		p.spilled = to.ID
		d = deflected(to, match, why)
		d.DeclinedMatch = run
	} else {
		p.equal = id
		d.Match = run
	}
	p.weighed = appendHolders(p.weighed[:0], s, holders, run)
	d.Candidates = p.weighed
	return d, nil
}

// decline returns where a match goes instead, or nil when it is not declined.
func (p *placer) decline(q Request, s *Snapshot, match *Replica) (*Replica, Reason) {
	if p.spill.underMark(match) {
		if id, ok := p.leastOverMark(q, s); ok {
			return &s.replicas[id], ReasonSpillHitRate
		}
		return nil, ReasonNone
	}
	if p.spill.overloaded(match, s) {
		p.excluded = append(append(p.excluded[:0], q.Exclude...), match.ID)
		if id, ok := s.LeastLoaded(p.spilled, p.excluded); ok {
			return &s.replicas[id], ReasonSpillLoad
		}
	}
	return nil, ReasonNone
}

// leastOverMark returns the least loaded replica that is not under the mark. It
// is the one place that looks at every replica, which the rule asks for.
func (p *placer) leastOverMark(q Request, s *Snapshot) (ReplicaID, bool) {
	p.among = append(p.among[:0], s.Rotation()...)
	for _, id := range s.order {
		if p.spill.underMark(&s.replicas[id]) || slices.Contains(q.Exclude, id) {
			p.among[id>>6] &^= 1 << (id & 63)
		}
	}
	return s.LeastLoadedIn(p.spilled, p.among)
}

// appendHolders lists who holds the longest run; their cost is their inflight.
func appendHolders(dst []Candidate, s *Snapshot, holders []uint64, run int) []Candidate {
	for id := nextCommon(holders, holders, -1); id >= 0 && len(dst) < maxCandidates; {
		r := &s.replicas[id]
		dst = append(dst, Candidate{Replica: r.ID, Match: run, Cost: float64(r.InFlight)})
		after := nextCommon(holders, holders, id)
		if after <= id {
			break
		}
		id = after
	}
	return dst
}

// countTokens fills in what the decision's matches are in engine tokens.
func (d *Decision) countTokens(perBlock float64, q Request) {
	d.MatchTokens = tokens(d.Match, perBlock, q)
	d.DeclinedMatchTokens = tokens(d.DeclinedMatch, perBlock, q)
}

// tokens converts blocks to tokens and keeps the result within the prompt.
func tokens(blocks int, perBlock float64, q Request) int {
	n := int(float64(blocks) * perBlock)
	if q.PromptTokens > 0 {
		n = min(n, q.PromptTokens)
	}
	return n
}
