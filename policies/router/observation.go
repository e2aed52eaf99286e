package router

import (
	"fmt"
	"time"

	"kvfleet/policies"
	"kvfleet/policies/residency"
)

// A Kind says what was observed.
type Kind uint8

const (
	// Added: a replica joins the fleet under an id never used before and a name,
	// and is in rotation.
	Added Kind = iota
	// InRotation: a replica is back in rotation: readmitted, or restored.
	InRotation
	// OutOfRotation: a replica takes no new requests: ejected, or draining.
	// Forget says that its cache is gone too.
	OutOfRotation
	// Removed: a replica leaves the fleet for good. Its cache is gone with it.
	Removed
	// Report: the engine's own signals were read.
	Report
	// Events: a batch of KV cache events arrived.
	Events
)

// An Observation is one thing learned about one replica. Fields its kind does not
// name are ignored.
type Observation struct {
	Kind    Kind
	Replica policies.ReplicaID
	Name    string // Added
	// Forget drops what the replica was believed or reported to hold, and its
	// report. OutOfRotation and InRotation; Removed implies it. A dead process
	// forgets, a draining one does not.
	Forget bool
	// HitRate is the prefix-cache hit rate over the engine's window, 0..1. Report.
	HitRate float64
	// Seq numbers the replica's batches, from any number on, by ones. After a
	// missing number everything the replica reported before is forgotten; a number
	// already seen is a repetition and ignored, except that 0 begins again, as a
	// restarted engine does. Events.
	Seq uint64
	// Events is the batch, in the engine's order; not kept. Events.
	Events []residency.Event
}

// Observe learns something at a time. Naming a replica that was never added
// panics, as does adding one twice.
func (r *Router) Observe(at time.Duration, o Observation) {
	switch o.Kind {
	case Added:
		r.view.Add(o.Replica, o.Name)
		for len(r.feeds) <= int(o.Replica) {
			r.feeds = append(r.feeds, feed{})
		}
	case InRotation:
		if o.Forget {
			r.forget(o.Replica)
		}
		r.view.Restore(o.Replica)
	case OutOfRotation:
		r.view.Remove(o.Replica)
		if o.Forget {
			r.forget(o.Replica)
		}
	case Removed:
		r.view.Remove(o.Replica)
		r.forget(o.Replica)
	case Report:
		r.view.Report(at, o.Replica, o.HitRate)
	case Events:
		r.events(at, o)
	default:
		panic(fmt.Sprintf("router: observation of unknown kind %d", o.Kind))
	}
}

// A feed is how far a replica's batches of events have come.
type feed struct {
	begun bool
	next  uint64
}

func (r *Router) events(at time.Duration, o Observation) {
	if !r.view.Known(o.Replica) {
		panic(fmt.Sprintf("router: events of replica %d, which was never added", o.Replica))
	}
	if r.consumer == nil {
		return
	}
	f := &r.feeds[o.Replica]
	switch {
	case !f.begun || o.Seq == f.next:
	case o.Seq > f.next, o.Seq == 0 && f.next > 1:
		r.gaps++
		r.consumer.Gap(o.Replica)
	default:
		return
	}
	f.begun, f.next = true, o.Seq+1
	r.consumer.Events(at, o.Replica, o.Events)
}

func (r *Router) forget(id policies.ReplicaID) {
	r.view.Unread(id)
	r.feeds[id] = feed{}
	if r.forgetter != nil {
		r.forgetter.Forget(id)
	}
}
