package router_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/policies/residency"
	"kvfleet/policies/router"
)

func newRouter(tb testing.TB, choice string, replicas int) *router.Router {
	tb.Helper()
	c, err := policies.ParseChoice(choice)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := c.New(policies.Bounds{
		BeliefTTL: time.Minute, BeliefBlocks: 5000, BytesPerToken: 4, BlockSize: 16,
	}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		tb.Fatal(err)
	}
	r := router.New(router.Config{Policy: p})
	for i := range replicas {
		r.Observe(0, router.Observation{Kind: router.Added, Replica: policies.ReplicaID(i), Name: fmt.Sprint("r", i)})
	}
	return r
}

// Whatever happens to membership, the ledger is what is open, and ends at zero.
func TestLedgerIsWhatIsOpen(t *testing.T) {
	type request struct {
		id      policies.ReplicaID
		pending int
	}
	for _, s := range policies.Catalog() {
		const n = 6
		r := newRouter(t, s.Name, n)
		rng := rand.New(rand.NewPCG(2, 2))
		var open []request
		check := func() {
			t.Helper()
			inFlight, pending := make([]int, n), make([]int, n)
			for _, o := range open {
				inFlight[o.id]++
				pending[o.id] += o.pending
			}
			total := 0
			for id := range policies.ReplicaID(n) {
				if r.InFlight(id) != inFlight[id] || r.PendingPrefill(id) != pending[id] {
					t.Fatalf("%s: replica %d has %d in flight and %d pending, want %d and %d",
						s.Name, id, r.InFlight(id), r.PendingPrefill(id), inFlight[id], pending[id])
				}
				if rep, in := r.Snapshot().ByID(id); in {
					total += rep.InFlight
				}
			}
			if got := r.Snapshot().TotalInFlight(); got != total {
				t.Fatalf("%s: total in rotation %d, want %d", s.Name, got, total)
			}
		}
		for step := range 3000 {
			at := time.Duration(step) * 50 * time.Millisecond
			id := policies.ReplicaID(rng.IntN(n))
			switch rng.IntN(20) {
			case 0:
				r.Observe(at, router.Observation{Kind: router.OutOfRotation, Replica: id, Forget: rng.IntN(2) == 0})
			case 1, 2:
				r.Observe(at, router.Observation{Kind: router.InRotation, Replica: id})
			}
			chain := []uint64{uint64(1 + rng.IntN(3)), uint64(10 + rng.IntN(3))}
			d, err := r.Route(at, policies.Request{Session: fmt.Sprint(chain[0]), PromptTokens: 40, Prefix: chain[:1], Blocks: chain[:1]})
			if err == nil {
				open = append(open, request{d.Replica, d.Pending})
			}
			for len(open) > 0 && rng.IntN(25) < len(open) {
				i := rng.IntN(len(open))
				o := &open[i]
				if o.pending > 0 && rng.IntN(2) == 0 {
					r.Prefilled(at, o.id, o.pending)
					o.pending = 0
				} else {
					r.Done(at, o.id, o.pending)
					open = slices.Delete(open, i, i+1)
				}
			}
			check()
		}
		for _, o := range open {
			r.Done(0, o.id, o.pending)
		}
		open = nil
		check()
	}
}

func TestEndingTwicePanics(t *testing.T) {
	for name, misuse := range map[string]func(*router.Router, policies.Decision){
		"done twice": func(r *router.Router, d policies.Decision) {
			r.Done(0, d.Replica, d.Pending)
			r.Done(0, d.Replica, 0)
		},
		"prefilled twice": func(r *router.Router, d policies.Decision) {
			r.Prefilled(0, d.Replica, d.Pending)
			r.Prefilled(0, d.Replica, d.Pending)
		},
		"negative tokens": func(r *router.Router, d policies.Decision) { r.Prefilled(0, d.Replica, -1) },
		"unknown replica": func(r *router.Router, d policies.Decision) { r.Done(0, 77, 0) },
		"unknown reporter": func(r *router.Router, d policies.Decision) {
			r.Observe(0, router.Observation{Kind: router.Events, Replica: 77})
		},
		"unknown kind":     func(r *router.Router, d policies.Decision) { r.Observe(0, router.Observation{Kind: 99}) },
		"added again":      func(r *router.Router, d policies.Decision) { r.Observe(0, router.Observation{Kind: router.Added}) },
		"no policy at all": func(*router.Router, policies.Decision) { router.New(router.Config{}) },
		"forgets a nobody": func(r *router.Router, d policies.Decision) {
			r.Observe(0, router.Observation{Kind: router.Removed, Replica: 5})
		},
		"restores a nobody": func(r *router.Router, d policies.Decision) {
			r.Observe(0, router.Observation{Kind: router.InRotation, Replica: 5})
		},
	} {
		func() {
			r := newRouter(t, "least_outstanding", 2)
			d, err := r.Route(0, policies.Request{PromptTokens: 10})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse(r, d)
		}()
	}
}

