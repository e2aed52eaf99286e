package kvcache

import "math/bits"

// pageBits is log2 of how many consecutive hashes share one page of the table.
const (
	pageBits = 5
	pageSize = 1 << pageBits
	pageMask = pageSize - 1
)

// A table maps block hashes to slots. Hashes of one conversation are
// consecutive integers, so the table is an open-addressed directory of pages of
// 32 consecutive hashes: walking a prompt costs one probe per page and a
// sequential read per block.
type table struct {
	keys  []uint64 // page number + 1; 0 is empty
	page  []int32  // index into pages
	pages []page
	free  []int32 // pages not in use
	used  int
	shift uint
}

type page struct {
	slot  [pageSize]int32 // slot + 1; 0 is absent
	count int32
}

func newTable(capacity int) *table {
	size := 64
	for size < capacity/8 {
		size *= 2
	}
	t := &table{}
	t.resize(size)
	return t
}

func (t *table) resize(size int) {
	oldKeys, oldPage := t.keys, t.page
	t.keys = make([]uint64, size)
	t.page = make([]int32, size)
	t.shift = uint(64 - bits.TrailingZeros(uint(size)))
	for i, k := range oldKeys {
		if k != 0 {
			j := t.home(k)
			for t.keys[j] != 0 {
				j = (j + 1) & (size - 1)
			}
			t.keys[j], t.page[j] = k, oldPage[i]
		}
	}
}

func (t *table) home(key uint64) int {
	return int((key * 0x9e3779b97f4a7c15) >> t.shift)
}

// find returns the page that holds hash, or nil.
func (t *table) find(hash uint64) *page {
	key := hash>>pageBits + 1
	mask := len(t.keys) - 1
	for i := t.home(key); ; i = (i + 1) & mask {
		switch t.keys[i] {
		case key:
			return &t.pages[t.page[i]]
		case 0:
			return nil
		}
	}
}

// get returns the slot of hash, or -1.
func (t *table) get(hash uint64) int32 {
	p := t.find(hash)
	if p == nil {
		return -1
	}
	return p.slot[hash&pageMask] - 1
}

// set maps hash to slot, which may replace an earlier slot.
func (t *table) set(hash uint64, slot int32) {
	p := t.find(hash)
	if p == nil {
		p = t.addPage(hash>>pageBits + 1)
	}
	e := &p.slot[hash&pageMask]
	if *e == 0 {
		p.count++
	}
	*e = slot + 1
}

func (t *table) addPage(key uint64) *page {
	if (t.used+1)*2 > len(t.keys) {
		t.resize(len(t.keys) * 2)
	}
	t.used++
	var n int32
	if k := len(t.free); k > 0 {
		n = t.free[k-1]
		t.free = t.free[:k-1]
	} else {
		n = int32(len(t.pages))
		t.pages = append(t.pages, page{})
	}
	mask := len(t.keys) - 1
	i := t.home(key)
	for t.keys[i] != 0 {
		i = (i + 1) & mask
	}
	t.keys[i], t.page[i] = key, n
	return &t.pages[n]
}

// remove forgets hash, and its page once that is empty.
func (t *table) remove(hash uint64) {
	key := hash>>pageBits + 1
	mask := len(t.keys) - 1
	i := t.home(key)
	for t.keys[i] != key {
		if t.keys[i] == 0 {
			panic("kvcache: removing a hash that is not in the table")
		}
		i = (i + 1) & mask
	}
	p := &t.pages[t.page[i]]
	e := &p.slot[hash&pageMask]
	if *e == 0 {
		panic("kvcache: removing a hash that is not in the table")
	}
	*e = 0
	p.count--
	if p.count > 0 {
		return
	}
	t.free = append(t.free, t.page[i])
	t.used--
	t.backshift(i)
}

// backshift closes the hole at i, so that probing needs no tombstones.
func (t *table) backshift(i int) {
	mask := len(t.keys) - 1
	j := i
	for {
		t.keys[i] = 0
		for {
			j = (j + 1) & mask
			if t.keys[j] == 0 {
				return
			}
			home := t.home(t.keys[j])
			// The entry at j may move to i unless its home lies after i on the
			// way to j.
			if (j-home)&mask >= (j-i)&mask {
				break
			}
		}
		t.keys[i], t.page[i] = t.keys[j], t.page[j]
		i = j
	}
}
