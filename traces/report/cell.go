package report

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
)

// A Cell is one (driver, load, working set, skew, policy, repetition) of a
// sweep and what was counted in its measured window. A measure that does not
// exist, such as a percentile over no successes, is NaN and an empty field.
type Cell struct {
	Driver     string  // closed or open
	Load       float64 // users (closed) or requests per second (open)
	WorkingSet float64 // session-pool tokens / fleet KV tokens
	Skew       float64 // Zipf exponent over the session pool
	Policy     string
	Parameters string // every effective parameter, sorted, k=v joined by commas
	Repetition int

	// Requests sent in the window, and how they ended. Success counts every
	// answered request; SLOViolation those of them that missed the SLO.
	Requests, Success, SLOViolation, Failed, Dropped, Cancelled int

	GoodputRPS    float64 // requests/s that met the SLO
	ThroughputRPS float64 // answers/s that ended in the window, whenever sent
	TTFTP50MS     float64
	TTFTP99MS     float64
	ITLP50MS      float64
	E2EP50MS      float64

	PrefixCacheHitRate       float64 // cached / prompt tokens, 0..1
	RecomputedPrefillTokens  float64 // tokens per request
	BusiestReplicaShare      float64 // of the requests, 0..1
	SpillShare               float64 // of the decisions, 0..1
	IdleBeforeEvictP90Second float64 // idle time of a block when it was evicted
}

// Header is the column names of cells.csv, in the order WriteCells keeps.
func Header() []string {
	var names []string
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

// Record is the cell as fields in the order of Header. Rates have 4 decimals,
// times and tokens 3, shares 6; NaN is empty.
func (c Cell) Record() []string {
	var fields []string
	for _, col := range columns() {
		fields = append(fields, col.get(&c))
	}
	return fields
}

// WriteCells writes the header and the cells, sorted by CompareCells whatever
// order they came in. It does not judge them; ReadCells does.
func WriteCells(w io.Writer, cells []Cell) error {
	out := csv.NewWriter(w)
	if err := out.Write(Header()); err != nil {
		return err
	}
	for _, c := range sortedCells(cells) {
		if err := out.Write(c.Record()); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// CompareCells orders cells by driver, load, working set, skew, policy,
// parameters and repetition. Two cells that compare equal are the same cell.
func CompareCells(a, b Cell) int {
	return cmp.Or(
		cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Load, b.Load),
		cmp.Compare(a.WorkingSet, b.WorkingSet), cmp.Compare(a.Skew, b.Skew),
		cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Parameters, b.Parameters),
		cmp.Compare(a.Repetition, b.Repetition))
}

func sortedCells(cells []Cell) []Cell {
	s := slices.Clone(cells)
	slices.SortStableFunc(s, CompareCells)
	return s
}

// exact is the shortest text that parses back to v, without an exponent.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
