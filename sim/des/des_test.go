package des

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A ticket is an event as the twin orders it.
type ticket struct {
	at   time.Duration
	rank Rank
	n    int64 // insertion
}

type tickets []ticket

func (q tickets) Len() int      { return len(q) }
func (q tickets) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q tickets) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.at != b.at {
		return a.at < b.at
	}
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return a.n < b.n
}
func (q *tickets) Push(x any) { *q = append(*q, x.(ticket)) }
func (q *tickets) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	*q = (*q)[:last]
	return t
}

// A recorder schedules more events as it is fired.
type recorder struct {
	t     *testing.T
	l     *Loop
	twin  tickets
	n     int64
	rng   *rand.Rand
	more  int
	fired int
}

func (r *recorder) add() {
	at := r.l.Now() + time.Duration(r.rng.IntN(6))
	rank := Rank(r.rng.IntN(3))
	if r.rng.IntN(20) == 0 {
		rank = 255
	}
	r.n++
	r.l.At(at, rank, r, r.n)
	heap.Push(&r.twin, ticket{at, rank, r.n})
}

func (r *recorder) Fire(at time.Duration, arg int64) {
	want := heap.Pop(&r.twin).(ticket)
	if at != want.at || arg != want.n || r.l.Now() != at {
		r.t.Errorf("got event %d at %v (now %v), want %d at %v", arg, at, r.l.Now(), want.n, want.at)
	}
	r.fired++
	for range r.rng.IntN(4) {
		if r.more--; r.more >= 0 {
			r.add()
		}
	}
}

func TestOrderEqualsTwin(t *testing.T) {
	for seed := range uint64(50) {
		r := &recorder{t: t, l: &Loop{}, rng: rand.New(rand.NewPCG(seed, 3)), more: 2000}
		for range 1 + r.rng.IntN(200) {
			r.add()
		}
		for r.l.Len() > 0 {
			if at, ok := r.l.Next(); !ok || at != r.twin[0].at {
				t.Fatalf("got next %v %v, want %v", at, ok, r.twin[0].at)
			}
			if !r.l.Step() {
				t.Fatal("no step with events waiting")
			}
			if r.l.Len() != len(r.twin) {
				t.Fatalf("got %d waiting, want %d", r.l.Len(), len(r.twin))
			}
		}
		if r.fired != int(r.n) || r.l.Fired() != uint64(r.n) {
			t.Errorf("got %d fired, counted %d, want %d", r.fired, r.l.Fired(), r.n)
		}
		if _, ok := r.l.Next(); ok || r.l.Step() {
			t.Error("an empty loop has a next event")
		}
	}
}

type list struct{ got []int64 }

func (l *list) Fire(_ time.Duration, arg int64) { l.got = append(l.got, arg) }

func TestOrder(t *testing.T) {
	var l Loop
	h := &list{}
	l.At(2, 0, h, 5)
	l.At(1, 200, h, 4)
	l.At(1, 1, h, 2)
	l.At(1, 1, h, 3)
	l.At(1, 0, h, 1)
	for l.Step() {
	}
	if want := []int64{1, 2, 3, 4, 5}; !slices.Equal(h.got, want) {
		t.Errorf("got %v, want %v: by time, then rank, then insertion", h.got, want)
	}
}

func TestThePastPanics(t *testing.T) {
	var l Loop
	h := &list{}
	l.At(10, 0, h, 1)
	l.Step()
	l.At(10, 0, h, 2) // now is not the past
	defer func() {
		if recover() == nil {
			t.Error("scheduling into the past: no panic, want one")
		}
	}()
	l.At(9, 0, h, 3)
}

func BenchmarkLoop(b *testing.B) {
	var l Loop
	h := &list{}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		l.At(time.Duration(rng.IntN(1000)), 0, h, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		h.got = h.got[:0]
		l.Step()
		l.At(l.Now()+time.Duration(rng.IntN(1000)), 0, h, 0)
	}
}
