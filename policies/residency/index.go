package residency

import "math/bits"

// A Kind says what happened to an engine's blocks.
type Kind uint8

const (
	// Stored: one more copy of each block is resident.
	Stored Kind = iota
	// Removed: one copy fewer.
	Removed
	// Cleared: nothing is resident any more.
	Cleared
)

// An Event is one entry of an engine's announcements. Hashes are the chained
// hashes of engine blocks, in whatever numbering the prompts use that are looked
// up; the index keeps no reference to the slice. Cleared has none.
type Event struct {
	Kind   Kind
	Hashes []uint64
}

// An Index counts, for each replica and block, the copies announced. The zero
// Index is empty and ready.
//
// Replicas come in groups of 64. An entry stands for a block in one group and
// has a bit for each replica; the rare copies beyond a replica's first are
// counted apart.
type Index struct {
	table  table
	copies []copies
	free   []int32
	groups int
	unheld uint64
}

// copies is a replica's number of copies of a block beyond the first, in the
// list of an entry.
type copies struct {
	replica int32
	more    uint32
	next    int32 // index plus 1; 0 ends the list
}

// Apply takes one replica's events, in the order announced. A removal of a block
// the replica does not hold is counted (see Unheld) and changes nothing.
func (x *Index) Apply(replica int32, events []Event) {
	group := int(replica >> 6)
	if group >= x.groups {
		x.groups = group + 1
	}
	for _, e := range events {
		switch e.Kind {
		case Stored:
			for _, h := range e.Hashes {
				x.store(replica, h)
			}
		case Removed:
			for _, h := range e.Hashes {
				x.remove(replica, h)
			}
		case Cleared:
			x.Forget(replica)
		}
	}
}

func (x *Index) store(replica int32, hash uint64) {
	bit := uint64(1) << (replica & 63)
	e := x.table.obtain(hash, replica>>6)
	if e.mask&bit == 0 {
		e.mask |= bit
		return
	}
	for i := e.more; i != 0; i = x.copies[i-1].next {
		if c := &x.copies[i-1]; c.replica == replica {
			c.more++
			return
		}
	}
	e.more = x.newCopies(copies{replica: replica, more: 1, next: e.more})
}

func (x *Index) remove(replica int32, hash uint64) {
	bit := uint64(1) << (replica & 63)
	at := x.table.find(hash, replica>>6)
	if at < 0 || x.table.slots[at].mask&bit == 0 {
		x.unheld++
		return
	}
	e := &x.table.slots[at]
	for link := &e.more; *link != 0; {
		i := *link
		c := &x.copies[i-1]
		if c.replica != replica {
			link = &c.next
			continue
		}
		if c.more--; c.more == 0 {
			*link = c.next
			x.free = append(x.free, i)
		}
		return
	}
	if e.mask &^= bit; e.mask == 0 {
		x.table.removeAt(at)
	}
}

// Forget drops everything announced by a replica.
func (x *Index) Forget(replica int32) {
	group, bit := replica>>6, uint64(1)<<(replica&63)
	old := x.table
	x.table = table{}
	for i := range old.slots {
		e := old.slots[i]
		if e.mask == 0 {
			continue
		}
		if e.group == group && e.mask&bit != 0 {
			x.dropCopies(&e, replica)
			if e.mask &^= bit; e.mask == 0 {
				continue
			}
		}
		*x.table.obtain(e.hash, e.group) = e
	}
}

func (x *Index) dropCopies(e *entry, replica int32) {
	for link := &e.more; *link != 0; {
		i := *link
		c := &x.copies[i-1]
		if c.replica == replica {
			*link = c.next
			x.free = append(x.free, i)
			return
		}
		link = &c.next
	}
}

func (x *Index) newCopies(c copies) int32 {
	if last := len(x.free) - 1; last >= 0 {
		i := x.free[last]
		x.free = x.free[:last]
		x.copies[i-1] = c
		return i
	}
	x.copies = append(x.copies, c)
	return int32(len(x.copies))
}

// Unheld is how many removals named a block their replica was not known to hold:
// a sign of lost or doubled events.
func (x *Index) Unheld() uint64 { return x.unheld }

// Copies is how many copies of a block a replica has announced and not removed.
func (x *Index) Copies(replica int32, hash uint64) int {
	at := x.table.find(hash, replica>>6)
	if at < 0 || x.table.slots[at].mask>>(replica&63)&1 == 0 {
		return 0
	}
	for i := x.table.slots[at].more; i != 0; i = x.copies[i-1].next {
		if x.copies[i-1].replica == replica {
			return 1 + int(x.copies[i-1].more)
		}
	}
	return 1
}

// Longest returns the longest leading run of the chain that one replica of the
// set in holds, in blocks, and marks the replicas that hold so many in holders.
// Sets are bit id%64 of word id/64; holders is overwritten and must be as long
// as in.
func (x *Index) Longest(chain, in, holders []uint64) int {
	clear(holders)
	longest := 0
	for g := range min(len(in), x.groups) {
		if in[g] == 0 {
			continue
		}
		run, mask := x.groupRun(chain, int32(g), in[g])
		if run == 0 || run < longest {
			continue
		}
		if run > longest {
			clear(holders)
			longest = run
		}
		holders[g] = mask
	}
	return longest
}

// groupRun is the longest run within a group, and who holds it.
func (x *Index) groupRun(chain []uint64, group int32, mask uint64) (int, uint64) {
	for i, h := range chain {
		at := x.table.find(h, group)
		if at < 0 {
			return i, mask
		}
		still := mask & x.table.slots[at].mask
		if still == 0 {
			return i, mask
		}
		mask = still
	}
	return len(chain), mask
}

// Run returns the number of leading blocks of the chain that a replica holds.
func (x *Index) Run(replica int32, chain []uint64) int {
	run, _ := x.groupRun(chain, replica>>6, 1<<(replica&63))
	return run
}

// Blocks is the number of distinct blocks a replica holds. It looks at every
// entry: it is for tests and state dumps.
func (x *Index) Blocks(replica int32) int {
	n := 0
	for i := range x.table.slots {
		if e := &x.table.slots[i]; e.group == replica>>6 {
			n += bits.OnesCount64(e.mask & (1 << (replica & 63)))
		}
	}
	return n
}
