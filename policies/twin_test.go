package policies_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/policies/router"
)

// A slowAffinity is prefix_affinity as its rule is stated, with maps and full
// scans: who was sent which block when, and who is at hand.
type slowAffinity struct {
	ttl                  time.Duration
	factor, mark         float64
	mean                 bool
	sent                 map[uint64]map[policies.ReplicaID]time.Duration
	cold, equal, spilled policies.ReplicaID
}

func (p *slowAffinity) run(at time.Duration, chain []uint64, id policies.ReplicaID) int {
	for i, h := range chain {
		if last, ok := p.sent[h][id]; !ok || at-last > p.ttl {
			return i
		}
	}
	return len(chain)
}

// lightest takes the least loaded of the replicas, ties in turn after a cursor.
func lightest(rs []policies.Replica, cursor policies.ReplicaID) (policies.Replica, bool) {
	if len(rs) == 0 {
		return policies.Replica{}, false
	}
	slices.SortStableFunc(rs, func(a, b policies.Replica) int {
		turn := func(r policies.Replica) int {
			if r.ID > cursor {
				return 0
			}
			return 1
		}
		if a.InFlight != b.InFlight {
			return a.InFlight - b.InFlight
		}
		return turn(a) - turn(b)
	})
	return rs[0], true
}

func (p *slowAffinity) pick(at time.Duration, q policies.Request, s *policies.Snapshot) (to policies.ReplicaID, why policies.Reason, match int) {
	var free, holders, others, healthy []policies.Replica
	longest, total, least := 0, 0, -1
	under := func(r policies.Replica) bool { return p.mark > 0 && r.HitRateRead && r.HitRate < p.mark }
	for i := range s.Len() {
		r := *s.At(i)
		total += r.InFlight
		if least < 0 || r.InFlight < least {
			least = r.InFlight
		}
		if slices.Contains(q.Exclude, r.ID) {
			continue
		}
		free = append(free, r)
		run := p.run(at, q.Prefix, r.ID)
		if run > longest {
			longest, holders = run, nil
		}
		if run > 0 && run == longest {
			holders = append(holders, r)
		}
		if !under(r) {
			healthy = append(healthy, r)
		}
	}
	if len(free) == 0 {
		return policies.NoReplica, policies.ReasonNone, 0
	}
	admit := func(r policies.Replica, cursor *policies.ReplicaID, why policies.Reason) (policies.ReplicaID, policies.Reason, int) {
		*cursor = r.ID
		match := p.run(at, q.Prefix, r.ID)
		for _, h := range q.Prefix {
			if p.sent[h] == nil {
				p.sent[h] = map[policies.ReplicaID]time.Duration{}
			}
			p.sent[h][r.ID] = at
		}
		return r.ID, why, match
	}
	if longest == 0 {
		r, _ := lightest(free, p.cold)
		return admit(r, &p.cold, policies.ReasonCold)
	}
	best, _ := lightest(holders, p.equal)
	for _, r := range free {
		if r.ID != best.ID {
			others = append(others, r)
		}
	}
	pressure := float64(least)
	if p.mean {
		pressure = float64(total) / float64(s.Len())
	}
	if under(best) {
		if r, ok := lightest(healthy, p.spilled); ok {
			return admit(r, &p.spilled, policies.ReasonSpillHitRate)
		}
	} else if p.factor > 0 && float64(best.InFlight) > p.factor*max(1, pressure) {
		if r, ok := lightest(others, p.spilled); ok {
			return admit(r, &p.spilled, policies.ReasonSpillLoad)
		}
	}
	return admit(best, &p.equal, policies.ReasonPrefixAffinity)
}

func TestPrefixAffinityEqualsTwin(t *testing.T) {
	type setup struct {
		choice string
		twin   slowAffinity
	}
	setups := []setup{
		{"prefix_affinity", slowAffinity{factor: 2}},
		{"prefix_affinity:spill_factor=0", slowAffinity{}},
		{"prefix_affinity:spill_factor=1.5,spill_denominator=mean", slowAffinity{factor: 1.5, mean: true}},
		{"prefix_affinity:hit_rate_low_water=0.5", slowAffinity{factor: 2, mark: 0.5}},
	}
	for _, replicas := range []int{1, 5, 90} {
		for _, su := range setups {
			twin := su.twin
			twin.ttl = 57 * time.Second
			twin.sent = map[uint64]map[policies.ReplicaID]time.Duration{}
			twin.cold, twin.equal, twin.spilled = policies.NoReplica, policies.NoReplica, policies.NoReplica
			againstTwin(t, su.choice, replicas, &twin)
		}
	}
}

func againstTwin(t *testing.T, choice string, replicas int, twin *slowAffinity) {
	bounds := policies.Bounds{BeliefTTL: twin.ttl, BeliefBlocks: 1 << 20, BytesPerToken: 4}
	r := newRouter(t, choice, replicas, bounds)
	rng := rand.New(rand.NewPCG(10, uint64(replicas)))
	prompts := newConversations(12, 60)
	var open []policies.Decision
	at := time.Duration(0)
	seen := map[policies.Reason]int{}
	for step := range 3000 {
		at += time.Duration(rng.IntN(3000)) * time.Millisecond
		id := policies.ReplicaID(rng.IntN(replicas))
		switch rng.IntN(12) {
		case 0:
			r.Observe(at, router.Observation{Kind: router.OutOfRotation, Replica: id})
		case 1, 2:
			r.Observe(at, router.Observation{Kind: router.InRotation, Replica: id})
		case 3:
			r.Observe(at, router.Observation{Kind: router.Report, Replica: id, HitRate: rng.Float64()})
		}
		_, chain := prompts.turn()
		q := policies.Request{Prefix: chain[:rng.IntN(len(chain)+1)]}
		if rng.IntN(10) == 0 {
			q.Exclude = []policies.ReplicaID{id}
		}
		to, why, match := twin.pick(at, q, r.Snapshot())
		d, err := r.Route(at, q)
		if (err != nil) != (to == policies.NoReplica) {
			t.Fatalf("%s x%d, step %d: error %v, want replica %d", choice, replicas, step, err, to)
		}
		if err != nil {
			continue
		}
		if d.Replica != to || d.Reason != why || d.Match != match {
			t.Fatalf("%s x%d, step %d: %d %v match %d, want %d %v match %d",
				choice, replicas, step, d.Replica, d.Reason, d.Match, to, why, match)
		}
		seen[d.Reason]++
		open = append(open, d)
		for len(open) > 0 && rng.IntN(3*replicas) < len(open) {
			i := rng.IntN(len(open))
			r.Done(at, open[i].Replica, open[i].Pending)
			open = slices.Delete(open, i, i+1)
		}
	}
	if seen[policies.ReasonCold] == 0 || seen[policies.ReasonPrefixAffinity] == 0 ||
		replicas > 1 && twin.factor > 0 && seen[policies.ReasonSpillLoad] == 0 ||
		replicas > 1 && twin.mark > 0 && seen[policies.ReasonSpillHitRate] == 0 {
		t.Errorf("%s x%d: reasons seen %v: the test did not reach the rule", choice, replicas, seen)
	}
}
