package belief

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A twin is the index as its documentation states it, block by block.
type twin struct {
	ttl      int64
	capacity int
	now      int64
	held     map[uint64]map[int32]int64 // block -> replica -> last admitted
	order    []uint64                   // by use, least recent first
}

func newTwin(c Config) *twin {
	return &twin{ttl: int64(c.TTL), capacity: c.Blocks, held: map[uint64]map[int32]int64{}}
}

func (t *twin) admit(at time.Duration, chain []uint64, replica int32) {
	t.now = max(t.now, int64(at))
	if len(chain) > t.capacity {
		chain = chain[:t.capacity]
	}
	for _, hash := range slices.Backward(chain) {
		if i := slices.Index(t.order, hash); i >= 0 {
			t.order = slices.Delete(t.order, i, i+1)
		} else {
			if len(t.order) == t.capacity {
				delete(t.held, t.order[0])
				t.order = slices.Delete(t.order, 0, 1)
			}
			t.held[hash] = map[int32]int64{}
		}
		t.order = append(t.order, hash)
		t.held[hash][replica] = t.now
	}
}

func (t *twin) run(at time.Duration, chain []uint64, replica int32) int {
	t.now = max(t.now, int64(at))
	for i, hash := range chain {
		last, ok := t.held[hash][replica]
		if !ok || t.now-last > t.ttl {
			return i
		}
	}
	return len(chain)
}

func (t *twin) forget(replica int32) {
	for _, h := range t.held {
		delete(h, replica)
	}
}

// order lists the index's blocks by use, least recent first.
func (ix *Index) order() []uint64 {
	var all []uint64
	for seg := ix.oldest; seg >= 0; seg = ix.segments[seg].newer {
		b := ix.segments[seg].tail
		for range ix.segments[seg].length {
			all = append(all, ix.blocks[b].hash)
			b = ix.blocks[b].prev
		}
	}
	return all
}

// checkLinks verifies what the segments say of each other, and that the table
// holds what it should and nothing else.
func (ix *Index) checkLinks(t *testing.T) {
	t.Helper()
	known := 0
	children := make([]int32, len(ix.segments))
	for seg := ix.oldest; seg >= 0; seg = ix.segments[seg].newer {
		s := &ix.segments[seg]
		if s.length == 0 {
			t.Fatalf("segment %d is empty", seg)
		}
		start := int32(0)
		if s.parent >= 0 {
			children[s.parent]++
			start = ix.segments[s.parent].start + ix.segments[s.parent].length
		}
		if s.start != start {
			t.Fatalf("segment %d starts at %d, want %d", seg, s.start, start)
		}
		for depth := s.start; depth < s.start+s.length; depth++ {
			if depth == s.start || depth%stride == 0 {
				known++
			}
		}
		for i, h := range s.holders.list {
			if s.holders.find(h.replica) != i {
				t.Fatalf("segment %d does not find holder %d", seg, h.replica)
			}
		}
	}
	for seg := ix.oldest; seg >= 0; seg = ix.segments[seg].newer {
		if got := ix.segments[seg].children; got != children[seg] {
			t.Fatalf("segment %d counts %d children, has %d", seg, got, children[seg])
		}
	}
	if ix.table.used != known {
		t.Fatalf("%d blocks in the table, want %d", ix.table.used, known)
	}
}

// A tape turns bytes into small choices.
type tape struct {
	bytes []byte
	names map[string]uint64
}

func (t *tape) next(n int) int {
	if len(t.bytes) == 0 {
		return 0
	}
	b := t.bytes[0]
	t.bytes = t.bytes[1:]
	return int(b) % n
}

// chain makes a prompt of up to 38 blocks that shares heads with others. Its
// hashes are small consecutive numbers, one for each distinct head.
func (t *tape) chain() []uint64 {
	var key []byte
	var chain []uint64
	family, length, fork := t.next(3), t.next(39), t.next(39)
	for i := range length {
		turn := byte(family)
		if i >= fork {
			turn += 3
		}
		key = append(key, turn)
		h, ok := t.names[string(key)]
		if !ok {
			h = uint64(len(t.names) + 1)
			t.names[string(key)] = h
		}
		chain = append(chain, h)
	}
	return chain
}

func play(t *testing.T, bytes []byte) {
	tp := &tape{bytes: bytes, names: map[string]uint64{}}
	c := Config{TTL: time.Duration(1 + tp.next(12)), Blocks: 1 + tp.next(120)}
	replicas := []int32{3, 40}[tp.next(2)]
	ix, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	slow := newTwin(c)
	at := time.Duration(0)
	for step := 0; len(tp.bytes) > 0; step++ {
		chain := tp.chain()
		replica := int32(tp.next(int(replicas)))
		switch tp.next(8) {
		case 0:
			at += time.Duration(tp.next(6)) - 1 // now and then backwards
		case 1:
			ix.Forget(replica)
			slow.forget(replica)
		default:
			ix.Admit(at, ix.Find(chain), replica)
			slow.admit(at, chain, replica)
		}
		if got := ix.order(); !slices.Equal(got, slow.order) || ix.Len() != len(slow.order) {
			t.Fatalf("step %d: order of use %v (%d blocks), want %v", step, got, ix.Len(), slow.order)
		}
		ix.checkLinks(t)
		compare(t, fmt.Sprintf("step %d", step), ix, slow, at, tp.chain(), replicas, uint64(tp.next(256))*0x0101010101)
	}
}

// compare asks both for every replica's run and for the longest within a set.
func compare(t *testing.T, when string, ix *Index, slow *twin, at time.Duration, chain []uint64, replicas int32, in uint64) {
	t.Helper()
	place := ix.Find(chain)
	longest, holders := 0, uint64(0)
	for r := range replicas {
		want := slow.run(at, chain, r)
		if got := ix.Run(at, place, r); got != want {
			t.Fatalf("%s: replica %d holds %d blocks of %v, want %d", when, r, got, chain, want)
		}
		if in>>r&1 == 0 || want == 0 || want < longest {
			continue
		}
		if want > longest {
			longest, holders = want, 0
		}
		holders |= 1 << r
	}
	got := make([]uint64, 1)
	if run := ix.Longest(at, place, []uint64{in}, got); run != longest || got[0] != holders {
		t.Fatalf("%s: longest of %v in %b is %d by %b, want %d by %b", when, chain, in, run, got[0], longest, holders)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte{5, 9, 0, 1, 9, 4, 0, 2, 1, 14, 3, 1, 2, 0, 9, 9, 0, 0, 0, 4, 255})
	f.Fuzz(play)
}
