package policies

import (
	"math/bits"
	"slices"
	"time"
)

// A Replica is one replica of a snapshot: what the router counts of it exactly,
// and what its engine reported, with the report's age.
type Replica struct {
	ID   ReplicaID
	Name string // as configured; what rings hash
	// InFlight counts requests dispatched and not yet finished. The router
	// counts it itself, so it is exact.
	InFlight int
	// PendingPrefill is the prompt tokens of in-flight requests that have not
	// produced a first token, less what they were predicted to find cached.
	PendingPrefill int
	// HitRate is the engine's own prefix-cache hit rate over a moving window,
	// 0..1; it is meaningful only if HitRateRead.
	HitRate     float64
	HitRateRead bool
	// Reported is when the engine's signals were last read; the zero time with
	// HitRateRead false means never.
	Reported time.Duration
}

// A Snapshot is a read-only view of the replicas in rotation, in the fixed order
// of their ids. It is kept up to date by its [View] and never rebuilt, so it is
// valid during one Pick only: nothing of it may be kept.
type Snapshot struct {
	replicas []Replica // by id, in rotation or not
	known    idSet
	rotation idSet
	order    []ReplicaID // the rotation, ascending

	// The rotation by inflight: levels[n] holds the replicas with n in flight,
	// busy the n whose level is not empty.
	levels []idSet
	busy   idSet
	spare  []idSet

	total   int
	version uint64
}

// Len is the number of replicas in rotation.
func (s *Snapshot) Len() int { return len(s.order) }

// At returns the i-th replica in rotation, 0 <= i < Len().
func (s *Snapshot) At(i int) *Replica { return &s.replicas[s.order[i]] }

// ByID returns a replica in rotation by its id.
func (s *Snapshot) ByID(id ReplicaID) (*Replica, bool) {
	if id < 0 || !s.rotation.has(int(id)) {
		return nil, false
	}
	return &s.replicas[id], true
}

// Version changes whenever a replica enters or leaves the rotation.
func (s *Snapshot) Version() uint64 { return s.version }

// TotalInFlight is the sum of InFlight over the rotation.
func (s *Snapshot) TotalInFlight() int { return s.total }

// MinInFlight is the smallest InFlight in rotation; 0 when it is empty.
func (s *Snapshot) MinInFlight() int { return max(0, s.busy.next(0)) }

// MeanInFlight is the mean InFlight over the rotation; 0 when it is empty.
func (s *Snapshot) MeanInFlight() float64 {
	if len(s.order) == 0 {
		return 0
	}
	return float64(s.total) / float64(len(s.order))
}

// Rotation is the set of ids in rotation: bit id%64 of word id/64. It is never
// written to by callers.
func (s *Snapshot) Rotation() []uint64 { return s.rotation.words }

// Next returns the replica in rotation that follows after in cyclic order and is
// not excluded; after itself comes last, and NoReplica precedes all.
func (s *Snapshot) Next(after ReplicaID, exclude []ReplicaID) (ReplicaID, bool) {
	return cycle(&s.rotation, after, exclude)
}

// LeastLoaded returns, among the replicas with the least in flight that are not
// excluded, the one that follows after in cyclic order. A caller that passes
// its last answer as after thereby rotates ties.
func (s *Snapshot) LeastLoaded(after ReplicaID, exclude []ReplicaID) (ReplicaID, bool) {
	for n := s.busy.next(0); n >= 0; n = s.busy.next(n + 1) {
		if id, ok := cycle(&s.levels[n], after, exclude); ok {
			return id, true
		}
	}
	return NoReplica, false
}

// LeastLoadedIn is LeastLoaded over the replicas of set, laid out as Rotation
// is; members out of rotation are passed over.
func (s *Snapshot) LeastLoadedIn(after ReplicaID, set []uint64) (ReplicaID, bool) {
	set = set[:min(len(set), len(s.rotation.words))]
	if few, ok := s.leastOfFew(after, set); ok {
		return few, few != NoReplica
	}
	for n := s.busy.next(0); n >= 0; n = s.busy.next(n + 1) {
		if id := nextCommon(s.levels[n].words, set, int(after)); id >= 0 {
			return ReplicaID(id), true
		}
	}
	return NoReplica, false
}

// leastOfFew answers LeastLoadedIn by looking at each member; ok is false when
// there are too many for that.
func (s *Snapshot) leastOfFew(after ReplicaID, set []uint64) (best ReplicaID, ok bool) {
	count := 0
	best = NoReplica
	least, wrapped := 0, false
	for w, word := range set {
		word &= s.rotation.words[w]
		if count += bits.OnesCount64(word); count > 8 {
			return NoReplica, false
		}
		for ; word != 0; word &= word - 1 {
			id := ReplicaID(w<<6 + bits.TrailingZeros64(word))
			n := s.replicas[id].InFlight
			// Members up to after come round only once those beyond it have.
			if best == NoReplica || n < least || n == least && wrapped && id > after {
				best, least, wrapped = id, n, id <= after
			}
		}
	}
	return best, true
}

// nextCommon returns the member of both a and b that follows after in cyclic
// order, or -1. b is no longer than the id space of a's owner; a may be shorter.
func nextCommon(a, b []uint64, after int) int {
	n := min(len(a), len(b))
	start := after + 1
	for w := start >> 6; w < n; w++ {
		word := a[w] & b[w]
		if w == start>>6 {
			word &= ^uint64(0) << (start & 63)
		}
		if word != 0 {
			return w<<6 + bits.TrailingZeros64(word)
		}
	}
	for w := 0; w < n && w<<6 <= after; w++ {
		if word := a[w] & b[w]; word != 0 {
			return w<<6 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

func cycle(set *idSet, after ReplicaID, exclude []ReplicaID) (ReplicaID, bool) {
	at := int(after)
	for range set.size {
		at = set.after(at)
		if id := ReplicaID(at); !slices.Contains(exclude, id) {
			return id, true
		}
	}
	return NoReplica, false
}
