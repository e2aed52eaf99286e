package sim

import (
	"fmt"
	"testing"
)

// The published numbers: repetition, load level, working set and skew in their
// own digits. Open levels begin at 512.
func TestPublishedEpochs(t *testing.T) {
	for _, c := range []struct {
		driver            string
		load, ws, skew    float64
		repetition, epoch int
	}{
		{"closed", 32, 0.25, 1.4, 1, 1024 + 32 + 25000 + 140},
		{"closed", 32, 1, 0, 1, 1024 + 32 + 100000},
		{"closed", 32, 8, 1.4, 3, 3*1024 + 32 + 800000 + 140},
		{"closed", 64, 3, 1, 2, 2*1024 + 64 + 300000 + 100},
		{"open", 6, 1, 0, 1, 1024 + 512 + 6 + 100000},
		{"open", 12, 0.25, 1.4, 2, 2*1024 + 512 + 12 + 25000 + 140},
	} {
		if got := Epoch(c.driver, c.load, c.ws, c.skew, c.repetition); got != c.epoch {
			t.Errorf("%s %v, working set %v, skew %v, repetition %d: got %d, want %d", c.driver, c.load, c.ws, c.skew, c.repetition, got, c.epoch)
		}
	}
}

// No two cells of a grid have the same bytes: a prompt of one would be cached
// for the other. (Sums can coincide where loads differ by what skews differ by;
// see Epoch.)
func TestEpochsAreDistinct(t *testing.T) {
	cell := map[int]string{}
	workingSets := []float64{0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 0.333, 1.005, 2.0001}
	skews := []float64{0, 0.5, 1, 1.2, 1.4, 2, 0.125, 1.0001, 10, 31}
	add := func(driver string, load float64) {
		for _, ws := range workingSets {
			for _, skew := range skews {
				for rep := 1; rep <= 5; rep++ {
					name := fmt.Sprint(driver, " ", load, ", working set ", ws, ", skew ", skew, ", repetition ", rep)
					e := Epoch(driver, load, ws, skew, rep)
					if other, twice := cell[e]; twice {
						t.Fatalf("%s and %s both have epoch %d", name, other, e)
					}
					if e < 0 {
						t.Fatalf("%s: epoch %d", name, e)
					}
					cell[e] = name
				}
			}
		}
	}
	for _, load := range []float64{1, 8, 16, 32, 64, 512, 513, 1000, 1024, 5000} {
		add(DriverClosed, load)
	}
	for _, rate := range []float64{1, 2, 3, 6, 12, 24, 0.1, 0.5, 1.5, 5.6, 511.5, 512, 1024} {
		add(DriverOpen, rate)
	}
}
