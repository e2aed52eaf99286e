package belief

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestIndexEqualsTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1500 {
		bytes := make([]byte, 400)
		for i := range bytes {
			bytes[i] = byte(rng.Uint32())
		}
		play(t, bytes)
	}
}

func TestConfigNamesBothFaults(t *testing.T) {
	_, err := New(Config{})
	if err == nil || !strings.Contains(err.Error(), "TTL") || !strings.Contains(err.Error(), "capacity") {
		t.Fatalf("got %v, want both bounds refused", err)
	}
}

func TestBeliefLastsThroughItsTTL(t *testing.T) {
	ix, _ := New(Config{TTL: time.Second, Blocks: 10})
	chain := []uint64{7, 8}
	ix.Admit(0, ix.Find(chain), 0)
	if got := ix.Run(time.Second, ix.Find(chain), 0); got != 2 {
		t.Errorf("after exactly the TTL the run is %d, want 2", got)
	}
	if got := ix.Run(time.Second+1, ix.Find(chain), 0); got != 0 {
		t.Errorf("after more than the TTL the run is %d, want 0", got)
	}
}

func TestStalePlacePanics(t *testing.T) {
	ix, _ := New(Config{TTL: time.Second, Blocks: 10})
	place := ix.Find([]uint64{1})
	ix.Admit(0, place, 0)
	defer func() {
		if recover() == nil {
			t.Error("a place used after an admission did not panic")
		}
	}()
	ix.Run(0, place, 0)
}

// Prompts of unlike depth that share a hash can only come of a collision. They
// may be misplaced; they must not break the index.
func TestCollidingHashesDoNoHarm(t *testing.T) {
	ix, _ := New(Config{TTL: time.Second, Blocks: 8})
	rng := rand.New(rand.NewPCG(2, 2))
	for range 5000 {
		chain := make([]uint64, 1+rng.IntN(10))
		for i := range chain {
			chain[i] = uint64(rng.IntN(6))
		}
		ix.Admit(0, ix.Find(chain), int32(rng.IntN(3)))
		ix.checkLinks(t)
		if got := len(ix.order()); got != ix.Len() || got > 8 {
			t.Fatalf("%d blocks listed, %d counted, of at most 8", got, ix.Len())
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	ix, _ := New(Config{TTL: time.Second, Blocks: 2000})
	at := time.Duration(0)
	next := uint64(0)
	chain := make([]uint64, 100)
	turn := func() {
		at += 10 * time.Millisecond
		for i := range chain {
			next++
			chain[i] = next
		}
		ix.Admit(at, ix.Find(chain[:60]), int32(next%5))
		ix.Admit(at, ix.Find(chain), int32(next%7))
	}
	for range 200 {
		turn()
	}
	if got := testing.AllocsPerRun(200, turn); got != 0 {
		t.Errorf("%v allocations for each pair of admissions, want 0", got)
	}
}
