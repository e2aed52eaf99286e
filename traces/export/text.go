package export

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"kvfleet/traces"
)

// CSV writes a header and the rows. Block ids are separated by spaces. It
// returns the number of rows written.
func CSV(rows traces.Source, w io.Writer) (int64, error) {
	out := csv.NewWriter(w)
	columns := traces.Columns()
	record := make([]string, len(columns))
	for i := range columns {
		record[i] = columns[i].Name
	}
	if err := out.Write(record); err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	n, err := each(rows, func(r *traces.Row) error {
		for i := range columns {
			record[i] = csvField(&columns[i], r)
		}
		return out.Write(record)
	})
	return n, finish(err, func() error { out.Flush(); return out.Error() })
}

func csvField(c *traces.Column[traces.Row], r *traces.Row) string {
	switch c.Kind {
	case traces.KindInt, traces.KindSmall:
		if v, known := c.Int(r); known {
			return strconv.FormatInt(v, 10)
		}
		return ""
	case traces.KindFlag:
		return strconv.FormatBool(c.Flag(r))
	case traces.KindList:
		var b []byte
		for i, id := range c.List(r) {
			if i > 0 {
				b = append(b, ' ')
			}
			b = strconv.AppendUint(b, id, 10)
		}
		return string(b)
	}
	v, _ := c.Text(r)
	return v
}

// JSONL writes one JSON object a row. Block ids are plain numbers of up to 64
// bits: a reader must not take them for floating point, which is exact to 2^53
// only.
func JSONL(rows traces.Source, w io.Writer) (int64, error) {
	out := bufio.NewWriter(w)
	columns := traces.Columns()
	var line []byte
	n, err := each(rows, func(r *traces.Row) error {
		line = append(line[:0], '{')
		for i := range columns {
			line = appendField(line, &columns[i], r)
		}
		line = append(line, '}', '\n')
		_, err := out.Write(line)
		return err
	})
	return n, finish(err, out.Flush)
}

func appendField(line []byte, c *traces.Column[traces.Row], r *traces.Row) []byte {
	key := func() []byte {
		if len(line) > 1 {
			line = append(line, ',')
		}
		return append(append(append(line, '"'), c.Name...), '"', ':')
	}
	switch c.Kind {
	case traces.KindInt, traces.KindSmall:
		if v, known := c.Int(r); known {
			return strconv.AppendInt(key(), v, 10)
		}
	case traces.KindFlag:
		return strconv.AppendBool(key(), c.Flag(r))
	case traces.KindList:
		if c.List(r) == nil {
			return line
		}
		line = append(key(), '[')
		for i, id := range c.List(r) {
			if i > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendUint(line, id, 10)
		}
		return append(line, ']')
	default:
		if v, known := c.Text(r); known {
			quoted, _ := json.Marshal(v) // a string always marshals
			return append(key(), quoted...)
		}
	}
	return line
}

// sourceError marks an error that came from the rows, not from writing.
type sourceError struct{ error }

// each calls write for every row.
func each(rows traces.Source, write func(*traces.Row) error) (n int64, err error) {
	for r, err := range rows {
		if err != nil {
			return n, sourceError{err}
		}
		if err := write(&r); err != nil {
			return n, fmt.Errorf("export: after row %d: %w", n, err)
		}
		n++
	}
	return n, nil
}

// finish completes the output unless writing it has failed, and returns what
// went wrong first.
func finish(err error, complete func() error) error {
	source, ok := err.(sourceError)
	if err != nil && !ok {
		return err
	}
	if failed := complete(); failed != nil {
		return fmt.Errorf("export: %w", failed)
	}
	if ok {
		return source.error
	}
	return nil
}