func TestPendingIsWhatIsPredictedUncached(t *testing.T) {
	r := newRouter(t, "prefix_affinity", 2)
	chain := []uint64{1, 2, 3, 4} // of 16 tokens each at 4 bytes a token
	for _, want := range []int{100, 36} {
		d, err := r.Route(0, policies.Request{PromptTokens: 100, Prefix: chain})
		if err != nil || d.Pending != want || d.MatchTokens != 100-want {
			t.Fatalf("pending %d and match %d (%v), want %d and %d", d.Pending, d.MatchTokens, err, want, 100-want)
		}
	}
	d, err := r.Route(0, policies.Request{PromptTokens: 50, Prefix: chain})
	if err != nil || d.Pending != 0 || d.MatchTokens != 50 {
		t.Errorf("pending %d, match %d (%v): a prompt is not cached beyond its end", d.Pending, d.MatchTokens, err)
	}
}

func TestSequenceOfEvents(t *testing.T) {
	r := newRouter(t, "exact_residency", 1)
	chain := []uint64{1, 2, 3}
	send := func(seq uint64, hashes ...uint64) {
		r.Observe(0, router.Observation{
			Kind: router.Events, Seq: seq,
			Events: []residency.Event{{Kind: residency.Stored, Hashes: hashes}},
		})
	}
	match := func(want int, gaps uint64, why string) {
		t.Helper()
		d, err := r.Route(0, policies.Request{Blocks: chain})
		if err != nil || d.Match != want || r.Gaps() != gaps {
			t.Errorf("%s: match %d, %d gaps (%v), want %d, %d", why, d.Match, r.Gaps(), err, want, gaps)
		}
	}
	send(7, 1)
	match(1, 0, "the first number may be any")
	send(8, 2)
	match(2, 0, "in order")
	send(8, 3)
	match(2, 0, "a repetition is ignored")
	send(10, 3)
	match(0, 1, "9 is missing")
	send(11, 1)
	send(12, 2)
	match(3, 1, "learned again")
	send(0, 1)
	match(1, 2, "the engine began again")
	r.Observe(0, router.Observation{Kind: router.OutOfRotation, Forget: true})
	send(5, 1, 2)
	r.Observe(0, router.Observation{Kind: router.InRotation})
	match(2, 2, "a forgotten replica may begin anywhere")
	r.Observe(0, router.Observation{Kind: router.InRotation, Forget: true})
	match(0, 2, "late words of a dead engine are dropped on its return")
}

func TestEventsArePassedOver(t *testing.T) {
	r := newRouter(t, "least_outstanding", 1)
	if r.WantsEvents() {
		t.Error("least_outstanding wants events")
	}
	r.Observe(0, router.Observation{Kind: router.Events, Seq: 9})
	r.Observe(0, router.Observation{Kind: router.Events, Seq: 1})
	if r.Gaps() != 0 {
		t.Error("a policy without events has gaps")
	}
	if !newRouter(t, "exact_speculative", 1).WantsEvents() {
		t.Error("exact_speculative wants no events")
	}
}

func Example() {
	r := router.New(router.Config{Policy: policies.NewLeastOutstanding()})
	r.Observe(0, router.Observation{Kind: router.Added, Replica: 0, Name: "gpu-a"})
	r.Observe(0, router.Observation{Kind: router.Added, Replica: 1, Name: "gpu-b"})

	d, err := r.Route(time.Second, policies.Request{PromptTokens: 900})
	fmt.Println(d.Replica, d.Reason, err, r.InFlight(0), r.PendingPrefill(0))
	r.Prefilled(2*time.Second, d.Replica, d.Pending)
	fmt.Println(r.InFlight(0), r.PendingPrefill(0))
	r.Done(3*time.Second, d.Replica, 0)
	fmt.Println(r.InFlight(0))
	// Output:
	// 0 LEAST_OUTSTANDING <nil> 1 900
	// 1 0
	// 0
}
