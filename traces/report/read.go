package report

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxFaults is how many faults of one file are told before reading gives up.
const maxFaults = 10

// ReadCells reads a cells.csv. Columns are found by name, unknown ones are
// ignored. Its error names file, row (1 is the first after the header), line,
// field and what was expected, for up to ten faults. The cells come sorted by
// CompareCells.
func ReadCells(path string) ([]Cell, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return DecodeCells(f, path)
}

// DecodeCells is ReadCells on an open file; name is what errors call it.
func DecodeCells(r io.Reader, name string) ([]Cell, error) {
	rows, err := decodeRows(r, name, false)
	if err != nil {
		return nil, err
	}
	var cells []Cell
	for _, row := range rows {
		cells = append(cells, row.Cell)
	}
	return sortedCells(cells), nil
}

// decodeRows reads the rows of a cells.csv, or of a samples.csv, where each is of a
// draw.
func decodeRows(r io.Reader, name string, drawn bool) ([]Sample, error) {
	t := table{name: name}
	header := Header()
	if drawn {
		header = SampleHeader()
	}
	if err := t.open(r, header); err != nil {
		return nil, err
	}
	cols := columns()
	var rows []Sample
	first := map[Sample]int{}
	for t.next() {
		var s Sample
		c := &s.Cell
		sound := len(t.faults)
		if drawn && (parseCount(&s.Draw, t.field(drawColumn)) != nil || s.Draw == 0) {
			t.fault(drawColumn, "want the number of a draw, from 1 on")
		}
		for _, col := range cols {
			if err := col.set(c, t.field(col.name)); err != nil {
				t.fault(col.name, err.Error())
			}
		}
		if len(t.faults) > sound {
			continue // what follows would only blame other fields for it
		}
		checkCounts(&t, c)
		key := Sample{s.Draw, Cell{Driver: c.Driver, Load: c.Load, WorkingSet: c.WorkingSet, Skew: c.Skew,
			Policy: c.Policy, Parameters: c.Parameters, Repetition: c.Repetition}}
		if row, twice := first[key]; twice {
			t.fault("repetition", fmt.Sprintf("want every cell once, row %d is the same cell", row))
		} else {
			first[key] = t.row
		}
		rows = append(rows, s)
	}
	return rows, t.err()
}

func checkCounts(t *table, c *Cell) {
	if c.SLOViolation > c.Success {
		t.fault("slo_violation", fmt.Sprintf("want at most success, which is %d", c.Success))
	}
	// One at a time, so that no sum of absurd counts can wrap around.
	left := c.Requests
	for _, n := range []int{c.Success, c.Failed, c.Dropped, c.Cancelled} {
		if n > left {
			t.fault("requests", "want at least success + failed + dropped + cancelled")
			return
		}
		left -= n
	}
}

// A table reads CSV rows by column name and collects faults.
type table struct {
	name   string
	csv    *csv.Reader
	index  map[string]int
	row    int
	line   int
	fields []string
	faults []error
}

// open reads the header, which must hold every required column.
func (t *table) open(r io.Reader, required []string) error {
	b := bufio.NewReader(r)
	if mark, _ := b.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = b.Discard(3) // it was just peeked at
	}
	t.csv = csv.NewReader(b)
	t.csv.ReuseRecord = true
	header, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: empty, want a header with %s, …", t.name, strings.Join(required[:4], ","))
	}
	if err != nil {
		return fmt.Errorf("%s: header: %w", t.name, err)
	}
	t.index = map[string]int{}
	for i, h := range header {
		if _, twice := t.index[h]; twice {
			return fmt.Errorf("%s: header: column %q is there twice", t.name, h)
		}
		t.index[h] = i
	}
	var missing []string
	for _, h := range required {
		if !t.has(h) {
			missing = append(missing, h)
		}
	}
	if missing != nil {
		return fmt.Errorf("%s: header: missing %s", t.name, strings.Join(missing, ", "))
	}
	return nil
}

func (t *table) has(column string) bool {
	_, ok := t.index[column]
	return ok
}

// next goes to the next row. A row with too few or too many fields is a fault
// and ends the reading, because what follows it cannot be trusted either.
func (t *table) next() bool {
	if len(t.faults) >= maxFaults {
		t.faults = append(t.faults, fmt.Errorf("%s: more than %d faults, the rest was not read", t.name, maxFaults))
		return false
	}
	fields, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		if t.row == 0 {
			t.faults = append(t.faults, fmt.Errorf("%s: no rows after the header", t.name))
		}
		return false
	}
	t.row++
	if errors.Is(err, csv.ErrFieldCount) {
		line, _ := t.csv.FieldPos(0)
		err = fmt.Errorf("row %d (line %d): %d fields, want %d", t.row, line, len(fields), len(t.index))
	}
	if err != nil {
		t.faults = append(t.faults, fmt.Errorf("%s: %w", t.name, err))
		return false
	}
	t.line, _ = t.csv.FieldPos(0)
	t.fields = fields
	return true
}

func (t *table) field(column string) string { return t.fields[t.index[column]] }

func (t *table) fault(column, want string) {
	t.faults = append(t.faults, fmt.Errorf("%s: row %d (line %d), field %s: got %q, %s",
		t.name, t.row, t.line, column, t.field(column), want))
}

func (t *table) err() error { return errors.Join(t.faults...) }
