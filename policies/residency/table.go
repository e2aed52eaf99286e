package residency

import "math/bits"

// An entry says which replicas of one group hold a block. A free slot has an
// empty mask.
type entry struct {
	hash  uint64
	mask  uint64
	group int32
	more  int32 // list of copies beyond the first: index plus 1
}

// A table finds entries by block and group: open addressing with linear probing,
// at most half full, and no tombstones, since as many blocks leave as come.
type table struct {
	slots []entry
	used  int
	shift uint
}

// home spreads hashes by a multiplication: a simulator's are small consecutive
// numbers, an engine's are any 64 bits.
func (t *table) home(hash uint64, group int32) int {
	return int((hash + uint64(group)<<40) * 0x9e3779b97f4a7c15 >> t.shift)
}

// find returns the slot of an entry, or -1.
func (t *table) find(hash uint64, group int32) int {
	if len(t.slots) == 0 {
		return -1
	}
	mask := len(t.slots) - 1
	for i := t.home(hash, group); ; i = (i + 1) & mask {
		e := &t.slots[i&mask]
		if e.mask == 0 {
			return -1
		}
		if e.hash == hash && e.group == group {
			return i & mask
		}
	}
}

// obtain returns the entry of a block, making it if need be; a new one has an
// empty mask, which the caller must fill before it calls again.
func (t *table) obtain(hash uint64, group int32) *entry {
	if 2*(t.used+1) > len(t.slots) {
		t.grow()
	}
	mask := len(t.slots) - 1
	for i := t.home(hash, group); ; i = (i + 1) & mask {
		e := &t.slots[i&mask]
		if e.mask == 0 {
			*e = entry{hash: hash, group: group}
			t.used++
			return e
		}
		if e.hash == hash && e.group == group {
			return e
		}
	}
}

func (t *table) grow() {
	old := t.slots
	size := max(1024, 2*len(old))
	t.slots = make([]entry, size)
	t.shift = uint(64 - bits.TrailingZeros(uint(size)))
	for i := range old {
		if e := &old[i]; e.mask != 0 {
			j := t.home(e.hash, e.group)
			for t.slots[j&(size-1)].mask != 0 {
				j++
			}
			t.slots[j&(size-1)] = *e
		}
	}
}

// removeAt frees a slot and moves up the entries that had to make way for it.
func (t *table) removeAt(i int) {
	mask := len(t.slots) - 1
	t.used--
	for j := (i + 1) & mask; ; j = (j + 1) & mask {
		e := &t.slots[j&mask]
		if e.mask == 0 {
			t.slots[i&mask] = entry{}
			return
		}
		// An entry may move back to the hole unless its home lies beyond it.
		if (j-t.home(e.hash, e.group))&mask >= (j-i)&mask {
			t.slots[i&mask] = *e
			i = j
		}
	}
}
