package convert

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"kvfleet/traces"
)

// record is one row of a CSV trace. Its methods note the first field that could
// not be read; ok tells.
type record struct {
	number int // line of the file it starts on, from 1
	names  []string
	values []string // in the order of names

	badField, want string
}

type csvRow func(p *pass, c *record, r *traces.Row)

func readCSV(p *pass, columns []string, read csvRow) (err error) {
	f, err := open(p.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return scanCSV(p, f, columns, read)
}

func scanCSV(p *pass, in io.Reader, columns []string, read csvRow) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	if start, _ := buffered.Peek(len(bom)); bytes.Equal(start, []byte(bom)) {
		if _, err := buffered.Discard(len(bom)); err != nil {
			return err
		}
	}
	lines := csv.NewReader(buffered)
	lines.ReuseRecord, lines.FieldsPerRecord = true, -1
	header, err := lines.Read()
	if err != nil {
		return fmt.Errorf("%s: header: %w", p.file, err)
	}
	at, err := columnPositions(header, columns)
	if err != nil {
		return fileError(p.file, err)
	}
	width := len(header)
	c := record{names: columns, values: make([]string, len(columns))}
	for {
		fields, err := lines.Read()
		if err == io.EOF {
			return nil
		}
		if err := c.take(p, lines, fields, at, width, err); err != nil {
			return err
		}
		if c.number == 0 {
			continue
		}
		r := traces.NewRow()
		read(p, &c, &r)
		if c.badField != "" {
			err = p.bad(c.number, c.badField, c.want, c.value(c.badField))
		} else {
			err = p.emit(&r)
		}
		if err != nil {
			return err
		}
	}
}

// take loads a record, or leaves number 0 if the line is no record.
func (c *record) take(p *pass, lines *csv.Reader, fields []string, at []int, width int, err error) error {
	*c = record{names: c.names, values: c.values}
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return p.bad(syntax.Line, "", fmt.Sprintf("a CSV record (%v)", syntax.Err), "")
	}
	if err != nil {
		return fileError(p.file, err)
	}
	line, _ := lines.FieldPos(0)
	if len(fields) != width {
		return p.bad(line, "", fmt.Sprintf("%d fields", width), fmt.Sprint(len(fields)))
	}
	c.number = line
	for i, from := range at {
		c.values[i] = strings.TrimSpace(fields[from])
	}
	return nil
}

func columnPositions(header, columns []string) ([]int, error) {
	at := make([]int, len(columns))
	for i, name := range columns {
		at[i] = slices.IndexFunc(header, func(h string) bool { return strings.TrimSpace(h) == name })
		if at[i] < 0 {
			return nil, fmt.Errorf("header has no column %s", name)
		}
	}
	return at, nil
}

func (c *record) value(name string) string { return c.values[slices.Index(c.names, name)] }

// fault notes that a field is not what was wanted; the first fault stands.
func (c *record) fault(name, want string) {
	if c.badField == "" {
		c.badField, c.want = name, want
	}
}

// integer reads a whole number from low up; empty is None if none is allowed.
func (c *record) integer(name string, low int64, emptyIsNone bool) int64 {
	text := c.value(name)
	if text == "" && emptyIsNone {
		return traces.None
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < low || v > maxTokens {
		c.fault(name, fmt.Sprintf("a whole number, %d or more", low))
	}
	return v
}

// time reads a number of units of so many ns, of either sign.
func (c *record) time(name string, unit float64) int64 {
	v, err := strconv.ParseFloat(c.value(name), 64)
	if err != nil || !(v > -maxMillis*1e6/unit && v < maxMillis*1e6/unit) {
		c.fault(name, "a number")
		return 0
	}
	return nanos(v, unit)
}

// duration reads a time that is not negative.
func (c *record) duration(name string, unit float64) int64 {
	d := c.time(name, unit)
	if d < 0 {
		c.fault(name, "a number, 0 or more")
	}
	return d
}

// lengths reads the token counts of a planned row.
func (c *record) lengths(p *pass, r *traces.Row, in, out string) {
	r.PromptTokens, r.MaxTokens = c.integer(in, 1, false), c.integer(out, 0, false)
	if c.badField == "" && r.MaxTokens == 0 {
		r.MaxTokens = 1
		p.report.RaisedOutputs++
	}
}
