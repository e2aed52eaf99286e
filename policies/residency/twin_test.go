package residency

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A twin counts copies in a map.
type twin map[int32]map[uint64]int

func (t twin) apply(replica int32, events []Event) {
	for _, e := range events {
		switch e.Kind {
		case Stored:
			if t[replica] == nil {
				t[replica] = map[uint64]int{}
			}
			for _, h := range e.Hashes {
				t[replica][h]++
			}
		case Removed:
			for _, h := range e.Hashes {
				if t[replica][h] > 0 {
					t[replica][h]--
				}
			}
		case Cleared:
			delete(t, replica)
		}
	}
}

func (t twin) run(replica int32, chain []uint64) int {
	for i, h := range chain {
		if t[replica][h] == 0 {
			return i
		}
	}
	return len(chain)
}

func play(t *testing.T, tape []byte) {
	next := func(n int) int {
		if len(tape) == 0 {
			return 0
		}
		b := tape[0]
		tape = tape[1:]
		return int(b) % n
	}
	// Ids lie in three groups of 64.
	ids := []int32{0, 1, 2, 63, 64, 130}
	spread := []uint64{1, 1 << 56, 0x9e3779b97f4a7c15}[next(3)]
	var x Index
	slow := twin{}
	hashes := func() []uint64 {
		from, n := next(30), next(8)
		var list []uint64
		for i := range n {
			list = append(list, uint64(from+i+1)*spread)
		}
		return list
	}
	for step := 0; len(tape) > 0; step++ {
		replica := ids[next(len(ids))]
		events := []Event{{Kind: Stored, Hashes: hashes()}, {Kind: Removed, Hashes: hashes()}}
		if next(40) == 0 {
			events = append(events, Event{Kind: Cleared})
		}
		x.Apply(replica, events)
		slow.apply(replica, events)
		compare(t, step, &x, slow, ids, hashes(), uint64(next(64)))
	}
}

func compare(t *testing.T, step int, x *Index, slow twin, ids []int32, chain []uint64, among uint64) {
	t.Helper()
	in, want := make([]uint64, 3), make([]uint64, 3)
	longest := 0
	for i, id := range ids {
		run := slow.run(id, chain)
		if got := x.Run(id, chain); got != run {
			t.Fatalf("step %d: replica %d holds %d of %v, want %d", step, id, got, chain, run)
		}
		for _, h := range chain {
			if got := x.Copies(id, h); got != slow[id][h] {
				t.Fatalf("step %d: replica %d has %d copies of %d, want %d", step, id, got, h, slow[id][h])
			}
		}
		if among>>i&1 == 0 {
			continue
		}
		in[id>>6] |= 1 << (id & 63)
		if run == 0 || run < longest {
			continue
		}
		if run > longest {
			longest = run
			clear(want)
		}
		want[id>>6] |= 1 << (id & 63)
	}
	got := []uint64{7, 7, 7}
	if run := x.Longest(chain, in, got); run != longest || !slices.Equal(got, want) {
		t.Fatalf("step %d: longest of %v is %d by %b, want %d by %b", step, chain, run, got, longest, want)
	}
	used := 0
	for i := range x.table.slots {
		if x.table.slots[i].mask != 0 {
			used++
		}
	}
	if used != x.table.used {
		t.Fatalf("step %d: %d entries counted, %d used", step, x.table.used, used)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte{1, 2, 3, 7, 0, 2, 1, 0, 7, 63})
	f.Fuzz(play)
}

func TestIndexEqualsTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 1000 {
		tape := make([]byte, 400)
		for i := range tape {
			tape[i] = byte(rng.Uint32())
		}
		play(t, tape)
	}
}

func TestRemovalOfTheUnheldIsCounted(t *testing.T) {
	var x Index
	x.Apply(0, []Event{{Kind: Stored, Hashes: []uint64{1}}, {Kind: Removed, Hashes: []uint64{1, 1, 2}}})
	if x.Unheld() != 2 {
		t.Errorf("got %d removals of blocks not held, want 2", x.Unheld())
	}
}

func TestHeadLostTailKept(t *testing.T) {
	var x Index
	chain := []uint64{1, 2, 3}
	x.Apply(0, []Event{{Kind: Stored, Hashes: chain}, {Kind: Removed, Hashes: chain[:1]}})
	if got := x.Run(0, chain); got != 0 {
		t.Errorf("a replica without the first block holds a run of %d, want 0", got)
	}
	if got := x.Blocks(0); got != 2 {
		t.Errorf("it holds %d blocks, want 2", got)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var x Index
	at := uint64(0)
	hashes := make([]uint64, 50)
	stored := []Event{{Kind: Stored}}
	removed := []Event{{Kind: Removed}}
	turn := func() {
		for i := range hashes {
			at++
			hashes[i] = at
		}
		stored[0].Hashes, removed[0].Hashes = hashes, hashes
		x.Apply(2, stored)
		x.Apply(2, stored)
		x.Apply(2, removed)
		x.Apply(2, removed)
	}
	turn()
	if got := testing.AllocsPerRun(200, turn); got != 0 {
		t.Errorf("%v allocations for each turn, want 0", got)
	}
}
