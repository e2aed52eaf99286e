package belief

// A holder is a replica and when it was last admitted.
type holder struct {
	at      int64
	replica int32
}

// holders is the list of a segment's holders, in no order. Up to manyHolders are
// searched; beyond that where[replica] is the replica's place in the list plus 1,
// so that a head shared by a thousand replicas costs no more than one shared by
// three.
type holders struct {
	list  []holder
	where []int32
	many  bool
	sweep int   // where the search for expired holders of a long list goes on
	last  int64 // no holder was admitted later
}

const (
	manyHolders = 16
	fewHolders  = 8
)

// find returns a replica's place in the list, or -1.
func (h *holders) find(replica int32) int {
	if h.many {
		if int(replica) < len(h.where) {
			return int(h.where[replica]) - 1
		}
		return -1
	}
	for i := range h.list {
		if h.list[i].replica == replica {
			return i
		}
	}
	return -1
}

// admit sets a replica's time and drops holders admitted before oldest: all of a
// short list, a few at a time of a long one.
func (h *holders) admit(now, oldest int64, replica int32) {
	h.last = now
	if h.many {
		for range 2 {
			if h.sweep >= len(h.list) {
				h.sweep = 0
			}
			if h.list[h.sweep].at < oldest {
				h.removeAt(h.sweep)
			} else {
				h.sweep++
			}
			if !h.many {
				break
			}
		}
	} else {
		for i := 0; i < len(h.list); {
			if h.list[i].at < oldest {
				h.removeAt(i)
			} else {
				i++
			}
		}
	}
	if i := h.find(replica); i >= 0 {
		h.list[i].at = now
		return
	}
	h.list = append(h.list, holder{at: now, replica: replica})
	if h.many {
		h.note(replica, len(h.list))
	} else if len(h.list) > manyHolders {
		h.many = true
		clear(h.where)
		for i := range h.list {
			h.note(h.list[i].replica, i+1)
		}
	}
}

func (h *holders) note(replica int32, place int) {
	for int(replica) >= len(h.where) {
		h.where = append(h.where, 0)
	}
	h.where[replica] = int32(place)
}

func (h *holders) removeAt(i int) {
	last := len(h.list) - 1
	if h.many {
		h.where[h.list[i].replica] = 0
		if i != last {
			h.where[h.list[last].replica] = int32(i + 1)
		}
	}
	h.list[i] = h.list[last]
	h.list = h.list[:last]
	if last <= fewHolders {
		h.many = false
	}
}

func (h *holders) drop(replica int32) {
	if i := h.find(replica); i >= 0 {
		h.removeAt(i)
	}
}

// mark puts the holders admitted since oldest that are in the set in into out,
// and reports whether there were any.
func (h *holders) mark(oldest int64, in, out []uint64) bool {
	if h.last < oldest {
		return false
	}
	found := false
	for i := range h.list {
		r := h.list[i].replica
		w, bit := int(r>>6), uint64(1)<<(r&63)
		if h.list[i].at >= oldest && w < len(in) && in[w]&bit != 0 {
			out[w] |= bit
			found = true
		}
	}
	return found
}

func (h *holders) alive(oldest int64, replica int32) bool {
	i := h.find(replica)
	return i >= 0 && h.list[i].at >= oldest
}

// only reports whether there is a single holder.
func (h *holders) only() bool { return len(h.list) == 1 }

func (h *holders) reset() {
	h.list, h.many, h.sweep = h.list[:0], false, 0
}

func (h *holders) copyFrom(o *holders) {
	h.list = append(h.list[:0], o.list...)
	h.last, h.sweep, h.many = o.last, 0, o.many
	if o.many {
		h.where = append(h.where[:0], o.where...)
	}
}
