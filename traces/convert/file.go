package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// kind tells a directory from a regular file. Anything else at path is refused:
// a trace is read more than once, and what a pipe has given it does not give
// again.
func kind(path string) (dir bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, fileError(path, err)
	}
	what := ""
	switch mode := info.Mode(); {
	case mode.IsDir():
		return true, nil
	case mode.IsRegular():
		return false, nil
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	default:
		what = "no file"
	}
	return false, fmt.Errorf("%s: is %s, want a regular file or a directory: a trace is read more than once", path, what)
}

// open opens a regular file to read.
func open(path string) (*os.File, error) {
	// A pipe must be refused before it is opened: that may wait for a writer.
	if dir, err := kind(path); err != nil {
		return nil, err
	} else if dir {
		return nil, fmt.Errorf("%s: is a directory, want a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	return f, nil
}

// fileError is an error of the file at path, which names it once, however the
// error was made.
func fileError(path string, err error) error {
	var named *fs.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
