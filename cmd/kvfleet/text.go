package main

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// known says that a figure exists.
func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// decimals writes a figure that may not exist.
func decimals(v float64, n int) string {
	if !known(v) {
		return "n/a"
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

// significant writes a figure with n decimals, or, where those would leave fewer
// than three digits of a small one, with three digits.
func significant(v float64, n int) string {
	if v == 0 || !known(v) || math.Abs(v) >= math.Pow(10, float64(2-n)) {
		return decimals(v, n)
	}
	leading := int(math.Floor(math.Log10(math.Abs(v))))
	return decimals(v, 2-leading)
}

// rate writes requests per second: 6.012 req/s, 0.00904 req/s.
func rate(v float64) string {
	switch {
	case !known(v):
		return "n/a"
	case math.Abs(v) >= 10000:
		return count(v) + " req/s"
	}
	return significant(v, 3) + " req/s"
}

// ms writes a time given in milliseconds, from 10 s on in seconds.
func ms(v float64, n int) string {
	switch {
	case !known(v):
		return "n/a"
	case math.Abs(v) >= 10000:
		return decimals(v/1000, 1) + " s"
	}
	return significant(v, n) + " ms"
}

// percent writes a share: 0.974 is 97.4%.
func percent(v float64) string {
	if !known(v) {
		return "n/a"
	}
	return decimals(100*v, 1) + "%"
}

// count writes a figure as a whole number.
func count(v float64) string {
	if !known(v) {
		return "n/a"
	}
	return grouped(int64(math.Round(v)))
}

func megabytes(bytes int64) string { return count(float64(bytes)/1e6) + " MB" }

// number writes a flag's value as it would be given.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// plural writes "1 row", "2 rows".
func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%s %ss", grouped(n), word)
}

// span writes a time of a run to the millisecond.
func span(d time.Duration) string { return d.Round(time.Millisecond).String() }
