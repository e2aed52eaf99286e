package ring

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
)

// A Member is one replica of a ring.
type Member struct {
	ID   int32
	Name string // what is hashed; should be unique
}

type point struct {
	at     uint64
	member int32 // index into members
}

// A Ring is a set of members on the circle.
type Ring struct {
	members []Member
	points  []point
	// starts[b] is the first point whose top bits are b or more: it cuts a look-up
	// down to the few points that share their top bits with the key.
	starts []int32
	shift  uint
	seen   []uint32 // by member: the walk that visited it last
	walk   uint32
}

// New places virtualNodes points for each member, at the hash of its name, '#'
// and the point's number. The order of members does not matter: points that
// coincide are ordered by name, then id.
func New(members []Member, virtualNodes int) *Ring {
	r := &Ring{members: slices.Clone(members), seen: make([]uint32, len(members))}
	r.points = make([]point, 0, len(members)*virtualNodes)
	var key []byte
	for m, member := range r.members {
		for i := range virtualNodes {
			key = append(append(key[:0], member.Name...), '#')
			key = strconv.AppendInt(key, int64(i), 10)
			r.points = append(r.points, point{at: Key(string(key)), member: int32(m)})
		}
	}
	slices.SortFunc(r.points, func(a, b point) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		ma, mb := r.members[a.member], r.members[b.member]
		return cmp.Or(cmp.Compare(ma.Name, mb.Name), cmp.Compare(ma.ID, mb.ID))
	})
	r.index()
	return r
}

func (r *Ring) index() {
	width := uint(bits.Len(uint(len(r.points))))
	r.shift = 64 - width
	r.starts = make([]int32, 1<<width+1)
	next := 0
	for b := range r.starts {
		for next < len(r.points) && r.points[next].at>>r.shift < uint64(b) {
			next++
		}
		r.starts[b] = int32(next)
	}
}

// Len is the number of members.
func (r *Ring) Len() int { return len(r.members) }

// Mix spreads a hash over the circle (the finalizer of splitmix64). Keys that
// are not already well mixed should pass through it.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Key places a name, such as a session id, on the circle: FNV-1a, spread by Mix,
// since FNV-1a alone puts short names that differ in their last bytes close
// together. It is the published router's placement: it puts all 81 sessions of
// rows_session_affinity_open6.csv (219 rows) on the replica that served them.
func Key(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return Mix(h)
}

// Owner returns the member a key belongs to; ok is false when the ring is empty.
func (r *Ring) Owner(key uint64) (id int32, ok bool) {
	if len(r.points) == 0 {
		return 0, false
	}
	return r.members[r.points[r.first(key)].member].ID, true
}

// first is the index of the first point at or after key, going round.
func (r *Ring) first(key uint64) int {
	b := key >> r.shift
	lo, hi := int(r.starts[b]), int(r.starts[b+1])
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); r.points[mid].at < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(r.points) {
		return 0
	}
	return lo
}

// A Walk visits every member once, in the order the circle meets them from a key
// on. Starting another walk on the same ring ends it.
type Walk struct {
	ring    *Ring
	next    int
	visited int
	number  uint32
}

// Walk starts a walk at a key.
func (r *Ring) Walk(key uint64) Walk {
	r.walk++
	if r.walk == 0 { // the marks of four billion walks ago would look fresh
		clear(r.seen)
		r.walk = 1
	}
	w := Walk{ring: r, number: r.walk}
	if len(r.points) > 0 {
		w.next = r.first(key)
	} else {
		w.visited = len(r.members)
	}
	return w
}

// Next returns the next member; ok is false after the last one.
func (w *Walk) Next() (id int32, ok bool) {
	r := w.ring
	if w.number != r.walk {
		panic("ring: a walk was continued after another one started")
	}
	if w.visited == len(r.members) {
		return 0, false
	}
	for {
		m := r.points[w.next].member
		if w.next++; w.next == len(r.points) {
			w.next = 0
		}
		if r.seen[m] != w.number {
			r.seen[m] = w.number
			w.visited++
			return r.members[m].ID, true
		}
	}
}
