package policies_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"kvfleet/policies"
	"kvfleet/policies/residency"
)

// fleet is three replicas with the given numbers of requests in flight.
func fleet(inFlight ...int) *policies.View {
	v := new(policies.View)
	for i, n := range inFlight {
		id := policies.ReplicaID(i)
		v.Add(id, fmt.Sprintf("replica-%d", i))
		v.SetInFlight(id, n)
	}
	return v
}

func show(d policies.Decision, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("replica %d %v\n", d.Replica, d.Reason)
}

func Example() {
	choice, err := policies.ParseChoice("prefix_affinity:spill_factor=3,ttl=30s")
	if err != nil {
		fmt.Println(err)
		return
	}
	bounds := policies.Bounds{BeliefTTL: time.Minute, BeliefBlocks: 16311, BytesPerToken: 4}
	fmt.Println(choice.Effective(bounds))
	policy, err := choice.New(bounds, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	v := fleet(0, 0, 0)
	show(policy.Pick(0, policies.Request{Prefix: []uint64{1, 2}}, v.Snapshot()))
	show(policy.Pick(time.Second, policies.Request{Prefix: []uint64{1, 2, 3}}, v.Snapshot()))
	_, err = policies.ParseChoice("prefix_afinity")
	fmt.Println(err)
	// Output:
	// belief_blocks=16311,hit_rate_low_water=0,spill_denominator=min,spill_factor=3,ttl=30s
	// replica 0 COLD
	// replica 0 PREFIX_AFFINITY
	// unknown policy "prefix_afinity": did you mean "prefix_affinity"?
}

func ExampleNewRoundRobin() {
	p, v := policies.NewRoundRobin(), fleet(9, 0, 0)
	show(p.Pick(0, policies.Request{}, v.Snapshot()))
	show(p.Pick(0, policies.Request{}, v.Snapshot()))
	// Output:
	// replica 0 ROUND_ROBIN
	// replica 1 ROUND_ROBIN
}

func ExampleNewLeastOutstanding() {
	p, v := policies.NewLeastOutstanding(), fleet(4, 1, 1)
	show(p.Pick(0, policies.Request{}, v.Snapshot()))
	show(p.Pick(0, policies.Request{}, v.Snapshot())) // the tie turns
	// Output:
	// replica 1 LEAST_OUTSTANDING
	// replica 2 LEAST_OUTSTANDING
}

func ExampleNewPowerOfTwo() {
	p, v := policies.NewPowerOfTwo(rand.New(rand.NewPCG(1, 1))), fleet(4, 0)
	show(p.Pick(0, policies.Request{}, v.Snapshot())) // both are drawn
	// Output:
	// replica 1 POWER_OF_TWO
}

func ExampleNewSessionAffinity() {
	p, v := policies.NewSessionAffinity(128), fleet(0, 0, 0)
	q := policies.Request{Session: "anna"}
	show(p.Pick(0, q, v.Snapshot()))
	v.SetInFlight(0, 50)
	v.SetInFlight(1, 50)
	v.SetInFlight(2, 50)
	show(p.Pick(0, q, v.Snapshot()))
	// Output:
	// replica 0 SESSION_AFFINITY
	// replica 0 SESSION_AFFINITY
}

func ExampleNewBoundedSessionAffinity() {
	p, v := policies.NewBoundedSessionAffinity(0.25, 128), fleet(0, 0, 0)
	q := policies.Request{Session: "anna"}
	d, err := p.Pick(0, q, v.Snapshot())
	show(d, err)
	v.SetInFlight(d.Replica, 2) // its bound is now ceil(1.25*3/3)
	show(p.Pick(0, q, v.Snapshot()))
	// Output:
	// replica 0 BOUNDED_SESSION_AFFINITY
	// replica 2 BOUND_DEFLECTED
}

func ExampleNewPrefixHash() {
	p, v := policies.NewPrefixHash(2, 4, 128), fleet(0, 0, 0)
	q := policies.Request{Prefix: []uint64{11, 12, 13}}
	d, err := p.Pick(0, q, v.Snapshot())
	show(d, err)
	v.SetInFlight(d.Replica, 5) // one rank costs 4
	show(p.Pick(0, q, v.Snapshot()))
	show(p.Pick(0, policies.Request{Prefix: []uint64{11}}, v.Snapshot()))
	// Output:
	// replica 0 PREFIX_HASH
	// replica 2 HASH_DEFLECTED
	// replica 1 PROMPT_UNHASHED
}

func ExampleNewPrefixAffinity() {
	p, err := policies.NewPrefixAffinity(policies.SpillRule{Factor: 2}, policies.Bounds{
		BeliefTTL: time.Minute, BeliefBlocks: 16311, BytesPerToken: 4,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	v := fleet(0, 0, 0)
	show(p.Pick(0, policies.Request{Prefix: []uint64{11, 12}}, v.Snapshot()))
	next := policies.Request{Prefix: []uint64{11, 12, 13}}
	show(p.Pick(time.Second, next, v.Snapshot()))
	v.SetInFlight(0, 3) // more than twice one request
	show(p.Pick(2*time.Second, next, v.Snapshot()))
	// Output:
	// replica 0 COLD
	// replica 0 PREFIX_AFFINITY
	// replica 1 SPILL_LOAD
}

func ExampleNewExactResidency() {
	p, err := policies.NewExactResidency(policies.SpillRule{Factor: 2}, policies.Bounds{BlockSize: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	v := fleet(0, 0, 0)
	q := policies.Request{Blocks: []uint64{11, 12}, PromptTokens: 40}
	show(p.Pick(0, q, v.Snapshot()))
	stored := []residency.Event{{Kind: residency.Stored, Hashes: []uint64{11, 12}}}
	p.(policies.EventConsumer).Events(0, 2, stored)
	d, err := p.Pick(0, q, v.Snapshot())
	show(d, err)
	fmt.Println(d.MatchTokens, "of 40 tokens")
	show(p.Pick(0, policies.Request{PromptTokens: 40}, v.Snapshot()))
	// Output:
	// replica 0 COLD
	// replica 2 PREFIX_AFFINITY
	// 32 of 40 tokens
	// replica 1 PROMPT_UNTOKENIZED
}

func ExampleNewExactSpeculative() {
	bounds := policies.Bounds{BeliefBlocks: 16311, BytesPerToken: 4, BlockSize: 16}
	p, err := policies.NewExactSpeculative(policies.SpillRule{Factor: 2}, 2*time.Second, bounds)
	if err != nil {
		fmt.Println(err)
		return
	}
	v := fleet(0, 0, 0)
	q := policies.Request{Blocks: []uint64{11, 12}}
	show(p.Pick(0, q, v.Snapshot()))
	show(p.Pick(time.Second, q, v.Snapshot())) // no event has told yet
	show(p.Pick(time.Minute, q, v.Snapshot())) // none ever did
	// Output:
	// replica 0 COLD
	// replica 0 SPECULATIVE
	// replica 1 COLD
}
