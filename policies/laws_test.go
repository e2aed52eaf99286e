package policies_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/policies/ring"
	"kvfleet/policies/router"
)

// drive routes the same made-up traffic through a choice and returns the log of
// its decisions. Requests end in random order; start shifts all times.
func drive(t *testing.T, choice string, replicas int, start time.Duration, distinct bool) []policies.Decision {
	t.Helper()
	bounds := published(replicas)
	r := newRouter(t, choice, replicas, bounds)
	rng := rand.New(rand.NewPCG(11, 11))
	prompts := newConversations(40, 100)
	fresh := uint64(1 << 60)
	var log, open []policies.Decision
	at := start
	for range 4000 {
		at += time.Duration(rng.IntN(300)) * time.Millisecond
		session, chain := prompts.turn()
		if distinct {
			chain = slices.Clone(chain)
			for i := range chain {
				fresh++
				chain[i] = ring.Mix(fresh)
			}
		}
		d, err := r.Route(at, policies.Request{
			Session: fmt.Sprint("session-", session), PromptTokens: 16 * len(chain), Prefix: chain, Blocks: chain,
		})
		if err != nil {
			t.Fatal(err)
		}
		d.Candidates = slices.Clone(d.Candidates)
		log = append(log, d)
		open = append(open, d)
		for len(open) > 4*replicas {
			i := rng.IntN(len(open))
			r.Done(at, open[i].Replica, open[i].Pending)
			open = slices.Delete(open, i, i+1)
		}
	}
	return log
}

func places(log []policies.Decision) []policies.ReplicaID {
	var ids []policies.ReplicaID
	for _, d := range log {
		ids = append(ids, d.Replica)
	}
	return ids
}

func names() []string {
	var all []string
	for _, s := range policies.Catalog() {
		all = append(all, s.Name)
	}
	return all
}

func TestEqualInputsGiveEqualDecisions(t *testing.T) {
	for _, name := range names() {
		a, b := drive(t, name, 5, 0, false), drive(t, name, 5, 0, false)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%s decides differently the second time", name)
		}
	}
}

func TestAddingAConstantToAllTimesChangesNothing(t *testing.T) {
	for _, name := range names() {
		a, b := drive(t, name, 5, 0, false), drive(t, name, 5, 1234567*time.Millisecond, false)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%s decides differently at another time of day", name)
		}
	}
}

// Prompts that share nothing leave a prefix policy nothing but its load rule.
func TestPrefixPolicyOnDistinctPromptsIsItsLoadRule(t *testing.T) {
	want := places(drive(t, "least_outstanding", 5, 0, true))
	for _, name := range []string{"prefix_affinity", "exact_residency", "exact_speculative", "prefix_hash:window=1000"} {
		if got := places(drive(t, name, 5, 0, true)); !slices.Equal(got, want) {
			t.Errorf("%s differs from least_outstanding on distinct prompts", name)
		}
	}
}

// Replicas that differ in nothing but their number get the same share.
func TestSymmetricReplicasGetSymmetricLoad(t *testing.T) {
	for _, name := range names() {
		if name == "session_affinity" {
			continue // 40 sessions fall on 5 replicas as their hashes say
		}
		counts := make([]int, 5)
		for _, d := range drive(t, name, 5, 0, true) {
			counts[d.Replica]++
		}
		for id, n := range counts {
			if n < 640 || n > 960 {
				t.Errorf("%s: replica %d got %d of 4000 requests, want 800 within 20%%: %v", name, id, n, counts)
			}
		}
	}
}

// An idle fleet has nothing but ties.
func TestTiesNeverPileUp(t *testing.T) {
	for _, name := range []string{"round_robin", "least_outstanding", "prefix_affinity", "exact_residency", "exact_speculative", "prefix_hash", "session_affinity", "bounded_session_affinity"} {
		r := newRouter(t, name, 4, published(4))
		counts := make([]int, 4)
		for range 40 {
			d, err := r.Route(0, policies.Request{}) // unidentified, unhashed, untokenized, cold
			if err != nil {
				t.Fatal(err)
			}
			r.Done(0, d.Replica, d.Pending)
			counts[d.Replica]++
		}
		if !slices.Equal(counts, []int{10, 10, 10, 10}) {
			t.Errorf("%s spreads 40 requests over an idle fleet as %v", name, counts)
		}
	}
}

func TestBoundedLoadHoldsItsBound(t *testing.T) {
	const eps = 0.25
	r := newRouter(t, "bounded_session_affinity", 7, published(7))
	rng := rand.New(rand.NewPCG(12, 12))
	for i := range 5000 {
		d, err := r.Route(0, policies.Request{Session: fmt.Sprint(rng.IntN(3))})
		if err != nil {
			t.Fatal(err)
		}
		if got, bound := float64(d.InFlight), (1+eps)*float64(i+1)/7; got >= bound+1 {
			t.Fatalf("request %d joined %v others, bound %v", i, got, bound)
		}
	}
}

