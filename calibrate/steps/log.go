package steps

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"kvfleet/traces"
)

// A Row is one engine step, or several of one shape with their median times.
type Row struct {
	Line int // in the file, from 1; in an Arrow log the row, from 1
	// PrefillRequests is how many requests were in prefill, PrefillTokens their new
	// tokens in this step, PrefillContext the sum of their lengths after it.
	PrefillRequests int
	PrefillTokens   int
	PrefillContext  int64
	// DecodeRequests made one token each over DecodeContext tokens in all.
	DecodeRequests int
	DecodeContext  int64
	Steps          int     // how many steps the row pools
	BusyMS         float64 // some GPU operation was running, ms
	SpanMS         float64 // first operation's start to the last one's end, ms; 0 is not known
}

// A Log is a step log, read and checked.
type Log struct {
	Path string
	Rows []Row
	// Pooled says that rows are medians of a traced engine's steps. Otherwise they
	// are single steps of a log of our own, whose mixed steps hold the fleet file's
	// prefill_mixed_ms and small_mixed_ms.
	Pooled bool
	// Warnings name what was left out, and why.
	Warnings []string
}

// most is beyond any count of a real engine, and far from the end of an int64.
const most = 1 << 40

// Read reads a step log: pooled medians as CSV (prefill_requests, ...,
// decode_context, steps, span_ms_median, busy_ms_median), a step log of our own, or
// that log's CSV export. Rows that contradict themselves are an error in pooled
// medians. In a log of single steps they are left out and counted in Warnings:
// one broken step does not spoil a run. Errors name file, line, field and what was
// expected.
func Read(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	head, err := in.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l := &Log{Path: path}
	switch {
	case len(head) == 0:
		return nil, fmt.Errorf("%s: is empty, want a step log", path)
	case head[0] == 0xff, string(head) == "ARROW1": // a stream's continuation mark; a file
		err = l.readArrow(path)
	default:
		err = l.readCSV(in)
	}
	if err != nil {
		return nil, err
	}
	if len(l.Rows) == 0 {
		return nil, fmt.Errorf("%s: no step that can be used: %s", path, strings.Join(append(l.Warnings, "it has no rows"), "; "))
	}
	return l, nil
}

func (l *Log) readArrow(path string) error {
	r, err := traces.OpenSteps(path)
	if err != nil {
		return err
	}
	defer r.Close()
	var out excluded
	line := 0
	for s, err := range r.Rows() {
		line++
		if err != nil {
			return fmt.Errorf("%s: row %d: %w", path, line, err)
		}
		l.single(line, &s, &out)
	}
	l.Warnings = append(l.Warnings, out.say("row")...)
	return nil
}

// single adds one step of a log of our own, or counts why it cannot.
func (l *Log) single(line int, s *traces.StepRow, out *excluded) {
	for _, c := range []struct {
		name string
		v    int64
	}{
		{"duration", s.Duration}, {"prefill_requests", s.PrefillRequests}, {"prefill_tokens", s.PrefillTokens},
		{"prefill_context", s.PrefillContext}, {"decode_requests", s.DecodeRequests}, {"decode_context", s.DecodeContext},
	} {
		if c.v == traces.None {
			out.add(line, c.name+" is not known")
			return
		}
		if c.v > most && c.name != "duration" {
			out.add(line, fmt.Sprintf("%s is beyond %d", c.name, int64(most)))
			return
		}
	}
	row := Row{
		Line: line, PrefillRequests: int(s.PrefillRequests), PrefillTokens: int(s.PrefillTokens), PrefillContext: s.PrefillContext,
		DecodeRequests: int(s.DecodeRequests), DecodeContext: s.DecodeContext, Steps: 1, BusyMS: float64(s.Duration) / 1e6,
	}
	if fault := row.fault(busyOfOurs); fault != "" {
		out.add(line, fault)
		return
	}
	l.Rows = append(l.Rows, row)
}

// What the busy time is called where it was read.
const (
	busyOfOurs  = "duration"
	busyOfTrace = "busy_ms_median"
)

// fault says how a row contradicts itself, naming the field; "" is not at all.
func (r *Row) fault(busy string) string {
	for _, c := range []struct {
		name      string
		got, want int64
		because   string
	}{
		{"prefill_requests", int64(r.PrefillRequests), 0, ""},
		{"prefill_tokens", int64(r.PrefillTokens), int64(r.PrefillRequests), " (prefill_requests: each computes one token or more)"},
		{"prefill_context", r.PrefillContext, int64(r.PrefillTokens), " (prefill_tokens: they are part of it)"},
		{"decode_requests", int64(r.DecodeRequests), 0, ""},
		{"decode_context", r.DecodeContext, int64(r.DecodeRequests), " (decode_requests: each has one token or more)"},
		{"steps", int64(r.Steps), 1, ""},
	} {
		if c.got < c.want {
			return fmt.Sprintf("%s: got %d, want at least %d%s", c.name, c.got, c.want, c.because)
		}
	}
	switch {
	case r.PrefillRequests == 0 && r.PrefillTokens > 0:
		return fmt.Sprintf("prefill_tokens: got %d, want 0 where prefill_requests is 0", r.PrefillTokens)
	case r.PrefillRequests == 0 && r.PrefillContext > 0:
		return fmt.Sprintf("prefill_context: got %d, want 0 where prefill_requests is 0", r.PrefillContext)
	case r.DecodeRequests == 0 && r.DecodeContext > 0:
		return fmt.Sprintf("decode_context: got %d, want 0 where decode_requests is 0", r.DecodeContext)
	case r.PrefillRequests+r.DecodeRequests == 0:
		return "decode_requests: got 0, want a request that is in prefill or decodes"
	case !(r.BusyMS > 0 && r.BusyMS <= 1e6):
		return fmt.Sprintf("%s: got %g ms, want more than 0, at most 1e+06", busy, r.BusyMS)
	case r.SpanMS != 0 && r.SpanMS < r.BusyMS:
		return fmt.Sprintf("span_ms_median: got %g, want at least %g (busy_ms_median is part of it)", r.SpanMS, r.BusyMS)
	}
	return ""
}

// excluded counts what was left out.
type excluded struct {
	n     int
	line  int
	fault string
}

func (x *excluded) add(line int, fault string) {
	if x.n == 0 {
		x.line, x.fault = line, fault
	}
	x.n++
}

func (x *excluded) say(unit string) []string {
	switch x.n {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("left out a step: %s %d: %s", unit, x.line, x.fault)}
	}
	return []string{fmt.Sprintf("left out %d steps that contradict themselves, the first in %s %d: %s", x.n, unit, x.line, x.fault)}
}

// trimBOM drops the mark that some programs write before CSV.
func trimBOM(r *bufio.Reader) {
	if head, _ := r.Peek(3); bytes.Equal(head, []byte{0xef, 0xbb, 0xbf}) {
		r.Discard(3)
	}
}
