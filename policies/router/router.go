package router

import (
	"fmt"
	"time"

	"kvfleet/policies"
)

// A Config says how to route.
type Config struct {
	Policy policies.Policy // required
}

// A Router places requests and counts them. It is not safe for concurrent use: a
// live driver calls it under one lock.
type Router struct {
	view      policies.View
	policy    policies.Policy
	consumer  policies.EventConsumer // nil if the policy takes no events
	forgetter policies.Forgetter     // nil if it has nothing to forget
	feeds     []feed                 // by replica
	gaps      uint64
}

// New returns a router of an empty fleet. A nil policy panics.
func New(c Config) *Router {
	if c.Policy == nil {
		panic("router: no policy")
	}
	r := &Router{policy: c.Policy}
	r.consumer, _ = c.Policy.(policies.EventConsumer)
	r.forgetter, _ = c.Policy.(policies.Forgetter)
	return r
}

// WantsEvents reports whether the policy learns from KV cache events; if not,
// those observed are dropped and need not be produced.
func (r *Router) WantsEvents() bool { return r.consumer != nil }

// Gaps is how often a hole in a replica's events made the router forget what it
// had reported.
func (r *Router) Gaps() uint64 { return r.gaps }

// Snapshot is the fleet as the policy sees it. It changes with the next call to
// the router.
func (r *Router) Snapshot() *policies.Snapshot { return r.view.Snapshot() }

// Route places a request and counts it in flight before it returns. The error is
// ErrNoReplica when no replica is eligible; nothing is counted then. The caller
// keeps the decision's Replica and Pending for Prefilled and Done.
func (r *Router) Route(at time.Duration, q policies.Request) (policies.Decision, error) {
	d, err := r.policy.Pick(at, q, r.view.Snapshot())
	if err != nil {
		return d, err
	}
	d.Pending = max(0, q.PromptTokens-d.MatchTokens)
	r.view.SetInFlight(d.Replica, r.view.InFlight(d.Replica)+1)
	r.view.SetPendingPrefill(d.Replica, r.view.PendingPrefill(d.Replica)+d.Pending)
	return d, nil
}

// Prefilled says that a request's first token came: its pending tokens, as the
// decision gave them, no longer are.
func (r *Router) Prefilled(_ time.Duration, id policies.ReplicaID, pending int) {
	r.settle(id, pending)
}

// Done says that a request ended, however it did. pending is what it still has
// pending: 0 after Prefilled, the decision's Pending otherwise. The replica may
// have left the rotation or the fleet meanwhile.
func (r *Router) Done(_ time.Duration, id policies.ReplicaID, pending int) {
	r.settle(id, pending)
	n := r.view.InFlight(id)
	if n == 0 {
		panic(fmt.Sprintf("router: a request on replica %d ended twice", id))
	}
	r.view.SetInFlight(id, n-1)
}

func (r *Router) settle(id policies.ReplicaID, pending int) {
	if pending == 0 {
		return
	}
	left := r.view.PendingPrefill(id) - pending
	if pending < 0 || left < 0 {
		panic(fmt.Sprintf("router: %d tokens settled on replica %d would leave %d pending", pending, id, left))
	}
	r.view.SetPendingPrefill(id, left)
}

// InFlight is a replica's count of requests in flight, in rotation or not.
func (r *Router) InFlight(id policies.ReplicaID) int { return r.view.InFlight(id) }

// PendingPrefill is a replica's uncached prompt tokens predicted and not yet
// computed, in rotation or not.
func (r *Router) PendingPrefill(id policies.ReplicaID) int { return r.view.PendingPrefill(id) }
