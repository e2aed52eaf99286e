package policies

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Spec describes a policy: what it does and what it can be told.
type Spec struct {
	Name   string
	Rule   string // one sentence
	Params []Param
	Source string // where the rule and its defaults come from
	// NeedsTokens says that the policy looks at a request's engine blocks, so the
	// router has to tokenize.
	NeedsTokens bool
	// NeedsEvents says that it learns from KV cache events.
	NeedsEvents bool
	// NeedsBelief says that it keeps a belief index and needs the fleet's bounds.
	NeedsBelief bool

	make func(args) (Policy, error)
}

// args is what a constructor is called with: every parameter has a value.
type args struct {
	values map[string]value
	bounds Bounds
	rng    *rand.Rand
}

func (a args) float(name string) float64 { return a.values[name].n }
func (a args) int(name string) int       { return int(a.values[name].n) }
func (a args) duration(name string) time.Duration {
	return time.Duration(a.values[name].n)
}

func (a args) spill() SpillRule {
	w := SpillRule{Factor: a.float("spill_factor"), HitRateLowWater: a.float("hit_rate_low_water")}
	if a.values["spill_denominator"].text == "mean" {
		w.Denominator = DenominatorMean
	}
	return w
}

const published = "published five-GPU comparison (RTX 3090)"

// Catalog returns every policy there is. It is the one place that knows them by
// name.
func Catalog() []Spec {
	return append(loadSpecs(), append(hashSpecs(), prefixSpecs()...)...)
}

func loadSpecs() []Spec {
	return []Spec{{
		Name:   "round_robin",
		Rule:   "Takes the replicas in turn, whatever their load.",
		Source: "folklore",
		make:   func(args) (Policy, error) { return NewRoundRobin(), nil },
	}, {
		Name:   "least_outstanding",
		Rule:   "Takes the replica with the fewest requests in flight; ties rotate.",
		Source: "folklore; the load rule of every other policy here",
		make:   func(args) (Policy, error) { return NewLeastOutstanding(), nil },
	}, {
		Name:   "power_of_two",
		Rule:   "Draws two distinct replicas at random and takes the one with fewer requests in flight.",
		Source: "Mitzenmacher 2001, The Power of Two Choices in Randomized Load Balancing",
		make: func(a args) (Policy, error) {
			if a.rng == nil {
				return nil, fmt.Errorf("power_of_two needs a random stream")
			}
			return NewPowerOfTwo(a.rng), nil
		},
	}}
}

func hashSpecs() []Spec {
	return []Spec{{
		Name:   "session_affinity",
		Rule:   "Keeps a session on the owner of its id on a consistent-hash ring, blind to load.",
		Params: []Param{virtualNodesParam()},
		Source: "Karger 1997, Consistent Hashing and Random Trees; " + published,
		make: func(a args) (Policy, error) {
			return NewSessionAffinity(a.int("virtual_nodes")), nil
		},
	}, {
		Name: "bounded_session_affinity",
		Rule: "Walks the session's ring clockwise to the first replica with inflight under " +
			"ceil((1+eps)*(total inflight+1)/replicas).",
		Params: []Param{{
			Name: "eps", Unit: "share of the mean load", Kind: KindFloat, Default: "0.25",
			Min: "0", Doc: "how far above the mean a replica may be loaded",
		}, virtualNodesParam()},
		Source: "Mirrokni, Thorup, Zadimoghaddam 2018, Consistent Hashing with Bounded Loads; " + published,
		make: func(a args) (Policy, error) {
			return NewBoundedSessionAffinity(a.float("eps"), a.int("virtual_nodes")), nil
		},
	}, {
		Name: "prefix_hash",
		Rule: "Hashes the prompt's first window prefix blocks onto the ring and takes the replica " +
			"with the least inflight + weight * rank in ring order.",
		Params: []Param{{
			Name: "window", Unit: "prefix blocks", Kind: KindInt, Default: "16", Min: "1",
			Doc: "leading 64-byte blocks that are hashed; shorter prompts are placed on load",
		}, {
			Name: "weight", Unit: "requests per rank", Kind: KindFloat, Default: "4", Min: "0",
			Doc: "requests in flight that one step away from the owner is worth",
		}, virtualNodesParam()},
		Source: published,
		make: func(a args) (Policy, error) {
			return NewPrefixHash(a.int("window"), a.float("weight"), a.int("virtual_nodes")), nil
		},
	}}
}

func prefixSpecs() []Spec {
	return []Spec{{
		Name: "prefix_affinity",
		Rule: "Takes the replica believed to hold the longest leading run of the prompt's prefix " +
			"blocks, unless the spill rule declines it.",
		Params: append(spillParams(), Param{
			Name: "ttl", Unit: "duration", Kind: KindDuration, Min: "0s", MinOpen: true,
			FromFleet: true, Doc: "how long a placement is believed",
		}, Param{
			Name: "belief_blocks", Unit: "prefix blocks", Kind: KindInt, Min: "1",
			FromFleet: true, Doc: "the most blocks believed, over the whole fleet",
		}),
		Source:      published,
		NeedsBelief: true,
		make: func(a args) (Policy, error) {
			b := a.bounds
			b.BeliefTTL, b.BeliefBlocks = a.duration("ttl"), a.int("belief_blocks")
			return NewPrefixAffinity(a.spill(), b)
		},
	}, {
		Name: "exact_residency",
		Rule: "Takes the replica whose KV cache events report the longest leading run of the " +
			"prompt's engine blocks, unless the spill rule declines it.",
		Params:      spillParams(),
		Source:      published,
		NeedsTokens: true, NeedsEvents: true,
		make: func(a args) (Policy, error) { return NewExactResidency(a.spill(), a.bounds) },
	}, {
		Name: "exact_speculative",
		Rule: "Decides as exact_residency does, and also takes a replica to hold what this router " +
			"sent it in the last speculate.",
		Params: append(spillParams(), Param{
			Name: "speculate", Unit: "duration", Kind: KindDuration, Default: "2s",
			Min: "0s", MinOpen: true, Doc: "how long a placement counts as held before events tell",
		}),
		Source:      "exact_residency with the layer it lacks; not measured",
		NeedsTokens: true, NeedsEvents: true, NeedsBelief: true,
		make: func(a args) (Policy, error) {
			return NewExactSpeculative(a.spill(), a.duration("speculate"), a.bounds)
		},
	}}
}

func virtualNodesParam() Param {
	return Param{
		Name: "virtual_nodes", Unit: "points per replica", Kind: KindInt, Default: "128",
		Min: "1", Max: "65536", Doc: "points each replica owns on the ring",
	}
}

func spillParams() []Param {
	return []Param{{
		Name: "spill_factor", Unit: "ratio", Kind: KindFloat, Default: "2", Off: "0", Min: "1",
		Doc: "declines the best match when its inflight exceeds this times max(1, denominator)",
	}, {
		Name: "spill_denominator", Unit: "statistic", Kind: KindEnum, Default: "min",
		Values: []string{"min", "mean"}, Doc: "inflight over the rotation that a match is compared with",
	}, {
		Name: "hit_rate_low_water", Unit: "share", Kind: KindFloat, Default: "0", Off: "0",
		Min: "0", MinOpen: true, Max: "1", MaxOpen: true,
		Doc: "declines a match whose engine reports a prefix-cache hit rate under this",
	}}
}
