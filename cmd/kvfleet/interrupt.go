package main

import (
	"context"
	"errors"
	"time"
)

// errAbandoned is how work ends that was left running.
var errAbandoned = errors.New("run: interrupted while it was prepared; nothing was simulated")

// await does the work and returns how it ended. Some of it cannot be interrupted,
// such as dealing out the sessions of a million users: work that goes on for
// longer than grace after ctx ended is left behind, with errAbandoned. Nothing it
// may still write to must be touched then.
func await[T any](ctx context.Context, grace time.Duration, work func() (T, error)) (T, error) {
	type ending struct {
		value T
		err   error
	}
	done := make(chan ending, 1)
	go func() {
		value, err := work()
		done <- ending{value, err}
	}()
	select {
	case end := <-done:
		return end.value, end.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case end := <-done:
		return end.value, end.err
	case <-timer.C:
		var none T
		return none, errAbandoned
	}
}
