package policies

import "math/bits"

// An idSet is a set of small non-negative numbers with fast "next member at or
// after": one bit each, and one bit for every word that is not empty, so that a
// set spread over thousands of numbers is crossed in a few steps.
type idSet struct {
	words []uint64
	top   []uint64
	size  int
}

func (s *idSet) grow(n int) {
	for len(s.words) < (n+63)/64 {
		s.words = append(s.words, 0)
	}
	for len(s.top) < (len(s.words)+63)/64 {
		s.top = append(s.top, 0)
	}
}

// add puts i in the set; i must not be a member.
func (s *idSet) add(i int) {
	s.grow(i + 1)
	w := i >> 6
	s.words[w] |= 1 << (i & 63)
	s.top[w>>6] |= 1 << (w & 63)
	s.size++
}

// remove takes the member i out.
func (s *idSet) remove(i int) {
	w := i >> 6
	s.words[w] &^= 1 << (i & 63)
	if s.words[w] == 0 {
		s.top[w>>6] &^= 1 << (w & 63)
	}
	s.size--
}

func (s *idSet) has(i int) bool {
	return i>>6 < len(s.words) && s.words[i>>6]>>(i&63)&1 != 0
}

// next returns the smallest member >= i, or -1. i must not be negative.
func (s *idSet) next(i int) int {
	w := i >> 6
	if w >= len(s.words) {
		return -1
	}
	if rest := s.words[w] >> (i & 63); rest != 0 {
		return i + bits.TrailingZeros64(rest)
	}
	w++
	for t := w >> 6; t < len(s.top); t++ {
		rest := s.top[t]
		if t == w>>6 {
			rest &= ^uint64(0) << (w & 63)
		}
		if rest != 0 {
			w = t<<6 + bits.TrailingZeros64(rest)
			return w<<6 + bits.TrailingZeros64(s.words[w])
		}
	}
	return -1
}

// after returns the member that follows i in cyclic order (i itself last), or -1
// when the set is empty. i may be -1.
func (s *idSet) after(i int) int {
	if m := s.next(i + 1); m >= 0 {
		return m
	}
	return s.next(0)
}
