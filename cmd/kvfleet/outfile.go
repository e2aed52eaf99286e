package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvfleet/traces"
)

// An outFile is written under its name + ".part" and earns the name by being
// finished, in one step, so that what had the name before is whole until then.
type outFile struct {
	*bufio.Writer
	file *os.File
	path string
}

func createOut(path string) (*outFile, error) {
	f, err := os.Create(path + traces.PartSuffix)
	if err != nil {
		return nil, err
	}
	return &outFile{bufio.NewWriterSize(f, 64<<10), f, path}, nil
}

// finish gives the file its name; if anything failed, it keeps the other.
func (o *outFile) finish() error {
	err := o.Flush()
	if err == nil {
		err = o.file.Sync()
	}
	if cerr := o.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(o.file.Name(), o.path)
	}
	return err
}

// leave ends a file that will not be complete.
func (o *outFile) leave() error { return errors.Join(o.Flush(), o.file.Close()) }

// discard ends a file of which nothing is worth keeping.
func (o *outFile) discard() error { return errors.Join(o.file.Close(), os.Remove(o.file.Name())) }

// writeOut writes a whole file or none.
func writeOut(path string, write func(io.Writer) error) error {
	o, err := createOut(path)
	if err != nil {
		return err
	}
	if err := write(o); err != nil {
		return errors.Join(err, o.discard())
	}
	if err := o.finish(); err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(o.file.Name())))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// A form is how an output is written: what it is called, the extensions that
// suit it, and how else to get what another extension asks for.
type form struct {
	name, hint string
	extensions []string
}

func arrowForm() form {
	return form{"an Arrow stream (.arrows)", "`kvfleet trace export` makes CSV, JSON lines or Parquet of one", []string{".arrows", ".arrow"}}
}

func csvForm() form { return form{"CSV", "", []string{".csv"}} }

func jsonlForm() form {
	return form{"JSON lines", "", []string{".jsonl", ".ndjson", ".json"}}
}

func parquetForm() form { return form{"Parquet", "", []string{".parquet"}} }

// output faults an output whose name says something else than its form, and one
// that is no file that a finished one may replace.
func (f *flags) output(flag, path string, form form) {
	if path == "" {
		return
	}
	hint := form.hint
	if hint != "" {
		hint = "; " + hint
	}
	if path == "-" {
		f.fault("--%s: got -, want a file name, for %s%s", flag, form.name, hint)
		return
	}
	extension := strings.ToLower(filepath.Ext(path))
	for _, other := range []([]string){arrowForm().extensions, csvForm().extensions, jsonlForm().extensions, parquetForm().extensions} {
		if slices.Contains(other, extension) && !slices.Contains(form.extensions, extension) {
			f.fault("--%s: %s would not be %s but %s%s", flag, path, extension, form.name, hint)
		}
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f.fault("--%s: %s is no regular file; a finished output takes the place of what has its name", flag, path)
	}
}

// samePlace says whether two paths name one file, as far as their text tells.
func samePlace(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }
