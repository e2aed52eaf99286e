package traces

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A Compression is how the bodies of batches are stored.
type Compression uint8

// The compressions. All are read by any Arrow reader.
const (
	Uncompressed Compression = iota
	LZ4                      // a third smaller, little slower
	Zstd                     // for archives
)

// Options say how a stream is written. The zero Options are 512 rows a batch,
// uncompressed.
type Options struct {
	// BatchRows is how many rows are flushed together, which is the most that a
	// kill or a torn copy can lose; 0 means 512. A batch whose block ids reach
	// 1 MiB is flushed before it is full.
	BatchRows int
	// Compression is how batches are stored.
	Compression Compression
}

const (
	// Runs of a few minutes have a few thousand rows: a batch should be a small
	// part of that. 512 rows take a third of a megabyte, and 1.3% more space than
	// batches of 4096 did.
	defaultBatchRows = 512
	maxBatchRows     = 1 << 20
	// maxBatchList flushes a batch early once its block ids reach 1 MiB: some
	// traces have thousands of ids a row.
	maxBatchList = 1 << 20 / 8
)

func (o Options) validate() error {
	var faults []error
	if o.BatchRows < 0 || o.BatchRows > maxBatchRows {
		faults = append(faults, fmt.Errorf("traces: batch of %d rows, want 0 to %d", o.BatchRows, maxBatchRows))
	}
	if o.Compression > Zstd {
		faults = append(faults, fmt.Errorf("traces: compression %d, want Uncompressed, LZ4 or Zstd", o.Compression))
	}
	return errors.Join(faults...)
}

// streamWriter writes rows of T as an Arrow IPC stream. Its first error sticks.
type streamWriter[T any] struct {
	out     *bufio.Writer
	name    string // what errors begin with: the file, or the package
	schema  *arrow.Schema
	columns []Column[T]
	build   *array.RecordBuilder
	fields  []array.Builder
	stream  *ipc.Writer
	batch   int // rows per batch
	pending int // rows in the builders
	listed  int // list entries in the builders
	flushed int64
	err     error
	closed  bool
}

func newStreamWriter[T any](w io.Writer, schema string, columns []Column[T], m Meta, o Options) (*streamWriter[T], error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.BatchRows == 0 {
		o.BatchRows = defaultBatchRows
	}
	s := &streamWriter[T]{out: bufio.NewWriterSize(w, 64<<10), name: "traces", columns: columns, batch: o.BatchRows}
	s.schema = arrowSchema(schema, columns, &m)
	options := []ipc.Option{ipc.WithSchema(s.schema), ipc.WithDictionaryDeltas(true)}
	switch o.Compression {
	case LZ4:
		options = append(options, ipc.WithLZ4())
	case Zstd:
		options = append(options, ipc.WithZstd())
	}
	s.build = array.NewRecordBuilder(memory.DefaultAllocator, s.schema)
	s.fields = s.build.Fields()
	s.stream = ipc.NewWriter(s.out, options...)
	return s, nil
}

// add appends a row to the batch and flushes a full one.
func (s *streamWriter[T]) add(row *T) error {
	if s.err == nil && s.closed {
		return fmt.Errorf("%s: write after close", s.name)
	}
	if s.err != nil {
		return s.err
	}
	for i := range s.columns {
		if err := s.append(i, row); err != nil {
			s.err = fmt.Errorf("%s: row %d: %s: %w", s.name, s.flushed+int64(s.pending)+1, s.columns[i].Name, err)
			return s.err
		}
	}
	s.pending++
	if s.pending >= s.batch || s.listed >= maxBatchList {
		return s.flush()
	}
	return nil
}

func (s *streamWriter[T]) append(i int, row *T) error {
	c := &s.columns[i]
	switch b := s.fields[i].(type) {
	case *array.Int64Builder:
		if v := *c.integer(row); v != None {
			b.Append(v)
			return nil
		}
	case *array.Int32Builder:
		if v := *c.small(row); v != c.none {
			b.Append(v)
			return nil
		}
	case *array.StringBuilder:
		if v, known := c.Text(row); known {
			b.Append(v)
			return nil
		}
	case *array.BinaryDictionaryBuilder:
		if v, known := c.Text(row); known {
			return b.AppendString(v)
		}
	case *array.BooleanBuilder:
		b.Append(*c.flag(row))
		return nil
	case *array.ListBuilder:
		if v := *c.list(row); v != nil {
			b.Append(true)
			b.ValueBuilder().(*array.Uint64Builder).AppendValues(v, nil)
			s.listed += len(v)
			return nil
		}
	}
	s.fields[i].AppendNull()
	return nil
}

// flush writes the rows so far as a batch and hands them to the io.Writer.
func (s *streamWriter[T]) flush() error {
	if s.err != nil || s.pending == 0 {
		return s.err
	}
	batch := s.build.NewRecordBatch()
	err := s.stream.Write(batch)
	batch.Release()
	if err == nil {
		err = s.out.Flush()
	}
	if err != nil {
		s.err = fmt.Errorf("%s: writing after row %d: %w", s.name, s.flushed, unnamed(err))
		return s.err
	}
	s.flushed += int64(s.pending)
	s.pending, s.listed = 0, 0
	return nil
}

// close flushes, then writes the trailer: a batch without rows that carries the
// row count, and the end-of-stream mark.
func (s *streamWriter[T]) close() error {
	if s.closed {
		return s.err
	}
	s.closed = true
	defer s.build.Release()
	if s.flush() != nil {
		return s.err
	}
	empty := s.build.NewRecordBatch()
	defer empty.Release()
	rows := arrow.NewMetadata([]string{keyRows}, []string{strconv.FormatInt(s.flushed, 10)})
	trailer := array.NewRecordBatchWithMetadata(s.schema, empty.Columns(), 0, rows)
	defer trailer.Release()
	err := s.stream.Write(trailer)
	if err == nil {
		err = s.stream.Close()
	}
	if err == nil {
		err = s.out.Flush()
	}
	if err != nil {
		s.err = fmt.Errorf("%s: closing after row %d: %w", s.name, s.flushed, unnamed(err))
	}
	return s.err
}

// abandon flushes and stops, leaving a stream without a trailer.
func (s *streamWriter[T]) abandon() error {
	if s.closed {
		return s.err
	}
	err := s.flush()
	s.closed = true
	s.build.Release()
	return err
}
