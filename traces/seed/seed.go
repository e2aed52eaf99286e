package seed

import "math/rand/v2"

// A Seed is a run's one source of randomness. The zero Seed is a seed like any
// other.
type Seed uint64

// Stream returns a generator at the start of the stream named by role and ids.
// Equal seed, role and ids give equal draws, in every release of this package;
// any difference gives an unrelated stream.
func (s Seed) Stream(role string, ids ...int) *rand.Rand {
	hi, lo := s.words(role, ids)
	return rand.New(rand.NewPCG(hi, lo))
}

// Reset puts p at the start of the stream named by role and ids, which is what
// Stream returns, without allocating. It is for loops that open a stream per
// request.
func (s Seed) Reset(p *rand.PCG, role string, ids ...int) {
	p.Seed(s.words(role, ids))
}

// Value is the stream's name as a number: a stable 64-bit hash of seed, role and
// ids, for places that need one draw and no generator.
func (s Seed) Value(role string, ids ...int) uint64 {
	hi, lo := s.words(role, ids)
	return Mix(hi, lo)
}

func (s Seed) words(role string, ids []int) (hi, lo uint64) {
	h := fnvText(role)
	// Ending the role before the ids keeps ("a", 1) and ("a\x01…") apart.
	h = fnvWord(h, uint64(len(role)))
	for _, id := range ids {
		h = fnvWord(h, uint64(id))
	}
	h = fnvWord(h, uint64(len(ids)))
	// The role's hash is finalised before the seed meets it: otherwise nearby
	// seeds would start PCGs in nearby states.
	return finalise(uint64(s) ^ finalise(h)), finalise(h + finalise(uint64(s)+golden))
}

// Mix hashes its arguments, in order, to 64 well-mixed bits. It is stable across
// releases and platforms. Mix of nothing is a constant.
func Mix(values ...uint64) uint64 {
	h := uint64(golden) ^ uint64(len(values))
	for _, v := range values {
		h = finalise(h ^ finalise(v+golden))
	}
	return h
}

// Unit maps 64 mixed bits to [0, 1), on the grid of 2^-53.
func Unit(bits uint64) float64 { return float64(bits>>11) / (1 << 53) }

const (
	golden    = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

func fnvText(s string) uint64 {
	h := uint64(fnvOffset)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

func fnvWord(h, v uint64) uint64 {
	for range 8 {
		h = (h ^ v&0xff) * fnvPrime
		v >>= 8
	}
	return h
}

// finalise is the output function of SplitMix64 (Steele, Lea, Flood 2014): a
// bijection in which every input bit reaches every output bit.
func finalise(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
