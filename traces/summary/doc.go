// Package summary reduces finished rows to the figures a cell is judged by.
//
// Rows are folded in one at a time and not kept: each leaves a few float32
// behind, so a run of a million requests fits in some tens of megabytes.
//
// A row counts if it was sent inside the measured window and is not flagged as
// warm-up. Percentiles are over answered rows only, by linear interpolation
// between order statistics (type 7 of Hyndman and Fan, numpy's default), and are
// never averaged over runs. What is not known is NaN in Go, null in JSON and an
// empty field in CSV, never 0.
//
// The package refuses to compare cells, to judge whether a difference means
// anything, and to drop rows silently: rows outside the window are counted.
package summary
