package policies

import (
	"slices"

	"kvfleet/policies/ring"
)

// A hashRing is a ring of the replicas in rotation, built again only when the
// rotation has changed.
type hashRing struct {
	virtualNodes int
	ring         *ring.Ring
	version      uint64
	of           *Snapshot
	members      []ring.Member
}

func (h *hashRing) at(s *Snapshot) *ring.Ring {
	if h.ring == nil || h.version != s.version || h.of != s {
		h.members = h.members[:0]
		for _, id := range s.order {
			h.members = append(h.members, ring.Member{ID: int32(id), Name: s.replicas[id].Name})
		}
		h.ring = ring.New(h.members, h.virtualNodes)
		h.version, h.of = s.version, s
	}
	return h.ring
}

// first returns the replica that owns a key, or the first after it on the ring
// that is not excluded; nil when there is none.
func (h *hashRing) first(s *Snapshot, key uint64, exclude []ReplicaID) *Replica {
	r := h.at(s)
	if len(exclude) == 0 {
		id, ok := r.Owner(key)
		if !ok {
			return nil
		}
		return &s.replicas[id]
	}
	walk := r.Walk(key)
	for id, ok := walk.Next(); ok; id, ok = walk.Next() {
		if !slices.Contains(exclude, ReplicaID(id)) {
			return &s.replicas[id]
		}
	}
	return nil
}

// deflected is the decision for a replica that took what belongs to another.
func deflected(r, owner *Replica, why Reason) Decision {
	d := placed(r, why)
	d.Declined, d.DeclinedInFlight = owner.ID, owner.InFlight
	return d
}
