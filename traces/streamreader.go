package traces

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// A TruncatedError is how a stream ends that was cut short: its writer was
// killed, or the copy is not whole. Every row before it is good.
type TruncatedError struct {
	Path  string // of the file; empty if the stream is none that Open opened
	After int64  // rows recovered
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s: truncated after row %d", subject(e.Path), e.After)
}

// A CorruptError is how a stream ends whose bytes make no sense from some batch
// on. Every row before it was read from a batch that did.
type CorruptError struct {
	Path  string // as in TruncatedError
	After int64  // rows read
	Err   error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: corrupt after row %d: %v", subject(e.Path), e.After, unnamed(e.Err))
}

// subject is what an error begins with: the file if there is one.
func subject(path string) string {
	if path == "" {
		return "traces"
	}
	return path
}

// Unwrap returns what was wrong.
func (e *CorruptError) Unwrap() error { return e.Err }

// streamReader reads an Arrow IPC stream as rows of T.
type streamReader[T any] struct {
	path    string // of the file, if it is one
	frames  *framing
	stream  *ipc.Reader
	meta    Meta
	columns []Column[T]
	field   []int // of the stream, for each column; -1 if it has none
	blank   func() T
	used    bool
	unknown []string
}

func newStreamReader[T any](r io.Reader, path, schema string, columns []Column[T], blank func() T) (*streamReader[T], error) {
	in := bufio.NewReaderSize(r, 64<<10)
	// The file format is a stream between magic numbers: skip the first.
	if start, _ := in.Peek(8); bytes.HasPrefix(start, []byte("ARROW1")) {
		if _, err := in.Discard(8); err != nil {
			return nil, err
		}
	}
	s := &streamReader[T]{path: path, frames: &framing{in: in}, columns: columns, blank: blank}
	var err error
	s.stream, err = ipc.NewReaderFromMessageReader(s.frames, ipc.WithAllocator(&s.frames.budget))
	if errors.Is(s.frames.cut, errCut) {
		return nil, &TruncatedError{Path: path}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: no Arrow stream: %w", subject(path), unnamed(err))
	}
	found := s.stream.Schema()
	if s.meta, err = readMeta(schema, keyValues(found.Metadata())); err != nil {
		return nil, fmt.Errorf("%s: %w", subject(path), err)
	}
	return s, s.match(found)
}

func keyValues(m arrow.Metadata) []KeyValue {
	var all []KeyValue
	for i, key := range m.Keys() {
		all = append(all, KeyValue{key, m.Values()[i]})
	}
	return all
}

// match finds the stream's field for each column and checks its type.
func (s *streamReader[T]) match(schema *arrow.Schema) error {
	var faults []error
	s.field = make([]int, len(s.columns))
	known := make(map[string]bool, len(s.columns))
	for i := range s.columns {
		c := &s.columns[i]
		known[c.Name] = true
		at := schema.FieldIndices(c.Name)
		switch {
		case len(at) == 0:
			s.field[i] = -1
		case len(at) > 1:
			faults = append(faults, fmt.Errorf("%s: column %s appears %d times", subject(s.path), c.Name, len(at)))
		default:
			s.field[i] = at[0]
			if !readable(c.Kind, schema.Field(at[0]).Type) {
				faults = append(faults, fmt.Errorf("%s: column %s is %s, want %s", subject(s.path), c.Name, schema.Field(at[0]).Type, arrowType(c.Kind)))
			}
		}
	}
	// Without its first column a stream says nothing of which row is which, nor
	// how many there are.
	if s.field[0] < 0 {
		faults = append(faults, fmt.Errorf("%s: column %s is missing", subject(s.path), s.columns[0].Name))
	}
	for _, f := range schema.Fields() {
		if !known[f.Name] {
			s.unknown = append(s.unknown, f.Name)
		}
	}
	return errors.Join(faults...)
}

// rows yields the stream's rows, then the error that ended it short of its
// trailer.
func (s *streamReader[T]) rows(yield func(T, error) bool) {
	var blank T
	if s.used {
		yield(blank, fmt.Errorf("%s: the rows of a reader can be read once", subject(s.path)))
		return
	}
	s.used = true
	var done, promised int64 = 0, -1
	chunk := make([]T, 0, chunkRows)
	for s.stream.Next() {
		batch := s.stream.RecordBatch()
		if n, ok := trailerRows(batch); ok {
			promised = n
			continue
		}
		for from := 0; from < int(batch.NumRows()); from += chunkRows {
			var err error
			if chunk, err = s.decode(batch, from, chunk[:0]); err != nil {
				yield(blank, &CorruptError{s.path, done, err})
				return
			}
			for i := range chunk {
				if !yield(chunk[i], nil) {
					return
				}
				done++
			}
		}
	}
	if err := s.ending(done, promised); err != nil {
		yield(blank, err)
	}
}

// ending says why the stream ended, nil meaning that it is whole.
func (s *streamReader[T]) ending(done, promised int64) error {
	cut := s.frames.cut
	switch {
	case promised >= 0 && promised != done:
		return &CorruptError{s.path, done, fmt.Errorf("the trailer promises %d rows", promised)}
	case s.stream.Err() != nil && cut == nil:
		return &CorruptError{s.path, done, s.stream.Err()}
	case s.frames.ended || promised >= 0 && errors.Is(cut, errCut):
		return nil
	case errors.Is(cut, errCut):
		return &TruncatedError{s.path, done}
	}
	return &CorruptError{s.path, done, cut}
}

// trailerRows is the row count a closing batch carries.
func trailerRows(batch arrow.RecordBatch) (int64, bool) {
	m, ok := batch.(interface{ Metadata() arrow.Metadata })
	if !ok || batch.NumRows() != 0 {
		return 0, false
	}
	at := slices.Index(m.Metadata().Keys(), keyRows)
	if at < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(m.Metadata().Values()[at], 10, 64)
	return n, err == nil && n >= 0
}
