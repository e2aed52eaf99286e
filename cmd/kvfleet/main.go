package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // the next signal kills
		fmt.Fprintln(os.Stderr, "kvfleet: stopping; once more to kill")
	})
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs a command line, tells what went wrong and returns the exit
// status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := run(ctx, args, stdout, stderr)
	if err == nil {
		return 0
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "kvfleet: %s\n", strings.TrimRight(line, "\n"))
	}
	if usage := new(usageError); errors.As(err, &usage) {
		return 2
	}
	return 1
}

// run runs a command line. Its error may hold several, one a line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	out := bufio.NewWriterSize(stdout, 64<<10)
	a := &app{args: args, stdout: out, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.began {
		err = &usageError{err}
	}
	// A bufio.Writer keeps its first error, so this tells of every write before.
	if flushErr := out.Flush(); flushErr != nil {
		err = errors.Join(err, fmt.Errorf("standard output: %w", flushErr))
	}
	return err
}

// A usageError is a command line that makes no sense.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }
