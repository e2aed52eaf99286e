package convert

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kvfleet/traces"
)

// None of these may wait for a writer, or eat what one has written.
func TestOnlyFilesAndDirectoriesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	want := ": is a pipe, want a regular file or a directory"
	if _, err := Detect(pipe); err == nil || !strings.HasPrefix(err.Error(), pipe+want) {
		t.Errorf("Detect: got %v, want %s%s", err, pipe, want)
	}
	for _, f := range []Format{Mooncake, Azure, Weka, Arrow} {
		if _, err := OpenAs(pipe, f, Options{}); err == nil || !strings.HasPrefix(err.Error(), pipe+want) {
			t.Errorf("OpenAs %s: got %v, want %s%s", f, err, pipe, want)
		}
	}
	if _, err := Detect(dir); err == nil || !strings.HasPrefix(err.Error(), pipe+want) {
		t.Errorf("a directory with a pipe: got %v, want %s%s", err, pipe, want)
	}
	if _, err := Detect(os.DevNull); err == nil || !strings.Contains(err.Error(), "is a device, want") {
		t.Errorf("a device: got %v", err)
	}
	if _, err := OpenAs(t.TempDir(), Mooncake, Options{}); err == nil || !strings.Contains(err.Error(), "is a directory, want a mooncake file") {
		t.Errorf("a directory as a file: got %v", err)
	}
}

// Whatever is wrong with a file, its error names it once, and first.
func TestErrorsNameTheFileOnce(t *testing.T) {
	cut := file(t, "c8.arrows", "\xff\xff\xff\xff\x10")
	absent := filepath.Join(t.TempDir(), "absent")
	for _, path := range []string{
		cut, absent, t.TempDir(), file(t, "empty", ""), file(t, "text", "a,b\n"),
		file(t, "rows", mooncakeText(0)+"{}\n"), file(t, "none", "arrived_at,num_prefill_tokens,num_decode_tokens\n"),
	} {
		tr, err := Open(path, Options{})
		if err == nil {
			for _, err = range tr.Rows() {
			}
		}
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || strings.Count(err.Error(), path) != 1 {
			t.Errorf("got %v, want it to begin with %s and say it once", err, path)
		}
	}
	if _, err := Open(absent, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want not-exist", err)
	}
	var truncated *traces.TruncatedError
	if _, err := Open(cut, Options{}); !errors.As(err, &truncated) || truncated.Path != cut {
		t.Errorf("got %v, want a TruncatedError of the file", err)
	}
}
