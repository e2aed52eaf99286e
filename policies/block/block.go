package block

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Size is the length of a prefix block, in bytes of the rendered prompt.
const Size = 64

// Chain appends to dst the chained hashes of the prompt's whole prefix blocks,
// in order. Each is the xxHash64 of the hash before it (0 before the first), as
// 8 little-endian bytes, and the block's 64 bytes.
func Chain(dst []uint64, prompt []byte) []uint64 {
	var h Hasher
	return h.Append(dst, prompt)
}

// A Hasher hashes a prompt that arrives in pieces, or grows: a session's next
// turn continues where the last one ended. The zero Hasher is at the beginning
// of a prompt; a copy of one is a branch.
type Hasher struct {
	buf  [8 + Size]byte // the hash before, then the block being filled
	fill int
}

// Append takes the next piece of the prompt and appends to dst the hashes of the
// blocks it completes.
func (h *Hasher) Append(dst []uint64, piece []byte) []uint64 { return take(h, dst, piece) }

// AppendString is Append of a string's bytes.
func (h *Hasher) AppendString(dst []uint64, piece string) []uint64 { return take(h, dst, piece) }

func take[T string | []byte](h *Hasher, dst []uint64, piece T) []uint64 {
	for len(piece) > 0 {
		n := copy(h.buf[8+h.fill:], piece)
		piece = piece[n:]
		if h.fill += n; h.fill == Size {
			sum := xxhash.Sum64(h.buf[:])
			binary.LittleEndian.PutUint64(h.buf[:8], sum)
			h.fill = 0
			dst = append(dst, sum)
		}
	}
	return dst
}

// TokenChain appends to dst the chained hashes of the whole engine blocks of
// blockSize tokens: the xxHash64 of the hash before (0 before the first) and the
// tokens, 4 little-endian bytes each. blockSize must be positive.
func TokenChain(dst []uint64, tokens []uint32, blockSize int) []uint64 {
	var room [8 + 4*64]byte
	buf := room[:0]
	if need := 8 + 4*blockSize; need > len(room) {
		buf = make([]byte, 0, need)
	}
	var prev uint64
	for ; len(tokens) >= blockSize; tokens = tokens[blockSize:] {
		buf = binary.LittleEndian.AppendUint64(buf[:0], prev)
		for _, t := range tokens[:blockSize] {
			buf = binary.LittleEndian.AppendUint32(buf, t)
		}
		prev = xxhash.Sum64(buf)
		dst = append(dst, prev)
	}
	return dst
}
