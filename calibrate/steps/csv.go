package steps

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvfleet/traces"
)

// pooledColumns are those of pooled medians, in any order.
var pooledColumns = []string{
	"prefill_requests", "prefill_tokens", "prefill_context", "decode_requests", "decode_context",
	"steps", "span_ms_median", busyOfTrace,
}

// optional may be missing from pooled medians.
const optional = "span_ms_median"

func (l *Log) readCSV(in *bufio.Reader) error {
	trimBOM(in)
	r := csv.NewReader(in)
	r.ReuseRecord = true
	r.FieldsPerRecord = -1
	header, err := r.Read()
	if err != nil {
		return l.csvError(err)
	}
	columns := slices.Clone(header)
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	var add func(line int, record []string) error
	var out excluded
	switch {
	case slices.Contains(columns, busyOfTrace):
		l.Pooled = true
		if err := l.checkColumns(columns, pooledColumns, optional); err != nil {
			return err
		}
		add = func(line int, record []string) error { return l.pooled(line, columns, record) }
	case slices.Contains(columns, "duration"):
		if err := l.checkColumns(columns, ownColumns(), ""); err != nil {
			return err
		}
		add = func(line int, record []string) error { return l.own(line, columns, record, &out) }
	default:
		return fmt.Errorf("%s:1: got columns %s, want those of pooled medians (%s) or of a step log (%s)",
			l.Path, strings.Join(columns, ","), strings.Join(pooledColumns, ","), strings.Join(ownColumns(), ","))
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return l.csvError(err)
		}
		line, _ := r.FieldPos(0)
		if len(record) != len(columns) {
			return fmt.Errorf("%s:%d: got %d fields, want %d as in the header", l.Path, line, len(record), len(columns))
		}
		if err := add(line, record); err != nil {
			return err
		}
	}
	l.Warnings = append(l.Warnings, out.say("line")...)
	return nil
}

func (l *Log) csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("%s:%d: column %d: %w, want comma-separated fields", l.Path, parse.Line, parse.Column, parse.Err)
	}
	return fmt.Errorf("%s: %w", l.Path, err)
}

func ownColumns() []string {
	var names []string
	for _, c := range traces.StepColumns() {
		names = append(names, c.Name)
	}
	return names
}

// checkColumns reports every missing, doubled and unknown column at once.
func (l *Log) checkColumns(got, want []string, optional string) error {
	var faults []error
	for _, name := range want {
		if name != optional && !slices.Contains(got, name) {
			faults = append(faults, fmt.Errorf("%s:1: column %s is missing", l.Path, name))
		}
	}
	for i, name := range got {
		if !slices.Contains(want, name) {
			faults = append(faults, fmt.Errorf("%s:1: got column %q, want only %s", l.Path, name, strings.Join(want, ", ")))
		} else if slices.Index(got, name) < i {
			faults = append(faults, fmt.Errorf("%s:1: column %s is there twice", l.Path, name))
		}
	}
	return errors.Join(faults...)
}

// pooled adds a row of medians.
func (l *Log) pooled(line int, columns, record []string) error {
	row := Row{Line: line}
	for i, text := range record {
		text = strings.TrimSpace(text)
		whole, err := strconv.ParseInt(text, 10, 64)
		switch columns[i] {
		case "span_ms_median", busyOfTrace:
			var v float64
			if v, err = strconv.ParseFloat(text, 64); err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s:%d: %s: got %q, want a number of ms", l.Path, line, columns[i], text)
			}
			if columns[i] == busyOfTrace {
				row.BusyMS = v
			} else if row.SpanMS = v; v <= 0 {
				return fmt.Errorf("%s:%d: %s: got %g, want more than 0", l.Path, line, columns[i], v)
			}
			continue
		}
		if err != nil || whole > most {
			return fmt.Errorf("%s:%d: %s: got %q, want a whole number up to %d", l.Path, line, columns[i], text, int64(most))
		}
		row.set(columns[i], whole)
	}
	if fault := row.fault(busyOfTrace); fault != "" {
		return fmt.Errorf("%s:%d: %s", l.Path, line, fault)
	}
	l.Rows = append(l.Rows, row)
	return nil
}

func (r *Row) set(column string, v int64) {
	switch column {
	case "prefill_requests":
		r.PrefillRequests = int(v)
	case "prefill_tokens":
		r.PrefillTokens = int(v)
	case "prefill_context":
		r.PrefillContext = v
	case "decode_requests":
		r.DecodeRequests = int(v)
	case "decode_context":
		r.DecodeContext = v
	case "steps":
		r.Steps = int(v)
	default:
		panic("steps: no column " + column)
	}
}

// own adds a line of an exported step log; an empty field is not known.
func (l *Log) own(line int, columns, record []string, out *excluded) error {
	s := traces.StepRow{}
	for i, text := range record {
		v := int64(traces.None)
		if text = strings.TrimSpace(text); text != "" && columns[i] != "replica" {
			var err error
			if v, err = strconv.ParseInt(text, 10, 64); err != nil {
				return fmt.Errorf("%s:%d: %s: got %q, want a whole number", l.Path, line, columns[i], text)
			}
		}
		switch columns[i] {
		case "duration":
			s.Duration = v
		case "prefill_requests":
			s.PrefillRequests = v
		case "prefill_tokens":
			s.PrefillTokens = v
		case "prefill_context":
			s.PrefillContext = v
		case "decode_requests":
			s.DecodeRequests = v
		case "decode_context":
			s.DecodeContext = v
		}
	}
	l.single(line, &s, out)
	return nil
}
