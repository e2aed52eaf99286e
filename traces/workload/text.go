package workload

import (
	"math/rand/v2"
)

// A Message is one chat message.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A piece is a piece of text: its role, the hash that decides its bytes, and how
// many there are.
type piece struct {
	role string // "system", "user", "assistant"
	key  uint64
	n    int // bytes
}

func (m *MultiTurn) systemPiece(epoch int) piece {
	return piece{"system", m.fold(tagSystem, uint64(epoch)), m.SystemTokens * m.BytesPerToken}
}

func (m *MultiTurn) userPiece(epoch, session, turn int, system bool, family int) piece {
	tokens := m.PromptTokens
	if turn == m.Turns-1 && system {
		// The last turn pays for the system prompt: earlier ones may be a
		// family's, which must not differ between its members.
		tokens -= m.SystemTokens
	}
	return piece{"user", m.turnKey(epoch, session, turn, family, roleUser), tokens * m.BytesPerToken}
}

func (m *MultiTurn) assistantPiece(epoch, session, turn, family int) piece {
	return piece{"assistant", m.turnKey(epoch, session, turn, family, roleAssistant), m.OutputTokens * m.BytesPerToken}
}

func (m *MultiTurn) turnKey(epoch, session, turn, family int, role uint64) uint64 {
	if family >= 0 && turn < m.BranchTurns {
		return m.fold(tagAncestor, uint64(epoch), uint64(family), uint64(turn), role)
	}
	return m.fold(tagTurn, uint64(epoch), uint64(session), uint64(turn), role)
}

// text appends a piece's bytes: lower-case hex words and blanks, so that no two
// pieces share a prefix by accident.
func (m *MultiTurn) text(dst []byte, p piece) []byte {
	const digits = "0123456789abcdef"
	words := rand.NewPCG(p.key, golden)
	end := len(dst) + p.n
	for len(dst) < end {
		v := uint32(words.Uint64() >> 32)
		dst = append(dst,
			digits[v>>28], digits[v>>24&15], digits[v>>20&15], digits[v>>16&15],
			digits[v>>12&15], digits[v>>8&15], digits[v>>4&15], digits[v&15], ' ')
	}
	return dst[:end]
}

// Messages is what a session's turn sends in an epoch: the system prompt if it
// has one, every earlier turn's user and synthesized assistant text, and the new
// user text.
func (m *MultiTurn) Messages(epoch, session, turn int) []Message {
	system, family := m.System(session), m.Family(session)
	var out []Message
	if system {
		out = append(out, Message{"system", string(m.text(nil, m.systemPiece(epoch)))})
	}
	for t := 0; ; t++ {
		out = append(out, Message{"user", string(m.text(nil, m.userPiece(epoch, session, t, system, family)))})
		if t == turn {
			return out
		}
		out = append(out, Message{"assistant", string(m.text(nil, m.assistantPiece(epoch, session, t, family)))})
	}
}
