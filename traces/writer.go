package traces

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// PartSuffix ends the name of a stream that was not closed cleanly, or not yet.
const PartSuffix = ".part"

// A Writer writes a trace. It is a Sink. The first error sticks: later calls
// return it again and write nothing more.
type Writer struct {
	stream *streamWriter[Row]
	file   *partFile
}

// NewWriter starts a trace on w. Nothing of w is closed.
func NewWriter(w io.Writer, m Meta, o Options) (*Writer, error) {
	stream, err := newStreamWriter(w, schemaTrace, Columns(), m, o)
	if err != nil {
		return nil, err
	}
	return &Writer{stream: stream}, nil
}

// Create starts a trace in path + ".part", over whatever was there, and gives it
// the name path on Close, replacing any file of that name in one step.
func Create(path string, m Meta, o Options) (*Writer, error) {
	file, err := createPart(path)
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(file, m, o)
	if err != nil {
		return nil, errors.Join(err, file.discard())
	}
	w.file, w.stream.name = file, file.Name()
	return w, nil
}

// Write appends a row. Nothing of r is kept after it returns.
func (w *Writer) Write(r *Row) error { return w.stream.add(r) }

// Flush writes the rows so far as a batch, however few: what was flushed
// survives a kill.
func (w *Writer) Flush() error { return w.stream.flush() }

// Rows is how many rows have been flushed.
func (w *Writer) Rows() int64 { return w.stream.flushed }

// Close writes the trailer. A created file is synced and takes its final name;
// if anything failed it keeps the name with ".part", and the rows flushed before
// the failure can be read from it.
func (w *Writer) Close() error { return w.file.finish(w.stream.close()) }

// Abort ends a trace that will not be complete: rows so far are flushed, no
// trailer is written, and a created file keeps its name with ".part".
func (w *Writer) Abort() error { return w.file.leave(w.stream.abandon()) }

// A StepWriter writes a step log as a Writer writes a trace.
type StepWriter struct {
	stream *streamWriter[StepRow]
	file   *partFile
}

// NewStepWriter starts a step log on w.
func NewStepWriter(w io.Writer, m Meta, o Options) (*StepWriter, error) {
	stream, err := newStreamWriter(w, schemaSteps, StepColumns(), m, o)
	if err != nil {
		return nil, err
	}
	return &StepWriter{stream: stream}, nil
}

// CreateSteps starts a step log in a file, as Create starts a trace.
func CreateSteps(path string, m Meta, o Options) (*StepWriter, error) {
	file, err := createPart(path)
	if err != nil {
		return nil, err
	}
	w, err := NewStepWriter(file, m, o)
	if err != nil {
		return nil, errors.Join(err, file.discard())
	}
	w.file, w.stream.name = file, file.Name()
	return w, nil
}

// Write appends a step.
func (w *StepWriter) Write(r *StepRow) error { return w.stream.add(r) }

// Flush writes the steps so far as a batch.
func (w *StepWriter) Flush() error { return w.stream.flush() }

// Close writes the trailer, as Writer.Close does.
func (w *StepWriter) Close() error { return w.file.finish(w.stream.close()) }

// Abort ends a step log that will not be complete, as Writer.Abort does.
func (w *StepWriter) Abort() error { return w.file.leave(w.stream.abandon()) }

// partFile is a file that earns its name by being finished. A nil partFile is a
// writer that is not a file of ours.
type partFile struct {
	*os.File
	final string
	done  bool
}

func createPart(path string) (*partFile, error) {
	f, err := os.Create(path + PartSuffix)
	if err != nil {
		return nil, fileError(path+PartSuffix, err)
	}
	return &partFile{File: f, final: path}, nil
}

func (p *partFile) finish(err error) error {
	if p == nil || p.done {
		return err
	}
	if err != nil {
		return p.leave(err)
	}
	p.done = true
	err = errors.Join(p.Sync(), p.File.Close())
	if err == nil {
		err = os.Rename(p.Name(), p.final)
	}
	if err != nil {
		return fmt.Errorf("%s: finishing: %w", p.final, unnamed(err))
	}
	return nil
}

func (p *partFile) leave(err error) error {
	if p == nil || p.done {
		return err
	}
	p.done = true
	return errors.Join(err, p.File.Close())
}

func (p *partFile) discard() error {
	p.done = true
	return errors.Join(p.File.Close(), os.Remove(p.Name()))
}
