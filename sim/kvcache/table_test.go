package kvcache

import (
	"math/rand/v2"
	"testing"
)

// TestTableEqualsMap compares the table with a map under random writes and
// removals, over hashes dense enough to share pages and pages dense enough to
// collide.
func TestTableEqualsMap(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		tb, want := newTable(0), map[uint64]int32{}
		hashes := make([]uint64, 1500)
		for i := range hashes {
			switch seed % 4 {
			case 0: // runs of consecutive hashes
				hashes[i] = 1 + uint64(i)
			case 1: // one hash a page
				hashes[i] = uint64(i) << pageBits
			case 2: // anything
				hashes[i] = rng.Uint64() >> 1
			case 3: // one home for many pages
				hashes[i] = crowd(tb, rng) << pageBits
			}
		}
		live := 1 + rng.IntN(len(hashes))
		for n := range 6000 {
			h := hashes[rng.IntN(live)]
			if _, ok := want[h]; ok && rng.IntN(2) == 0 {
				tb.remove(h)
				delete(want, h)
			} else {
				slot := int32(1 + n)
				tb.set(h, slot)
				want[h] = slot
			}
			if n%100 == 0 {
				compareTable(t, tb, want, hashes)
			}
		}
		for h := range want {
			tb.remove(h)
		}
		if tb.used != 0 || len(tb.free) != len(tb.pages) {
			t.Errorf("seed %d: an empty table uses %d pages and has %d of %d free", seed, tb.used, len(tb.free), len(tb.pages))
		}
		for i, k := range tb.keys {
			if k != 0 {
				t.Errorf("seed %d: an empty table has key %d at %d", seed, k, i)
			}
		}
	}
}

// crowd returns a page number whose home is one of the last two places of a
// small table, so that probing wraps around.
func crowd(tb *table, rng *rand.Rand) uint64 {
	for {
		key := rng.Uint64() >> (1 + pageBits)
		if tb.home(key+1) >= len(tb.keys)-2 {
			return key
		}
	}
}

func compareTable(t *testing.T, tb *table, want map[uint64]int32, hashes []uint64) {
	t.Helper()
	for _, h := range hashes {
		slot, ok := want[h]
		if !ok {
			slot = -1
		}
		if got := tb.get(h); got != slot {
			t.Fatalf("hash %x: got slot %d, want %d", h, got, slot)
		}
	}
}

func TestTableRefuses(t *testing.T) {
	tb := newTable(0)
	tb.set(64, 1)
	for _, h := range []uint64{65, 640} { // on the page, and on none
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("removing absent hash %d: no panic, want one", h)
				}
			}()
			tb.remove(h)
		}()
	}
}
