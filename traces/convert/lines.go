package convert

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"kvfleet/traces"
)

// maxLine is the longest line read: some 5 million block ids.
const maxLine = 64 << 20

// lineRow reads one line of a JSONL trace into a row. A row that cannot be read
// is reported through p.bad and skipped when that returns nil.
type lineRow func(p *pass, number int, line []byte, r *traces.Row) (ok bool, err error)

func readLines(p *pass, read lineRow) (err error) {
	f, err := open(p.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return scanLines(p, f, read)
}

func scanLines(p *pass, in io.Reader, read lineRow) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for number := 1; lines.Scan(); number++ {
		line := lines.Bytes()
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte(bom))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			p.report.Blank++
			continue
		}
		r := traces.NewRow()
		ok, err := read(p, number, line, &r)
		if err == nil && ok {
			err = p.emit(&r)
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fileError(p.file, err)
	}
	return nil
}

// The largest values a row may state. They are far above any trace and keep
// arithmetic on them exact.
const (
	maxTokens = 1 << 40
	maxMillis = 1 << 40
)

// lengths fills a row's token counts and reports what is wrong with them.
func (p *pass) lengths(number int, r *traces.Row, inField string, in *int64, outField string, out *int64) (ok bool, err error) {
	if in == nil || *in < 1 || *in > maxTokens {
		return false, p.bad(number, inField, wantInput, show(in))
	}
	if out == nil || *out < 0 || *out > maxTokens {
		return false, p.bad(number, outField, wantOutput, show(out))
	}
	r.PromptTokens, r.MaxTokens = *in, *out
	if *out == 0 {
		r.MaxTokens = 1
		p.report.RaisedOutputs++
	}
	return true, nil
}

func show[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

func nanos(v, unit float64) int64 { return int64(math.Round(v * unit)) }

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
