package traces

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A Reader reads a trace that a Writer wrote, or that another program rewrote
// with the schema's metadata kept.
type Reader struct {
	stream *streamReader[Row]
	file   *os.File
}

// NewReader reads the schema of the trace in r. The error wraps ErrNewer for a
// newer major version and is a *TruncatedError if r ends inside the schema.
func NewReader(r io.Reader) (*Reader, error) {
	return newReader(r, "")
}

func newReader(r io.Reader, path string) (*Reader, error) {
	stream, err := newStreamReader(r, path, schemaTrace, Columns(), NewRow)
	if err != nil {
		return nil, err
	}
	return &Reader{stream: stream}, nil
}

// Open opens a trace file; if there is none at path, but one at path + ".part",
// that one. Its errors, and those of its rows, begin with the file's name.
func Open(path string) (*Reader, error) {
	f, err := openPart(path)
	if err != nil {
		return nil, err
	}
	r, err := newReader(f, f.Name())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}

// Meta is what the trace says of itself.
func (r *Reader) Meta() Meta { return r.stream.meta }

// UnknownColumns names the columns of the trace that are ignored.
func (r *Reader) UnknownColumns() []string { return r.stream.unknown }

// Rows yields the rows, once. A trace without a trailer ends in a
// *TruncatedError, one that makes no sense in a *CorruptError; both say how many
// rows came before. A row's texts and Blocks share the memory of its batch and
// must not be written to.
func (r *Reader) Rows() Source { return r.stream.rows }

// Close closes the file that Open opened. It may be called early.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// A StepReader reads a step log.
type StepReader struct {
	stream *streamReader[StepRow]
	file   *os.File
}

// NewStepReader reads the schema of the step log in r, as NewReader does.
func NewStepReader(r io.Reader) (*StepReader, error) {
	return newStepReader(r, "")
}

func newStepReader(r io.Reader, path string) (*StepReader, error) {
	stream, err := newStreamReader(r, path, schemaSteps, StepColumns(), newStepRow)
	if err != nil {
		return nil, err
	}
	return &StepReader{stream: stream}, nil
}

// OpenSteps opens a step log, as Open opens a trace.
func OpenSteps(path string) (*StepReader, error) {
	f, err := openPart(path)
	if err != nil {
		return nil, err
	}
	r, err := newStepReader(f, f.Name())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}

// Meta is what the step log says of itself.
func (r *StepReader) Meta() Meta { return r.stream.meta }

// Rows yields the steps, once, as Reader.Rows does.
func (r *StepReader) Rows() StepSource { return r.stream.rows }

// Close closes the file that OpenSteps opened.
func (r *StepReader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

func openPart(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if part, partErr := os.Open(path + PartSuffix); partErr == nil {
			return part, nil
		}
	}
	if err != nil {
		return nil, fileError(path, err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close() // nothing was written
		return nil, fmt.Errorf("%s: is a directory, want a file", path)
	}
	return f, nil
}

// fileError is an error of opening or reading the file at path, which names it
// once, however the error was made.
func fileError(path string, err error) error {
	return fmt.Errorf("%s: %w", path, unnamed(err))
}

// unnamed is the error without the file names the os package puts in front.
func unnamed(err error) error {
	var named *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &named):
		return named.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
