package belief

import "math/bits"

// A table finds blocks by hash: open addressing with linear probing, at most
// half full, and no tombstones, since as many blocks leave as come.
type table struct {
	slots []slot
	used  int
	shift uint
}

type slot struct {
	hash  uint64
	block int32 // plus 1; 0 marks a free slot
}

func (t *table) reset(size int) {
	t.slots = make([]slot, size)
	t.shift = uint(64 - bits.TrailingZeros(uint(size)))
	t.used = 0
}

// home spreads hashes by a multiplication, because some callers' hashes are
// small consecutive numbers.
func (t *table) home(hash uint64) int {
	return int(hash * 0x9e3779b97f4a7c15 >> t.shift)
}

// find returns the block of a hash, or -1.
func (t *table) find(hash uint64) int32 {
	mask := len(t.slots) - 1
	for i := t.home(hash); ; i = (i + 1) & mask {
		s := &t.slots[i&mask]
		if s.block == 0 || s.hash == hash {
			return s.block - 1
		}
	}
}

// insert adds a hash that is not there, or a second block for one that is.
func (t *table) insert(hash uint64, block int32) {
	if t.used++; 2*t.used > len(t.slots) {
		old := t.slots
		t.reset(2 * len(old))
		for _, s := range old {
			if s.block != 0 {
				t.put(s)
				t.used++
			}
		}
		t.used++
	}
	t.put(slot{hash: hash, block: block + 1})
}

func (t *table) put(s slot) {
	mask := len(t.slots) - 1
	i := t.home(s.hash)
	for t.slots[i&mask].block != 0 {
		i = (i + 1) & mask
	}
	t.slots[i&mask] = s
}

// remove takes out a hash's block, which must be there, and moves up the entries
// that had to make way for it.
func (t *table) remove(hash uint64, block int32) {
	mask := len(t.slots) - 1
	i := t.home(hash)
	for t.slots[i&mask].block != block+1 {
		i = (i + 1) & mask
	}
	t.used--
	for j := (i + 1) & mask; ; j = (j + 1) & mask {
		s := t.slots[j&mask]
		if s.block == 0 {
			t.slots[i&mask] = slot{}
			return
		}
		// An entry may move back to the hole unless its home lies beyond it.
		if (j-t.home(s.hash))&mask >= (j-i)&mask {
			t.slots[i&mask] = s
			i = j
		}
	}
}
