package workload

import "math/rand/v2"

// The published generator decides everything by hashes of (seed, what, who), so
// that a workload is the same bytes wherever it is made. The numbers below are
// part of that definition; tests hold them against the released rows, whose
// sessions and system prompts they reproduce without exception.
const (
	tagDraw uint64 = iota + 1
	tagTurn
	tagAncestor
	tagSystem
	tagSystemPick
	tagBranchPick
	tagFamily
	roleUser
	roleAssistant
)

// fold hashes the seed and what follows it to 64 bits: murmur3's finalizer,
// folded over the values.
func (m *MultiTurn) fold(values ...uint64) uint64 {
	h := step(golden, uint64(m.Seed))
	for _, v := range values {
		h = step(h, v)
	}
	return h
}

const golden = 0x9e3779b97f4a7c15

func step(h, v uint64) uint64 {
	h = (h ^ v) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>29
}

// picked decides a coin of the given probability from a hash, on a grid of 2^-20.
func picked(h uint64, share float64) bool {
	const grid = 1 << 20
	return share > 0 && (share >= 1 || h%grid < uint64(share*grid))
}

// System reports whether a session starts with the shared system prompt. It
// depends on the session alone, as does Family.
func (m *MultiTurn) System(session int) bool {
	return picked(m.fold(tagSystemPick, uint64(session)), m.SystemShare)
}

// Family returns the session's family, 0..BranchFamilies-1, or -1.
func (m *MultiTurn) Family(session int) int {
	if !picked(m.fold(tagBranchPick, uint64(session)), m.BranchShare) {
		return -1
	}
	return int(m.fold(tagFamily, uint64(session)) % uint64(m.BranchFamilies))
}

// visit is the uniform deviate that decides a user's v-th session.
func (m *MultiTurn) visit(user, v int) float64 {
	pcg := rand.NewPCG(m.fold(tagDraw, uint64(user)), uint64(v)+1)
	return float64(pcg.Uint64()<<11>>11) / (1 << 53)
}
