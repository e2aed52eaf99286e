package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"kvfleet/traces"
	"kvfleet/traces/convert"
)

// stepHelp documents a step log's columns.
const stepHelp = `A step log, as run --steps keeps one, has a row for every engine step:

  start            when it began, ns since the run's origin
  duration         how long it took, ns
  replica          whose step it was
  prefill_requests requests still in prefill
  prefill_tokens   their new tokens in this step
  prefill_context  the sum of their sequence lengths after it, tokens
  decode_requests  requests that made one token each
  decode_context   the sum of their sequence lengths, tokens
  preemptions      requests preempted to make room`

// stepLog opens a step log; no error and none means that the file is something
// else.
func stepLog(path string) (*traces.StepReader, error) {
	if format, err := convert.Detect(path); err != nil || format != convert.Arrow {
		return nil, nil
	}
	r, err := traces.OpenSteps(path)
	if errors.Is(err, traces.ErrNewer) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return r, nil
}

// noSteps refuses a step log where rows of requests are wanted.
func noSteps(path string) error {
	r, err := stepLog(path)
	if r == nil {
		return err
	}
	return errors.Join(fmt.Errorf("%s: is a step log, which holds no requests; trace info, head and export read it", path), r.Close())
}

// A stepSum is what the steps of one replica come to.
type stepSum struct {
	replica                                    string
	steps, busy, prefill, decodes, preemptions int64
}

func (s *stepSum) add(r *traces.StepRow) {
	s.steps++
	for _, x := range []struct {
		to *int64
		v  int64
	}{{&s.busy, r.Duration}, {&s.prefill, r.PrefillTokens}, {&s.decodes, r.DecodeRequests}, {&s.preemptions, r.Preemptions}} {
		if x.v != traces.None {
			*x.to += x.v
		}
	}
}

// stepInfo says what a step log holds.
func (a *app) stepInfo(r *traces.StepReader) error {
	var sums []*stepSum
	byName := map[string]*stepSum{}
	total := stepSum{replica: "all"}
	first, last := int64(traces.None), int64(traces.None)
	var end error
	for row, err := range r.Rows() {
		if err != nil {
			end = err
			break
		}
		s := byName[row.Replica]
		if s == nil {
			s = &stepSum{replica: row.Replica}
			byName[row.Replica] = s
			sums = append(sums, s)
		}
		s.add(&row)
		total.add(&row)
		if row.Start != traces.None {
			if first == traces.None {
				first = row.Start
			}
			first, last = min(first, row.Start), max(last, row.Start+max(row.Duration, 0))
		}
	}
	slices.SortFunc(sums, func(a, b *stepSum) int { return strings.Compare(a.replica, b.replica) })
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "format\tstep log\nsteps\t%s\ntime\tfrom %s to %s\n", grouped(total.steps), until(first), until(last))
	meta := r.Meta()
	for _, kv := range meta.KeyValues() {
		fmt.Fprintf(w, "%s\t%s\n", kv.Key, kv.Value)
	}
	err := w.Flush()
	w = tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nREPLICA\tSTEPS\tBUSY\tPREFILL TOKENS\tDECODED TOKENS\tPREEMPTIONS\t")
	for _, s := range append(sums, &total) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", s.replica, grouped(s.steps), span(time.Duration(s.busy)),
			grouped(s.prefill), grouped(s.decodes), grouped(s.preemptions))
	}
	return errors.Join(err, w.Flush(), end)
}

// stepsCSV writes a header and the steps. If the steps end in an error, what is
// before it is written whole.
func stepsCSV(rows traces.StepSource, w io.Writer) (n int64, err error) {
	out := csv.NewWriter(w)
	columns := traces.StepColumns()
	record := make([]string, len(columns))
	for i := range columns {
		record[i] = columns[i].Name
	}
	if err := out.Write(record); err != nil {
		return 0, err
	}
	for row, rowErr := range rows {
		if err = rowErr; err != nil {
			break
		}
		for i := range columns {
			record[i], _ = stepField(&columns[i], &row)
		}
		if err := out.Write(record); err != nil {
			return n, err
		}
		n++
	}
	out.Flush()
	return n, errors.Join(out.Error(), err)
}

// stepsJSONL writes one JSON object a step, without what is not known.
func stepsJSONL(rows traces.StepSource, w io.Writer) (n int64, err error) {
	out := bufio.NewWriter(w)
	columns := traces.StepColumns()
	var line []byte
	for row, rowErr := range rows {
		if err = rowErr; err != nil {
			break
		}
		line = line[:0]
		for i := range columns {
			text, known := stepField(&columns[i], &row)
			if !known {
				continue
			}
			if columns[i].Kind == traces.KindEnum {
				quoted, err := json.Marshal(text)
				if err != nil {
					return n, err
				}
				text = string(quoted)
			}
			line = append(fmt.Appendf(line, ",%q:", columns[i].Name), text...)
		}
		line = append(line, '}', '\n')
		line[0] = '{'
		if _, err := out.Write(line); err != nil {
			return n, err
		}
		n++
	}
	return n, errors.Join(out.Flush(), err)
}

// stepField is a step's value in a column, as text.
func stepField(c *traces.Column[traces.StepRow], row *traces.StepRow) (text string, known bool) {
	if c.Kind == traces.KindEnum {
		return c.Text(row)
	}
	v, known := c.Int(row)
	if !known {
		return "", false
	}
	return strconv.FormatInt(v, 10), true
}
