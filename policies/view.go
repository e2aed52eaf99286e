package policies

import (
	"fmt"
	"slices"
	"time"
)

// A View owns a snapshot and is the only thing that changes one. The router
// holds it; the zero View is empty and ready. Naming a replica that was never
// added is a bug of the caller and panics.
type View struct {
	snap Snapshot
}

// Snapshot returns the view's one snapshot, always current.
func (v *View) Snapshot() *Snapshot { return &v.snap }

// Add makes a replica known and puts it in rotation. Ids are never reused: to
// add one twice panics, as does a negative id.
func (v *View) Add(id ReplicaID, name string) {
	s := &v.snap
	if id < 0 || s.known.has(int(id)) {
		panic(fmt.Sprintf("policies: replica %d (%q) added twice or negative", id, name))
	}
	for len(s.replicas) <= int(id) {
		s.replicas = append(s.replicas, Replica{ID: ReplicaID(len(s.replicas))})
	}
	s.replicas[id] = Replica{ID: id, Name: name}
	s.known.add(int(id))
	v.Restore(id)
}

// Known reports whether the replica was ever added.
func (v *View) Known(id ReplicaID) bool { return id >= 0 && v.snap.known.has(int(id)) }

// Remove takes a replica out of rotation and keeps its counts, so that requests
// still running on it can end. It does nothing to one already out.
func (v *View) Remove(id ReplicaID) {
	s := &v.snap
	r := v.replica(id)
	if !s.rotation.has(int(id)) {
		return
	}
	s.leaveLevel(id, r.InFlight)
	s.total -= r.InFlight
	s.rotation.remove(int(id))
	at, _ := slices.BinarySearch(s.order, id)
	s.order = slices.Delete(s.order, at, at+1)
	s.version++
}

// Restore puts a replica in rotation, with the counts it has. It does nothing to
// one already in.
func (v *View) Restore(id ReplicaID) {
	s := &v.snap
	r := v.replica(id)
	if s.rotation.has(int(id)) {
		return
	}
	s.rotation.add(int(id))
	s.enterLevel(id, r.InFlight)
	s.total += r.InFlight
	at, _ := slices.BinarySearch(s.order, id)
	s.order = slices.Insert(s.order, at, id)
	s.version++
}

// InFlight returns the replica's count of requests in flight, in rotation or not.
func (v *View) InFlight(id ReplicaID) int { return v.replica(id).InFlight }

// SetInFlight sets the number of requests in flight; a negative one panics.
func (v *View) SetInFlight(id ReplicaID, n int) {
	s := &v.snap
	r := v.replica(id)
	if n < 0 {
		panic(fmt.Sprintf("policies: replica %d would have %d in flight", id, n))
	}
	if s.rotation.has(int(id)) {
		s.leaveLevel(id, r.InFlight)
		s.enterLevel(id, n)
		s.total += n - r.InFlight
	}
	r.InFlight = n
}

// PendingPrefill returns the replica's uncached prompt tokens not yet computed.
func (v *View) PendingPrefill(id ReplicaID) int { return v.replica(id).PendingPrefill }

// SetPendingPrefill sets the uncached prompt tokens; a negative number panics.
func (v *View) SetPendingPrefill(id ReplicaID, tokens int) {
	if tokens < 0 {
		panic(fmt.Sprintf("policies: replica %d would have %d tokens to prefill", id, tokens))
	}
	v.replica(id).PendingPrefill = tokens
}

// Report records the engine's hit rate (0..1) as read at the given time.
func (v *View) Report(at time.Duration, id ReplicaID, hitRate float64) {
	r := v.replica(id)
	r.HitRate, r.HitRateRead, r.Reported = hitRate, true, at
}

// Unread forgets what the engine reported, as after its death.
func (v *View) Unread(id ReplicaID) {
	r := v.replica(id)
	r.HitRate, r.HitRateRead, r.Reported = 0, false, 0
}

func (v *View) replica(id ReplicaID) *Replica {
	if !v.Known(id) {
		panic(fmt.Sprintf("policies: replica %d was never added", id))
	}
	return &v.snap.replicas[id]
}

// enterLevel and leaveLevel keep words only for levels that are not empty: a
// replica with 100,000 in flight must not cost 100,000 sets.
func (s *Snapshot) enterLevel(id ReplicaID, n int) {
	for len(s.levels) <= n {
		s.levels = append(s.levels, idSet{})
	}
	level := &s.levels[n]
	if level.size == 0 {
		if last := len(s.spare) - 1; last >= 0 {
			*level, s.spare = s.spare[last], s.spare[:last]
		}
		s.busy.add(n)
	}
	level.add(int(id))
}

func (s *Snapshot) leaveLevel(id ReplicaID, n int) {
	level := &s.levels[n]
	level.remove(int(id))
	if level.size == 0 {
		s.busy.remove(n)
		s.spare = append(s.spare, *level)
		*level = idSet{}
	}
}
