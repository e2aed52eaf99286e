package kvcache

import (
	"math"
	"math/bits"
	"time"
)

// Idle ages are counted in microseconds, in buckets of at most one part in 128
// of their value, so that a run of any length costs the same room.
const (
	idleBits    = 7
	idleBuckets = (64 - idleBits) << idleBits
)

// IdleAges counts how long cached blocks had been idle when they were evicted.
// The zero value is empty.
type IdleAges struct {
	counts []uint64
	n      uint64
}

// bucket is exact below 256 us; above, it keeps the leading idleBits+1 bits.
func bucket(us uint64) int {
	shift := max(0, bits.Len64(us)-idleBits-1)
	return shift<<idleBits + int(us>>shift)
}

// middle is the age in the middle of a bucket.
func middle(b int) time.Duration {
	shift := max(0, b>>idleBits-1)
	low := uint64(b-shift<<idleBits) << shift
	return time.Duration(low+(uint64(1)<<shift)/2) * time.Microsecond
}

// Add counts one eviction.
func (a *IdleAges) Add(age time.Duration) {
	if a.counts == nil {
		a.counts = make([]uint64, idleBuckets)
	}
	a.counts[bucket(uint64(max(0, age/time.Microsecond)))]++
	a.n++
}

// N is the number of evictions counted.
func (a *IdleAges) N() uint64 { return a.n }

// Quantile is the age that the share p of the evictions, 0 to 1, did not exceed,
// to within a hundredth of it; false when there were none.
func (a *IdleAges) Quantile(p float64) (time.Duration, bool) {
	if a.n == 0 {
		return 0, false
	}
	rank := max(1, uint64(math.Ceil(p*float64(a.n))))
	var seen uint64
	for b, c := range a.counts {
		if seen += c; seen >= rank {
			return middle(b), true
		}
	}
	panic("kvcache: idle ages do not add up")
}
