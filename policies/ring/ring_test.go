package ring

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func fleet(n int) []Member {
	var all []Member
	for i := range n {
		all = append(all, Member{ID: int32(i), Name: fmt.Sprintf("replica-%d", i)})
	}
	return all
}

// slowWalk sorts every point by its distance from the key and keeps each
// member's first.
func slowWalk(members []Member, virtualNodes int, key uint64) []int32 {
	type spot struct {
		distance uint64
		name     string
		id       int32
	}
	var spots []spot
	for _, m := range members {
		for i := range virtualNodes {
			at := Key(m.Name + "#" + strconv.Itoa(i))
			spots = append(spots, spot{at - key, m.Name, m.ID})
		}
	}
	slices.SortFunc(spots, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var order []int32
	for _, s := range spots {
		if !slices.Contains(order, s.id) {
			order = append(order, s.id)
		}
	}
	return order
}

func walk(r *Ring, key uint64) []int32 {
	var order []int32
	w := r.Walk(key)
	for id, ok := w.Next(); ok; id, ok = w.Next() {
		order = append(order, id)
	}
	return order
}

func TestRingEqualsTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{1, 2, 5, 40} {
		for _, virtual := range []int{1, 3, 128} {
			members := fleet(n)
			r := New(members, virtual)
			keys := []uint64{0, 1, ^uint64(0), r.points[0].at, r.points[0].at + 1, r.points[len(r.points)-1].at + 1}
			for range 30 {
				keys = append(keys, rng.Uint64())
			}
			for _, key := range keys {
				want := slowWalk(members, virtual, key)
				if got := walk(r, key); !slices.Equal(got, want) {
					t.Fatalf("%d members, key %x: walk %v, want %v", n, key, got, want)
				}
				if got, ok := r.Owner(key); !ok || got != want[0] {
					t.Fatalf("%d members, key %x: owner %d, want %d", n, key, got, want[0])
				}
			}
		}
	}
}

func TestOrderOfMembersDoesNotMatter(t *testing.T) {
	members := fleet(6)
	a := New(members, 64)
	slices.Reverse(members)
	b := New(members, 64)
	for i := range 1000 {
		key := Key(strconv.Itoa(i))
		if !slices.Equal(walk(a, key), walk(b, key)) {
			t.Fatalf("key %d walks differently when the members come in another order", i)
		}
	}
}

func TestLeavingMovesOnlyItsOwnKeys(t *testing.T) {
	before, after := New(fleet(5), 128), New(fleet(4), 128)
	for i := range 5000 {
		was, _ := before.Owner(Key(strconv.Itoa(i)))
		is, _ := after.Owner(Key(strconv.Itoa(i)))
		if was != 4 && was != is {
			t.Fatalf("key %d moved from %d to %d although only 4 left", i, was, is)
		}
	}
}

func TestKeysSpread(t *testing.T) {
	r := New(fleet(5), 128)
	counts := make([]int, 5)
	for i := range 50000 {
		id, _ := r.Owner(Key("session-" + strconv.Itoa(i)))
		counts[id]++
	}
	for id, n := range counts {
		if n < 7000 || n > 13000 {
			t.Errorf("replica %d owns %d of 50000 sessions, want 10000 within 30%%: %v", id, n, counts)
		}
	}
}

// The published router's placement, as measured: five replicas of a fleet whose
// fourth card was left out.
func TestMeasuredSessionsComeHome(t *testing.T) {
	var members []Member
	for _, id := range []int32{0, 1, 2, 4, 5} {
		members = append(members, Member{ID: id, Name: fmt.Sprintf("replica-%d", id)})
	}
	r := New(members, 128)
	file, err := os.ReadFile("testdata/measured_sessions.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(file)) {
		session, want, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || session == "#" {
			continue
		}
		count++
		if id, _ := r.Owner(Key(session)); fmt.Sprintf("replica-%d", id) != want {
			t.Errorf("session %s belongs to replica-%d, was served by %s", session, id, want)
		}
	}
	if count != 81 {
		t.Errorf("read %d sessions, want 81", count)
	}
}

func TestEmptyRing(t *testing.T) {
	r := New(nil, 128)
	if _, ok := r.Owner(5); ok {
		t.Error("an empty ring has an owner")
	}
	if got := walk(r, 5); got != nil {
		t.Errorf("an empty ring walks %v", got)
	}
}

func TestWalkAllocatesNothing(t *testing.T) {
	r := New(fleet(50), 128)
	key := uint64(0)
	if got := testing.AllocsPerRun(100, func() {
		key += 0x123456789abcdef
		w := r.Walk(key)
		for _, ok := w.Next(); ok; _, ok = w.Next() {
		}
	}); got != 0 {
		t.Errorf("%v allocations a walk, want 0", got)
	}
}

func TestOverlappingWalksPanic(t *testing.T) {
	r := New(fleet(3), 8)
	first := r.Walk(1)
	r.Walk(2)
	defer func() {
		if recover() == nil {
			t.Error("a walk went on after another started")
		}
	}()
	first.Next()
}

func Example() {
	r := New([]Member{{0, "gpu-a"}, {1, "gpu-b"}, {2, "gpu-c"}}, 128)
	key := Key("session 42")
	owner, _ := r.Owner(key)
	fmt.Println("owner:", owner)
	w := r.Walk(key)
	for id, ok := w.Next(); ok; id, ok = w.Next() {
		fmt.Println("visits", id)
	}
	// Output:
	// owner: 1
	// visits 1
	// visits 2
	// visits 0
}
