package convert

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"kvfleet/traces"
)

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
	// BeforeStart counts rows due or sent before time 0, which only a kvfleet
	// trace that states so can have.
	BeforeStart int
	// Shifted is how much later all times are than in the source, ns, so that
	// none is before time 0; a file of finished rows may have its first there.
	Shifted int64
	// CutPieces counts component ids that did not fit the stated prompt length.
	CutPieces int
	// Origin is the wall-clock time from which times count, that of the earliest
	// arrival or of the start of a finished run, in ns since the Unix epoch, if the
	// source states it; else 0.
	Origin int64
}

// Remarks lists what a reader of the rows should know, for Meta.Evidence.
func (r *Report) Remarks() []string {
	var all []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			all = append(all, "1 "+one)
		case n > 1:
			all = append(all, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(r.Skipped, "row skipped as unreadable", "rows skipped as unreadable")
	add(r.Filtered, "row of sessions not asked for", "rows of sessions not asked for")
	add(r.Blank, "blank line", "blank lines")
	add(r.RaisedOutputs, "recorded output of 0 tokens raised to 1", "recorded outputs of 0 tokens raised to 1")
	add(r.OutOfOrder, "row arrives before the row above it", "rows arrive before the row above them")
	add(r.BeforeStart, "row due or sent before time 0", "rows due or sent before time 0")
	if r.Shifted > 0 {
		all = append(all, fmt.Sprintf("times are %v later than in the source, which has some before 0", time.Duration(r.Shifted)))
	}
	add(r.CutPieces, "component id beyond the stated prompt length", "component ids beyond the stated prompt length")
	if len(r.Errors) > 0 {
		all = append(all, "skipped: "+r.skipped())
	}
	return all
}

// skipped names the unreadable rows, those of sessions with their file.
func (r *Report) skipped() string {
	var named []string
	for _, e := range r.Errors {
		at := fmt.Sprintf("%s %d", e.Unit, e.Row)
		switch {
		case e.Row == 0:
			at = filepath.Base(e.File)
		case e.Unit == unitRequest:
			at = filepath.Base(e.File) + " " + at
		}
		named = append(named, at)
	}
	text := strings.Join(named, ", ")
	if more := r.Skipped - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// pass is one pass over a trace.
type pass struct {
	opts   *Options
	file   string
	unit   string // what rows are counted in; empty is lines
	report *Report
	emit   func(*traces.Row) error // its error ends the pass
	clocks *clocks                 // of the trace, if it has two
}

// errStop ends a pass that the consumer has seen enough of.
var errStop = errors.New("stop")

const (
	maxNamed    = 20
	unitRequest = "request"
)

// bad records an unreadable row. It returns an error when that ends the pass.
func (p *pass) bad(row int, field, want, got string) error {
	e := &RowError{File: p.file, Unit: cmp.Or(p.unit, "line"), Row: row, Field: field, Want: want, Got: got}
	if p.opts.MaxErrors >= 0 && p.report.Skipped >= p.opts.MaxErrors {
		return e
	}
	p.report.Skipped++
	if len(p.report.Errors) < maxNamed {
		p.report.Errors = append(p.report.Errors, e)
	}
	return nil
}
