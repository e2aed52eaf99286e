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

// readCSV reads a file that has all columns, and may have the optional ones, whose
// values are empty where it has not.
func readCSV(p *pass, columns []string, read csvRow, optional ...string) (err error) {
	f, err := open(p.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return scanCSV(p, f, columns, read, optional...)
}

func scanCSV(p *pass, in io.Reader, columns []string, read csvRow, optional ...string) error {
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
	at, err := columnPositions(header, columns, optional)
	if err != nil {
		return fileError(p.file, err)
	}
	width := len(header)
	c := record{names: slices.Concat(columns, optional), values: make([]string, len(at))}
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
		c.values[i] = ""
		if from >= 0 {
			c.values[i] = strings.TrimSpace(fields[from])
		}
	}
	return nil
}

// columnPositions is where the columns stand in the header, then the optional
// ones, -1 for one that it lacks.
func columnPositions(header, columns, optional []string) ([]int, error) {
	at := make([]int, 0, len(columns)+len(optional))
	for i, name := range slices.Concat(columns, optional) {
		found := slices.IndexFunc(header, func(h string) bool { return strings.TrimSpace(h) == name })
		if found < 0 && i < len(columns) {
			return nil, fmt.Errorf("header has no column %s", name)
		}
		at = append(at, found)
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

// micros reads whole µs since the start of a run or the Unix epoch, as ns.
func (c *record) micros(name string) int64 {
	v, err := strconv.ParseInt(c.value(name), 10, 64)
	if err != nil || v < 0 || v > maxWall*1e6 {
		c.fault(name, "a whole number of µs, 0 or more")
		return 0
	}
	return v * 1000
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
