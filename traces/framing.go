package traces

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Limits on what one message of a stream may claim. Memory beyond some megabytes
// is reserved only as bytes arrive; the limits bound what a long stream of
// nonsense can do.
const (
	maxMessageHead = 16 << 20
	maxMessageBody = 1 << 30
	// A compressed body may claim to unpack to expandBase + expandBy times its
	// own length: constant columns compress a few hundred times.
	expandBase = 16 << 20
	expandBy   = 256
)

const continuation = 0xffffffff

// errCut is what framing reports when the input ends inside a message, or
// between messages without the end-of-stream mark.
var errCut = errors.New("input ends before the stream does")

// framing cuts an Arrow IPC stream into messages (Arrow columnar format,
// "Encapsulated message format"). Unlike the library's own reader it does not
// reserve memory on the word of a length field and tells the end-of-stream mark from the
// end of the input.
type framing struct {
	in     *bufio.Reader
	budget budget
	ended  bool  // the end-of-stream mark was read
	cut    error // what stopped the stream short of it
}

// Message returns the next message, or io.EOF after the end-of-stream mark. Any
// other error is kept in cut: the library reports some of them as a clean end.
func (f *framing) Message() (*ipc.Message, error) {
	m, err := f.next()
	if err == io.EOF {
		f.ended = true
	} else if err != nil {
		f.cut = err
	}
	return m, err
}

func (f *framing) next() (*ipc.Message, error) {
	size, err := f.headSize()
	if err != nil {
		return nil, err
	}
	head, err := f.read(size)
	if err != nil {
		return nil, err
	}
	bodySize, err := checkHead(head)
	if err != nil {
		return nil, err
	}
	body, err := f.read(bodySize)
	if err != nil {
		return nil, err
	}
	f.budget.left = min(maxMessageBody, expandBase+expandBy*bodySize)
	return ipc.NewMessage(memory.NewBufferBytes(head), memory.NewBufferBytes(body)), nil
}

// headSize reads the start of a message: a continuation mark and the length of
// its head. A length of 0 is the end-of-stream mark.
func (f *framing) headSize() (int64, error) {
	var word [8]byte
	if _, err := io.ReadFull(f.in, word[:]); err != nil {
		return 0, cutOr(err)
	}
	mark, size := binary.LittleEndian.Uint32(word[:4]), binary.LittleEndian.Uint32(word[4:])
	switch {
	case mark != continuation:
		return 0, fmt.Errorf("message starts with %#08x, want %#08x", mark, uint32(continuation))
	case size == 0:
		return 0, io.EOF
	case size > maxMessageHead || size < 16:
		return 0, fmt.Errorf("message head of %d bytes, want 16 to %d", size, maxMessageHead)
	}
	return int64(size), nil
}

// read returns the next n bytes in memory of their own. Beyond some megabytes it
// grows with what arrives.
func (f *framing) read(n int64) ([]byte, error) {
	const trusted = 8 << 20
	if n <= trusted {
		p := make([]byte, n)
		_, err := io.ReadFull(f.in, p)
		return p, cutOr(err)
	}
	var b bytes.Buffer
	got, err := io.CopyN(&b, f.in, n)
	if err == nil && got == n {
		return b.Bytes(), nil
	}
	return nil, cutOr(err)
}

func cutOr(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errCut
	}
	return err
}

// Retain and Release complete ipc.MessageReader; a framing is the collector's.
func (f *framing) Retain()  {}
func (f *framing) Release() {}

// budget is an allocator that refuses, by a panic the library turns into an
// error, what the message at hand cannot account for.
type budget struct {
	left int64
}

func (b *budget) Allocate(size int) []byte {
	if b.left -= int64(size); b.left < 0 || size < 0 {
		panic(fmt.Errorf("message unpacks to more than %d times its size", expandBy))
	}
	return memory.DefaultAllocator.Allocate(size)
}

func (b *budget) Reallocate(size int, p []byte) []byte {
	if size <= cap(p) {
		return p[:size]
	}
	grown := b.Allocate(size)
	copy(grown, p)
	return grown
}

func (b *budget) Free([]byte) {}
