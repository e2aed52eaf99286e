package workload

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
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

// appendText appends a piece's bytes: words of eight lower-case hex digits and a
// blank, cut to length, so that no two pieces share a prefix by accident.
func appendText(dst []byte, p piece) []byte {
	const word = len("01234567 ")
	var words rand.PCG
	words.Seed(p.key, golden)
	at, end := len(dst), len(dst)+p.n
	dst = slices.Grow(dst, p.n+word)[:end+word]
	for ; at < end; at += word {
		w := (*[word]byte)(dst[at:])
		binary.BigEndian.PutUint64(w[:8], hex(uint32(words.Uint64()>>32)))
		w[8] = ' '
	}
	return dst[:end]
}

// hex is a number's eight digits, the first one in the highest byte.
func hex(v uint32) uint64 {
	const each = 0x0101010101010101
	x := uint64(v)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & (0x0f * each)
	letters := (x + 6*each) >> 4 & each // 1 where a digit is above 9
	return x + '0'*each + letters*('a'-'9'-1)
}

// Messages is what a session's turn sends in an epoch: the system prompt if it
// has one, every earlier turn's user and synthesized assistant text, and the new
// user text. Rendered with block.AppendMessage they are the prompt that Content
// counts and hashes.
func (m *MultiTurn) Messages(epoch, session, turn int) []Message {
	system, family := m.System(session), m.Family(session)
	var out []Message
	if system {
		out = append(out, Message{"system", string(appendText(nil, m.systemPiece(epoch)))})
	}
	for t := 0; ; t++ {
		out = append(out, Message{"user", string(appendText(nil, m.userPiece(epoch, session, t, system, family)))})
		if t == turn {
			return out
		}
		out = append(out, Message{"assistant", string(appendText(nil, m.assistantPiece(epoch, session, t, family)))})
	}
}
