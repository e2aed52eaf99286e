package policies

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// slowLeast is LeastLoadedIn by one look at every replica.
func slowLeast(s *Snapshot, after ReplicaID, allowed func(ReplicaID) bool) ReplicaID {
	least := -1
	for i := range s.Len() {
		if r := s.At(i); allowed(r.ID) && (least < 0 || r.InFlight < least) {
			least = r.InFlight
		}
	}
	first := NoReplica
	for i := range s.Len() {
		r := s.At(i)
		if !allowed(r.ID) || r.InFlight != least {
			continue
		}
		if r.ID > after {
			return r.ID
		}
		if first == NoReplica {
			first = r.ID
		}
	}
	return first
}

// checkSnapshot compares what the view keeps with what its replicas say.
func checkSnapshot(t *testing.T, v *View, in map[ReplicaID]bool) {
	t.Helper()
	s := v.Snapshot()
	total, least := 0, -1
	for i := range s.Len() {
		r := s.At(i)
		if i > 0 && s.At(i-1).ID >= r.ID {
			t.Fatalf("replica %d comes after %d", r.ID, s.At(i-1).ID)
		}
		total += r.InFlight
		if least < 0 || r.InFlight < least {
			least = r.InFlight
		}
	}
	for id, want := range in {
		if _, got := s.ByID(id); got != want {
			t.Fatalf("replica %d in rotation: %v, want %v", id, got, want)
		}
	}
	if s.TotalInFlight() != total || s.MinInFlight() != max(0, least) {
		t.Fatalf("total %d and least %d, want %d and %d", s.TotalInFlight(), s.MinInFlight(), total, least)
	}
}

func TestLeastLoadedEqualsTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, n := range []int{1, 5, 70, 300} {
		var v View
		s := v.Snapshot()
		in := map[ReplicaID]bool{}
		for range 3000 {
			id := ReplicaID(rng.IntN(n))
			switch {
			case !v.Known(id):
				v.Add(id, "x")
				in[id] = true
			case rng.IntN(20) == 0:
				v.Remove(id)
				in[id] = false
			case rng.IntN(8) == 0:
				v.Restore(id)
				in[id] = true
			case rng.IntN(30) == 0:
				v.SetInFlight(id, rng.IntN(5000))
			default:
				v.SetInFlight(id, rng.IntN(4))
			}
			checkSnapshot(t, &v, in)
			after := ReplicaID(rng.IntN(n+1) - 1)
			exclude := []ReplicaID{ReplicaID(rng.IntN(n)), ReplicaID(rng.IntN(n))}[:rng.IntN(3)]
			got, ok := s.LeastLoaded(after, exclude)
			want := slowLeast(s, after, func(id ReplicaID) bool { return !slices.Contains(exclude, id) })
			if got != want || ok != (want != NoReplica) {
				t.Fatalf("least loaded after %d without %v is %d, want %d", after, exclude, got, want)
			}
			set := make([]uint64, len(s.Rotation()))
			thin := rng.IntN(4)
			for w := range set {
				set[w] = rng.Uint64()
				for range thin {
					set[w] &= rng.Uint64()
				}
			}
			got, ok = s.LeastLoadedIn(after, set)
			want = slowLeast(s, after, func(id ReplicaID) bool { return set[id>>6]>>(id&63)&1 != 0 })
			if got != want || ok != (want != NoReplica) {
				t.Fatalf("least loaded after %d in %x is %d, want %d", after, set, got, want)
			}
		}
	}
}

func TestIDSetCrossesThousands(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	var s idSet
	members := map[int]bool{}
	for range 4000 {
		i := rng.IntN(20000)
		if members[i] {
			s.remove(i)
			delete(members, i)
		} else if len(members) < 30 {
			s.add(i)
			members[i] = true
		}
		from := rng.IntN(20000)
		want := -1
		for m := range members {
			if m >= from && (want < 0 || m < want) {
				want = m
			}
		}
		if got := s.next(from); got != want {
			t.Fatalf("the next of %v from %d is %d, want %d", members, from, got, want)
		}
		if s.size != len(members) || s.has(from) != members[from] {
			t.Fatalf("size %d, want %d", s.size, len(members))
		}
	}
}

func TestManyInFlightKeepFewSets(t *testing.T) {
	var v View
	v.Add(0, "a")
	for n := range 10000 {
		v.SetInFlight(0, n)
	}
	if got := len(v.snap.spare); got > 2 {
		t.Errorf("%d spare sets for one replica, want at most 2", got)
	}
}

func TestVersionChangesWithTheRotationOnly(t *testing.T) {
	var v View
	s := v.Snapshot()
	v.Add(0, "a")
	was := s.Version()
	v.SetInFlight(0, 3)
	v.Report(time.Second, 0, 0.5)
	v.Restore(0)
	if s.Version() != was {
		t.Error("the version changed although nobody left or came")
	}
	v.Remove(0)
	if s.Version() == was {
		t.Error("the version did not change when a replica left")
	}
}

func TestViewRefusesOurBugs(t *testing.T) {
	for name, misuse := range map[string]func(*View){
		"added twice":      func(v *View) { v.Add(0, "again") },
		"negative id":      func(v *View) { v.Add(-1, "x") },
		"never added":      func(v *View) { v.SetInFlight(7, 1) },
		"negative load":    func(v *View) { v.SetInFlight(0, -1) },
		"negative pending": func(v *View) { v.SetPendingPrefill(0, -1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			var v View
			v.Add(0, "a")
			misuse(&v)
		}()
	}
}
