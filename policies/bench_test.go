package policies_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/policies/residency"
	"kvfleet/policies/ring"
	"kvfleet/policies/router"
)

// newRouter makes a router of n replicas for a choice written as on the command
// line.
func newRouter(tb testing.TB, choice string, n int, bounds policies.Bounds) *router.Router {
	tb.Helper()
	c, err := policies.ParseChoice(choice)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := c.New(bounds, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		tb.Fatal(err)
	}
	r := router.New(router.Config{Policy: p})
	for i := range n {
		r.Observe(0, router.Observation{
			Kind: router.Added, Replica: policies.ReplicaID(i), Name: "r" + strconv.Itoa(i),
		})
	}
	return r
}

// published are the bounds of the published fleet, for n replicas.
func published(n int) policies.Bounds {
	return policies.Bounds{
		BeliefTTL:    56970 * time.Millisecond,
		BeliefBlocks: 16311 * n / 5, BytesPerToken: 4.2, BlockSize: 16,
	}
}

// conversations makes sessions whose turns extend one another: a shared head of
// 20 blocks, and turns of up to the given number of blocks.
type conversations struct {
	rng   *rand.Rand
	next  uint64
	head  []uint64
	turns [][]uint64
	most  int
}

func newConversations(sessions, most int) *conversations {
	c := &conversations{rng: rand.New(rand.NewPCG(7, 7)), most: most, turns: make([][]uint64, sessions)}
	c.head = c.grow(nil, 20)
	return c
}

func (c *conversations) grow(chain []uint64, n int) []uint64 {
	for range n {
		c.next++
		chain = append(chain, ring.Mix(c.next))
	}
	return chain
}

// turn returns a session and its next prompt; a full session starts again.
func (c *conversations) turn() (int, []uint64) {
	s := c.rng.IntN(len(c.turns))
	if n := len(c.turns[s]); n == 0 || n >= c.most {
		c.turns[s] = append(c.turns[s][:0], c.head...)
	}
	grown := min(c.most, len(c.turns[s])+20) - len(c.turns[s])
	c.turns[s] = c.grow(c.turns[s], grown)
	return s, c.turns[s]
}

func benchmarkRoute(b *testing.B, choice string, replicas, blocks int) {
	r := newRouter(b, choice, replicas, published(replicas))
	prompts := newConversations(30*replicas, blocks)
	open := make([]policies.Decision, 6*replicas)
	at := time.Duration(0)
	step := func(i int) {
		at += time.Second / time.Duration(6*replicas/5)
		_, chain := prompts.turn()
		d, err := r.Route(at, policies.Request{PromptTokens: 16 * len(chain), Prefix: chain, Blocks: chain})
		if err != nil {
			b.Fatal(err)
		}
		slot := &open[i%len(open)]
		if i >= len(open) {
			r.Done(at, slot.Replica, slot.Pending)
		}
		*slot = d
	}
	warm := 100 * replicas
	for i := range warm {
		step(i)
	}
	b.ReportAllocs()
	i := warm
	for b.Loop() {
		step(i)
		i++
	}
}

// The figures include making the prompt (growing a session by 20 blocks), about
// 0.1 microseconds.
func BenchmarkPrefixAffinity100x5(b *testing.B) { benchmarkRoute(b, "prefix_affinity", 5, 100) }
func BenchmarkPrefixAffinity200x5(b *testing.B) { benchmarkRoute(b, "prefix_affinity", 5, 200) }
func BenchmarkPrefixAffinity200x1000(b *testing.B) {
	benchmarkRoute(b, "prefix_affinity", 1000, 200)
}

// Every decision is on the same 200 blocks, which all replicas come to hold.
func BenchmarkPrefixAffinityShared200x1000(b *testing.B) {
	r := newRouter(b, "prefix_affinity:spill_factor=1", 1000, published(1000))
	chain := newConversations(1, 200).grow(nil, 200)
	open := make([]policies.Decision, 3000)
	at := time.Duration(0)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		at += time.Millisecond
		d, err := r.Route(at, policies.Request{Prefix: chain})
		if err != nil {
			b.Fatal(err)
		}
		if i >= len(open) {
			r.Done(at, open[i%len(open)].Replica, 0)
		}
		open[i%len(open)] = d
		i++
	}
}

func BenchmarkLeastOutstanding(b *testing.B) {
	for _, n := range []int{5, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkRoute(b, "least_outstanding", n, 40) })
	}
}

func BenchmarkPrefixHash(b *testing.B) {
	for _, n := range []int{5, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkRoute(b, "prefix_hash", n, 200) })
	}
}

func BenchmarkExactSpeculative200x5(b *testing.B) { benchmarkRoute(b, "exact_speculative", 5, 200) }

// One request's part in exact residency: a look-up of 200 blocks, 50 stored and
// 50 removed.
func BenchmarkResidency(b *testing.B) {
	for _, n := range []int{5, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkResidency(b, n) })
	}
}

func benchmarkResidency(b *testing.B, replicas int) {
	var x residency.Index
	const kept = 4000
	fifo := make([][]uint64, replicas)
	next := uint64(0)
	events := []residency.Event{{Kind: residency.Stored}, {Kind: residency.Removed}}
	store := func(r, n int) {
		from := len(fifo[r])
		for range n {
			next++
			fifo[r] = append(fifo[r], next)
		}
		events[0].Hashes, events[1].Hashes = fifo[r][from:], nil
		if len(fifo[r]) > 2*kept {
			fifo[r] = append(fifo[r][:0], fifo[r][len(fifo[r])-kept:]...)
			events[0].Hashes = fifo[r][kept-n:]
		}
		if len(fifo[r]) > kept {
			events[1].Hashes = fifo[r][len(fifo[r])-kept-n : len(fifo[r])-kept]
		}
		x.Apply(int32(r), events)
	}
	for r := range replicas {
		for range kept / 50 {
			store(r, 50)
		}
	}
	in, holders := make([]uint64, (replicas+63)/64), make([]uint64, (replicas+63)/64)
	for r := range replicas {
		in[r>>6] |= 1 << (r & 63)
	}
	r := 0
	b.ReportAllocs()
	for b.Loop() {
		if r++; r == replicas {
			r = 0
		}
		x.Longest(fifo[r][len(fifo[r])-200:], in, holders)
		store(r, 50)
	}
}

func BenchmarkRing(b *testing.B) {
	for _, n := range []int{5, 1000} {
		var members []ring.Member
		for i := range n {
			members = append(members, ring.Member{ID: int32(i), Name: "r" + strconv.Itoa(i)})
		}
		r := ring.New(members, 128)
		key := uint64(0)
		b.Run(fmt.Sprintf("owner/%d", n), func(b *testing.B) {
			for b.Loop() {
				key += 0x9e3779b97f4a7c15
				r.Owner(key)
			}
		})
		b.Run(fmt.Sprintf("build/%d", n), func(b *testing.B) {
			for b.Loop() {
				ring.New(members, 128)
			}
		})
	}
}