// The walk of prefix_hash stops early; a look at every rank finds the same.
func TestPrefixHashStopsWithoutMissingAnything(t *testing.T) {
	for _, weight := range []float64{0, 0.5, 4} {
		p := policies.NewPrefixHash(1, weight, 128)
		var v policies.View
		var members []ring.Member
		rng := rand.New(rand.NewPCG(13, 13))
		for i := range 60 {
			name := fmt.Sprint("r", i)
			v.Add(policies.ReplicaID(i), name)
			members = append(members, ring.Member{ID: int32(i), Name: name})
		}
		circle := ring.New(members, 128)
		for range 2000 {
			v.SetInFlight(policies.ReplicaID(rng.IntN(60)), rng.IntN(12))
			key := rng.Uint64()
			d, err := p.Pick(0, policies.Request{Prefix: []uint64{key}}, v.Snapshot())
			if err != nil {
				t.Fatal(err)
			}
			want, lowest, rank := int32(-1), 0.0, 0
			walk := circle.Walk(ring.Mix(key))
			for id, ok := walk.Next(); ok; id, ok = walk.Next() {
				cost := float64(v.InFlight(policies.ReplicaID(id))) + weight*float64(rank)
				if want < 0 || cost < lowest {
					want, lowest = id, cost
				}
				rank++
			}
			if int32(d.Replica) != want {
				t.Fatalf("weight %v: chose %d, want %d", weight, d.Replica, want)
			}
		}
	}
}

func TestPowerOfTwoTakesTheLighterOfTwoDistinct(t *testing.T) {
	r := newRouter(t, "power_of_two", 6, published(6))
	pairs := map[[2]policies.ReplicaID]bool{}
	for range 2000 {
		d, err := r.Route(0, policies.Request{Exclude: []policies.ReplicaID{4, 1, 4}})
		if err != nil {
			t.Fatal(err)
		}
		a, b := d.Candidates[0], d.Candidates[1]
		if a.Replica == b.Replica || float64(d.InFlight) != min(a.Cost, b.Cost) {
			t.Fatalf("chose %d with %d in flight of %v", d.Replica, d.InFlight, d.Candidates)
		}
		pairs[[2]policies.ReplicaID{a.Replica, b.Replica}] = true
	}
	if len(pairs) != 12 {
		t.Errorf("%d ordered pairs of four replicas drawn, want 12: %v", len(pairs), pairs)
	}
}

func TestDecisionsAllocateNothing(t *testing.T) {
	for _, name := range names() {
		r := newRouter(t, name, 5, published(5))
		prompts := newConversations(20, 100)
		at := time.Duration(0)
		step := func() {
			at += 50 * time.Millisecond
			_, chain := prompts.turn()
			d, err := r.Route(at, policies.Request{Session: "s", Prefix: chain, Blocks: chain})
			if err != nil {
				t.Fatal(err)
			}
			r.Done(at, d.Replica, d.Pending)
		}
		for range 2000 {
			step()
		}
		if got := testing.AllocsPerRun(1000, step); got != 0 {
			t.Errorf("%s: %v allocations a decision, want 0", name, got)
		}
	}
}

// The fleet's bound on a reroute: exclusions are kept by every policy.
func TestExcludedReplicasAreNeverChosen(t *testing.T) {
	for _, name := range names() {
		r := newRouter(t, name, 5, published(5))
		r.Observe(0, router.Observation{Kind: router.OutOfRotation, Replica: 3})
		prompts := newConversations(10, 100)
		rng := rand.New(rand.NewPCG(14, 14))
		for range 1000 {
			session, chain := prompts.turn()
			q := policies.Request{Session: fmt.Sprint(session), Prefix: chain, Blocks: chain}
			for id := range policies.ReplicaID(5) {
				if rng.IntN(2) == 0 {
					q.Exclude = append(q.Exclude, id)
				}
			}
			d, err := r.Route(0, q)
			left := 0
			for _, id := range []policies.ReplicaID{0, 1, 2, 4} {
				if !slices.Contains(q.Exclude, id) {
					left++
				}
			}
			if (err == nil) != (left > 0) {
				t.Fatalf("%s: error %v with %d replicas left", name, err, left)
			}
			if err == nil && (d.Replica == 3 || slices.Contains(q.Exclude, d.Replica)) {
				t.Fatalf("%s chose %d although it was not to", name, d.Replica)
			}
		}
	}
}
