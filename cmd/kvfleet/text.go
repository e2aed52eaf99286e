package main

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// decimals writes a figure that may not exist.
func decimals(v float64, n int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "n/a"
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

// percent writes a share: 0.974 is 97.4%.
func percent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "n/a"
	}
	return decimals(100*v, 1) + "%"
}

// count writes a figure as a whole number.
func count(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
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
