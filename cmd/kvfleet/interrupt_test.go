package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwaitLeavesBehindWhatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		start, over := time.Now(), make(chan struct{})
		time.AfterFunc(3*time.Second, cancel)
		_, err := await(ctx, time.Second, func() (int, error) { <-over; return 1, nil })
		if took := time.Since(start); !errors.Is(err, errAbandoned) || took != 4*time.Second {
			t.Errorf("got %v after %v, want it abandoned a second after the interruption, at 4s", err, took)
		}
		close(over)

		own := errors.New("its own")
		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		_, err = await(ctx, time.Second, func() (int, error) { <-ctx.Done(); time.Sleep(time.Second / 2); return 0, own })
		if err != own {
			t.Errorf("work that stopped in time: got %v, want its own error", err)
		}
		if v, err := await(context.Background(), 0, func() (int, error) { return 7, nil }); v != 7 || err != nil {
			t.Errorf("work that was not interrupted: got %v, %v, want 7", v, err)
		}
	})
}

// An interruption ends a run whatever it is doing, and says so.
func TestInterruptedRunStops(t *testing.T) {
	dir := t.TempDir()
	trace := write(t, "m.jsonl", strings.Repeat(`{"timestamp": 0, "input_length": 100, "output_length": 10, "hash_ids": [1]}`+"\n", 20000))
	for _, args := range [][]string{{"--trace", trace}, {"--window", "3000s", "--out", filepath.Join(dir, "x.arrows")}} {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var out, talk bytes.Buffer
		if status := execute(ctx, append([]string{"run"}, args...), &out, &talk); status != 1 || out.Len() > 0 {
			t.Errorf("%v: got exit status %d and %q, want 1 and no summary", args, status, out.String())
		}
		if text := talk.String(); !strings.Contains(text, "interrupted") && !strings.Contains(text, "stopped at") {
			t.Errorf("%v: got %q, want it to say that it was stopped", args, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x.arrows")); err == nil {
		t.Error("an interrupted run left a file that looks complete")
	}
}
