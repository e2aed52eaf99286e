package traces

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An ordinary run must not be lost to its last kilobyte.
func TestDefaultBatchesAreSmall(t *testing.T) {
	whole := written(t, benchRows(3000), Options{})
	got, err := readAll(whole[:len(whole)-1000])
	var truncated *TruncatedError
	if !errors.As(err, &truncated) || len(got) < 2500 {
		t.Errorf("got %d of 3000 rows and %v, want all but a batch", len(got), err)
	}
	// A thousand ids a row: a batch is 1 MiB of them.
	rows := benchRows(400)
	for i := range rows {
		rows[i].BlockSize, rows[i].Blocks = 16, make([]uint64, 1000)
	}
	ends := flushPoints(t, rows, Options{})
	if len(ends) != 3 || ends[0] > 3<<19 {
		t.Errorf("got batches ending at %v bytes, want three of at most 1.5 MiB", ends)
	}
}

// Errors of files begin with the file's name and say it once.
func TestFileErrorsNameTheFileOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.arrows")
	whole := written(t, someRows(20), Options{BatchRows: 5})
	damaged := append([]byte(nil), whole...)
	copy(damaged[len(whole)*2/3:], "\x00\x01\x02\x03damage, a good deal of it")
	for name, data := range map[string][]byte{
		"cut": whole[:len(whole)/2], "cut in the schema": whole[:20], "damaged": damaged,
		"text": []byte("a,b\n1,2\n"), "empty": {},
	} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := countFile(path)
		if name == "damaged" && err == nil {
			continue // the damage may lie in padding
		}
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || strings.Count(err.Error(), path) != 1 || strings.Contains(err.Error(), "traces:") {
			t.Errorf("%s: got %v, want it to begin with %s and say it once", name, err, path)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "absent")} {
		for _, open := range []func() error{
			func() error { _, err := Open(path); return err },
			func() error { _, err := OpenSteps(path); return err },
		} {
			if err := open(); err == nil || !strings.HasPrefix(err.Error(), path+": ") || strings.Count(err.Error(), path) != 1 {
				t.Errorf("got %v, want it to begin with %s and say it once", err, path)
			}
		}
	}
	_, err := Create(filepath.Join(dir, "no", "such.arrows"), Meta{}, Options{})
	if err == nil || strings.Count(err.Error(), "such.arrows") != 1 {
		t.Errorf("got %v, want it to name the file once", err)
	}
}

func TestWriterErrorsNameTheFileOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.arrows")
	w, err := Create(path, Meta{}, Options{BatchRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.file.File.Close(); err != nil {
		t.Fatal(err)
	}
	row := someRow(0)
	for _, err := range []error{w.Write(&row), w.stream.close()} {
		if err == nil || !strings.HasPrefix(err.Error(), path+PartSuffix+": writing after row 0") || strings.Count(err.Error(), path) != 1 {
			t.Errorf("got %v, want it to begin with the file and say it once", err)
		}
	}
}
