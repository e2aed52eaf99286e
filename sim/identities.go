package sim

import (
	"slices"

	"kvfleet/traces/seed"
)

// identities turns a trace's block ids into what router and engine see: 64-byte
// prefix blocks and engine blocks that are equal exactly as far as the trace
// says the prompts are, to the trace's block.
type identities struct {
	engineBlock int     // tokens
	bytes       float64 // per token
	first       map[uint64]uint64
	next        uint64
	serial      uint64
}

func newIdentities(f *Fleet) *identities {
	return &identities{engineBlock: f.Engine.BlockSize, bytes: f.Router.BytesPerToken, first: map[uint64]uint64{}, next: 1}
}

// blocks appends the numbers of the prompt's whole engine blocks. A trace block
// owns as many consecutive numbers as engine blocks end in it; what lies beyond
// the trace's blocks is the prompt's own.
func (s *identities) blocks(dst []uint64, p *Prompt) []uint64 {
	whole := p.Tokens / s.engineBlock
	dst = slices.Grow(dst, whole)
	if n := len(p.Trace); n > 0 {
		per := (p.TraceBlock + s.engineBlock - 1) / s.engineBlock
		known := min(whole, n*p.TraceBlock/s.engineBlock)
		for i := 0; len(dst) < known; i++ {
			base, ok := s.first[p.Trace[i]]
			if !ok {
				base = s.next
				s.first[p.Trace[i]] = base
				s.next += uint64(per)
			}
			// Engine blocks that end inside trace block i.
			end := min(known, (i+1)*p.TraceBlock/s.engineBlock)
			for j := uint64(0); len(dst) < end; j++ {
				dst = append(dst, base+j)
			}
		}
	}
	for len(dst) < whole {
		dst = append(dst, s.next)
		s.next++
	}
	return dst
}

// prefix appends hashes for the prompt's whole 64-byte blocks. Where a trace block
// ends in them follows from the fleet's bytes per token, the same for every
// prompt: at each prompt's own ratio, equal tokens would lie at different bytes.
func (s *identities) prefix(dst []uint64, p *Prompt) []uint64 {
	s.serial++
	bytes := int(float64(p.Tokens) * s.bytes)
	if p.Bytes > 0 {
		bytes = p.Bytes
	}
	dst = slices.Grow(dst, bytes/64)
	own := seed.Mix(0x6b76, s.serial)
	ends := func(i int) int { return int(float64((i+1)*p.TraceBlock) * s.bytes) }
	known := ends(len(p.Trace) - 1) // bytes the trace speaks of
	i := 0
	for at := 64; at <= bytes; at += 64 {
		if at > known {
			dst = append(dst, mix(own, uint64(at)))
			continue
		}
		for at > ends(i) {
			i++
		}
		dst = append(dst, mix(p.Trace[i], uint64(at)))
	}
	return dst
}

func mix(a, b uint64) uint64 {
	h := (a ^ b*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	h = (h ^ h>>32) * 0xc4ceb9fe1a85ec53
	return h ^ h>>29
}
