package seed

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// The first draws are part of every published cell: a change here changes every
// workload.
func TestStreamIsStable(t *testing.T) {
	got := [3]uint64{
		Seed(1).Stream("arrivals").Uint64(),
		Seed(1).Stream("visit", 3, 7).Uint64(),
		Mix(1, 2, 3),
	}
	want := [3]uint64{0x82c45fc1030f2874, 0x64ea628f375e6ea7, 0x5f7ad976ec533887}
	if got != want {
		t.Errorf("got %#x, want %#x", got, want)
	}
}

func TestStreamsAreApart(t *testing.T) {
	seen := map[uint64]string{}
	add := func(name string, v uint64) {
		t.Helper()
		if other, ok := seen[v]; ok {
			t.Errorf("%s draws what %s draws", name, other)
		}
		seen[v] = name
	}
	add("none", Seed(1).Stream("a").Uint64())
	add("other seed", Seed(2).Stream("a").Uint64())
	add("other role", Seed(1).Stream("b").Uint64())
	add("id 0", Seed(1).Stream("a", 0).Uint64())
	add("ids 0 0", Seed(1).Stream("a", 0, 0).Uint64())
	add("ids 1 2", Seed(1).Stream("a", 1, 2).Uint64())
	add("ids 2 1", Seed(1).Stream("a", 2, 1).Uint64())
	add("id -1", Seed(1).Stream("a", -1).Uint64())
	add("role with id bytes", Seed(1).Stream("a\x01").Uint64())
	add("seed 0", Seed(0).Stream("a").Uint64())
}

func TestResetEqualsStream(t *testing.T) {
	var p rand.PCG
	for id := range 20 {
		Seed(9).Reset(&p, "visit", id)
		if got, want := p.Uint64(), Seed(9).Stream("visit", id).Uint64(); got != want {
			t.Errorf("stream %d: got %#x, want %#x", id, got, want)
		}
	}
	if got := testing.AllocsPerRun(50, func() { Seed(9).Reset(&p, "visit", 1, 2) }); got != 0 {
		t.Errorf("Reset allocates %v times, want 0", got)
	}
}

// First draws of neighbouring streams must look independent: their mean is a
// half, and neighbours differ in half of their bits.
func TestNeighbouringStreamsLookIndependent(t *testing.T) {
	const n = 20000
	var sum, flipped float64
	last := Seed(7).Stream("user", 0).Uint64()
	for id := 1; id <= n; id++ {
		v := Seed(7).Stream("user", id).Uint64()
		sum += Unit(v)
		flipped += float64(bits.OnesCount64(v ^ last))
		last = v
	}
	if got := sum / n; math.Abs(got-0.5) > 0.01 {
		t.Errorf("mean of first draws: got %v, want 0.5 within 0.01", got)
	}
	if got := flipped / n; math.Abs(got-32) > 0.2 {
		t.Errorf("bits changed between neighbours: got %v, want 32 within 0.2", got)
	}
}

func TestMixOrderAndLengthMatter(t *testing.T) {
	for _, pair := range [][2]uint64{
		{Mix(1, 2), Mix(2, 1)}, {Mix(0), Mix(0, 0)}, {Mix(), Mix(0)}, {Mix(1), Mix(2)},
	} {
		if pair[0] == pair[1] {
			t.Errorf("got equal mixes %#x, want different ones", pair[0])
		}
	}
}

func BenchmarkReset(b *testing.B) {
	var p rand.PCG
	for i := range b.N {
		Seed(1).Reset(&p, "visit", i, 3)
	}
}
