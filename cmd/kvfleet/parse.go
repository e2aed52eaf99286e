package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvfleet/traces/convert"
)

// A parser reads a flag's value.
type parser[T any] struct {
	kind  string // for help
	want  string // for faults
	parse func(text string) (T, bool)
}

func counts(least int) parser[int] {
	return parser[int]{"N", "a whole number of at least " + strconv.Itoa(least), func(s string) (int, bool) {
		n, err := strconv.ParseInt(s, 10, 32)
		return int(n), err == nil && int(n) >= least
	}}
}

// countsTo reads a count that is bounded above too.
func countsTo(least, most int) parser[int] {
	return parser[int]{"N", fmt.Sprintf("a whole number from %s to %s", grouped(int64(least)), grouped(int64(most))), func(s string) (int, bool) {
		n, err := strconv.ParseInt(s, 10, 64)
		return int(n), err == nil && n >= int64(least) && n <= int64(most)
	}}
}

// The most users of a closed loop and replicas of a fleet: some way beyond them
// a run would not fit in a machine's memory.
const (
	mostUsers    = 1_000_000
	mostReplicas = 100_000
)

// signed reads a count of which -1 means no limit.
func signed() parser[int] {
	p := counts(-1)
	p.want += " (-1 is no limit)"
	return p
}

func numbers(want string, ok func(float64) bool) parser[float64] {
	return parser[float64]{"X", want, func(s string) (float64, bool) {
		v, err := strconv.ParseFloat(s, 64)
		return v + 0, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) && ok(v)
	}}
}

func positive() parser[float64] {
	return numbers("a number above 0", func(v float64) bool { return v > 0 })
}

func notNegative() parser[float64] {
	return numbers("a number of at least 0", func(v float64) bool { return v >= 0 })
}

func durations(want string, ok func(time.Duration) bool) parser[time.Duration] {
	return parser[time.Duration]{"DURATION", want, func(s string) (time.Duration, bool) {
		d, err := time.ParseDuration(s)
		return d, err == nil && ok(d)
	}}
}

func positiveTime() parser[time.Duration] {
	return durations("a duration above 0, such as 300s", func(d time.Duration) bool { return d > 0 })
}

func notNegativeTime() parser[time.Duration] {
	return durations("a duration of at least 0, such as 50s", func(d time.Duration) bool { return d >= 0 })
}

func seeds() parser[uint64] {
	return parser[uint64]{"N", "a whole number from 0 to 2^64-1", func(s string) (uint64, bool) {
		n, err := strconv.ParseUint(s, 10, 64)
		return n, err == nil
	}}
}

// named reads any text but none.
func named(kind, want string) parser[string] {
	return parser[string]{kind, want, func(s string) (string, bool) { return s, s != "" }}
}

func words() parser[string]       { return named("TEXT", "a text") }
func files() parser[string]       { return named("FILE", "a file name") }
func directories() parser[string] { return named("DIR", "a directory name") }

func oneOf(names ...string) parser[string] {
	return parser[string]{"NAME", "one of " + strings.Join(names, ", "), func(s string) (string, bool) {
		return s, slices.Contains(names, s)
	}}
}

func formats() parser[convert.Format] {
	var names []string
	for f := convert.Arrow; f <= convert.VLLMCPU; f++ {
		names = append(names, f.String())
	}
	return parser[convert.Format]{"NAME", "one of " + strings.Join(names, ", "), func(s string) (convert.Format, bool) {
		at := slices.Index(names, s)
		return convert.Arrow + convert.Format(max(0, at)), at >= 0
	}}
}
