package convert

import (
	"errors"
	"fmt"
	"strings"

	"kvfleet/traces"
)

// A RowError is a row that could not be read.
type RowError struct {
	File  string
	Row   int    // line in the file from 1; in a Weka file, request from 1
	Field string // empty when the row as a whole is meant
	Want  string
	Got   string
}

func (e *RowError) Error() string {
	field := ""
	if e.Field != "" {
		field = " field " + e.Field + ":"
	}
	got := e.Got
	if len(got) > 80 {
		got = got[:80] + "…"
	}
	return fmt.Sprintf("convert: %s: row %d:%s want %s, got %q", e.File, e.Row, field, e.Want, got)
}

// A Report counts what a pass over a trace did. Rows read is the sum of Yielded,
// Skipped and Filtered.
type Report struct {
	Yielded  int
	Skipped  int         // unreadable
	Errors   []*RowError // the first 20 of the skipped
	Filtered int         // of sessions not asked for
	Blank    int         // blank lines
	// RaisedOutputs counts recorded outputs of no tokens, whose MaxTokens is 1:
	// an engine cannot be asked for less.
	RaisedOutputs int
	// OutOfOrder counts rows that arrive before the row above them.
	OutOfOrder int
	// CutPieces counts component ids that did not fit the stated prompt length.
	CutPieces int
	// Origin is the wall-clock time of the first row, ns since the Unix epoch, if
	// the source states it; else 0.
	Origin int64
}

// Remarks lists what a reader of the rows should know, for Meta.Evidence.
func (r *Report) Remarks() []string {
	var all []string
	add := func(n int, text string) {
		if n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(r.Skipped, "rows skipped as unreadable")
	add(r.Filtered, "rows of sessions not asked for")
	add(r.Blank, "blank lines")
	add(r.RaisedOutputs, "recorded outputs of 0 tokens raised to 1")
	add(r.OutOfOrder, "rows arrive before the row above them")
	add(r.CutPieces, "component ids beyond the stated prompt length")
	if len(r.Errors) > 0 {
		var named []string
		for _, e := range r.Errors {
			named = append(named, fmt.Sprint(e.Row))
		}
		all = append(all, "skipped rows: "+strings.Join(named, " "))
	}
	return all
}

// pass is one pass over a trace.
type pass struct {
	opts   *Options
	file   string
	report *Report
	emit   func(*traces.Row) error // its error ends the pass
}

// errStop ends a pass that the consumer has seen enough of.
var errStop = errors.New("stop")

const maxNamed = 20

// bad records an unreadable row. It returns an error when that ends the pass.
func (p *pass) bad(row int, field, want, got string) error {
	e := &RowError{File: p.file, Row: row, Field: field, Want: want, Got: got}
	if p.opts.MaxErrors >= 0 && p.report.Skipped >= p.opts.MaxErrors {
		return e
	}
	p.report.Skipped++
	if len(p.report.Errors) < maxNamed {
		p.report.Errors = append(p.report.Errors, e)
	}
	return nil
}
