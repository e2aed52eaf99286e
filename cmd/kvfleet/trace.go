package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvfleet/traces"
	"kvfleet/traces/convert"
)

func (a *app) traceCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "trace",
		Short: "Generate, convert, look at and export traces",
		Long: `Works on traces: kvfleet's own (.arrows) and, wherever a FILE is read, public
ones too, which are recognised by their content.`,
	}, a.generateCommand(), a.convertCommand(), a.infoCommand(), a.headCommand(), a.exportCommand(), a.checkCommand())
}

// source is a trace to be read, for the commands that look at one and have made
// sure that it is no step log.
func source(path string) (*convert.Trace, error) {
	t, err := convert.Open(path, convert.Options{})
	if cut := new(traces.TruncatedError); errors.As(err, &cut) {
		return nil, fmt.Errorf("%w: not even its schema is whole", err)
	}
	return t, err
}

// readError says which file the rows ended in, of an error that may be of who
// took them: what convert and traces say names the file.
func readError(path string, err error) error {
	if err == nil || strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

type convertCommandOptions struct {
	convertOptions
	rate   float64
	format convert.Format
	out    string
}

func (a *app) convertCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "convert FILE|DIR --out FILE",
		Short: "Convert a public trace to kvfleet's own form",
		Long: `Converts a trace: Mooncake, Azure, Weka, RAGPulse, vidur, kvroute, blis,
LLMServingSim or vllm-cpu, recognised by its content, or one of kvfleet's own. Of
one that was cut short, every whole row is converted, and the exit status tells.`,
		Example: "  kvfleet trace convert mooncake.jsonl --spread-bin 3s --out mooncake.arrows",
		Args:    cobra.ExactArgs(1),
	}
	f := newFlags(c)
	o := &convertCommandOptions{}
	one(f, &o.out, files(), "out", "where the trace goes (.arrows)", "")
	one(f, &o.format, formats(), "format", "what the trace is, if it is not to be recognised", "")
	o.declare(f)
	one(f, &o.rate, positive(), "rate", "trace: requests per second, for one without arrival times", "")
	c.RunE = func(_ *cobra.Command, args []string) error { return a.convert(f, o, args[0]) }
	return c
}

func (a *app) convert(f *flags, o *convertCommandOptions, path string) error {
	if o.out == "" {
		f.fault("--out: missing, want a file")
	} else if samePlace(o.out, path) {
		f.fault("--out: is the trace itself")
	}
	f.output("out", o.out, arrowForm())
	if err := f.err(); err != nil {
		return err
	}
	open := convert.Open
	if f.given("format") {
		open = func(path string, options convert.Options) (*convert.Trace, error) {
			return convert.OpenAs(path, o.format, options)
		}
	}
	if err := noSteps(path); err != nil {
		return err
	}
	t, err := open(path, o.options(o.rate))
	if err == nil {
		err = t.NeedTimes()
	}
	if err != nil {
		return err
	}
	met := o.meet()
	meta, cut, err := describe(t, met)
	if o.convertOptions.change() {
		meta.RunID = "" // the rows are no longer that run's
	}
	if err := met.missing(path); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if report := t.Report(); cut != nil && report.Yielded == 0 {
		return cut
	}
	w, err := traces.Create(o.out, meta, traces.Options{})
	if err != nil {
		return err
	}
	n, err := copyRows(w, t.Rows())
	if err != nil && !sameEnd(err, cut) {
		return errors.Join(readError(path, err), w.Abort())
	}
	if err := w.Close(); err != nil {
		return err
	}
	for _, remark := range meta.Evidence {
		a.talk("%s: %s", path, remark)
	}
	a.talk("wrote %s of %s to %s", plural(n, "row"), t.Format, o.out)
	return cut
}

// describe passes over the trace once, because what it turns out to be stands in
// front of its rows. cut is how a trace ends that is not whole.
func describe(t *convert.Trace, met *sessionsMet) (meta traces.Meta, cut, err error) {
	for row, rowErr := range t.Rows() {
		if rowErr != nil {
			err = rowErr
		} else {
			met.see(row.Session)
		}
	}
	met.read(t, err)
	if truncated := new(traces.TruncatedError); errors.As(err, &truncated) {
		cut, err = err, nil
	}
	report := t.Report()
	v := readVersions()
	meta = t.Meta
	meta.Producer, meta.Commit = "kvfleet "+v.KVFleet, v.Commit
	if report.Origin != 0 {
		meta.Origin = report.Origin
	}
	for _, remark := range report.Remarks() {
		if !slices.Contains(meta.Evidence, remark) { // not told by an earlier conversion
			meta.Evidence = append(meta.Evidence, remark)
		}
	}
	if cut != nil {
		meta.Evidence = append(meta.Evidence, "the source was cut short; these are its whole rows")
	}
	return meta, cut, err
}

// sameEnd says whether a second pass ended where the first did.
func sameEnd(err, first error) bool { return first != nil && err.Error() == first.Error() }

func copyRows(w *traces.Writer, rows traces.Source) (n int64, err error) {
	for row, err := range rows {
		if err != nil {
			return n, err
		}
		if err := w.Write(&row); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

type generateOptions struct {
	cell cellOptions
	out  string
}

func (a *app) generateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "generate --rate R --out FILE",
		Short: "Write the multi-turn workload as a trace not yet run",
		Long: `Writes what an open-loop run with the same flags would send, and when; max_tokens
is how long the run's answer would be, early stops included. In a closed loop
nothing is due at any time, so there is nothing to write.`,
		Example: "  kvfleet trace generate --working-set 1 --rate 6 --out open6.arrows",
		Args:    cobra.NoArgs,
	}
	f := newFlags(c)
	o := &generateOptions{}
	one(f, &o.out, files(), "out", "where the trace goes (.arrows)", "")
	one(f, &o.cell.rate, positive(), "rate", "requests per second", "")
	l := &o.cell.load
	o.cell.declare(f, c)
	l.declareArrivals(f, c)
	one(f, &l.window, positiveTime(), "window", "arrivals before this time", "300s")
	one(f, &l.seed, seeds(), "seed", "of everything drawn", "1")
	c.RunE = func(*cobra.Command, []string) error { return a.generate(f, o) }
	return c
}

func (a *app) generate(f *flags, o *generateOptions) error {
	if !f.given("rate") {
		f.fault("--rate: missing, want requests per second")
	}
	if o.out == "" {
		f.fault("--out: missing, want a file")
	}
	f.output("out", o.out, arrowForm())
	o.cell.load.checkArrivals(f, true)
	fleet, ok := o.cell.fleet.load(f)
	if !ok {
		return f.err()
	}
	driver, load := o.cell.driver(f)
	m, epoch := o.cell.workload(f, fleet, driver, load)
	if err := f.err(); err != nil {
		return err
	}
	rows := planned(&o.cell.load, m, fleet, o.cell.rate, epoch)
	meta := o.cell.meta(fleet, m, driver, load)
	meta.SLO = traces.SLO{}
	w, err := traces.Create(o.out, meta, traces.Options{})
	if err != nil {
		return err
	}
	n, err := copyRows(w, rows)
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := w.Close(); err != nil {
		return err
	}
	if text := o.cell.load.wholeVisits(m); text != "" {
		a.talk("warning: %s", text)
	}
	a.talk("wrote %s to %s", plural(n, "row"), o.out)
	return nil
}

// until formats a time of a trace, which may not be known.
func until(ns int64) string {
	if ns == traces.None {
		return "n/a"
	}
	return span(time.Duration(ns))
}
