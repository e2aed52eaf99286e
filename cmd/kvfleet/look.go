package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kvfleet/traces"
	"kvfleet/traces/export"
)

func (a *app) infoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "info FILE|DIR", Short: "Say what a trace is and what load it offers",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.info(args[0]) },
	}
}

func (a *app) info(path string) error {
	t, err := source(path)
	if err != nil {
		return err
	}
	i := traces.Describe(t.Rows())
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	line("format", "%s", t.Format)
	line("rows", "%s", grouped(i.Rows))
	var outcomes []string
	for o, n := range i.Outcomes {
		if n > 0 {
			outcomes = append(outcomes, grouped(n)+" "+traces.Outcome(o).String())
		}
	}
	line("outcomes", "%s", strings.Join(outcomes, ", "))
	line("sessions", "%s", grouped(i.Sessions))
	line("arrivals", "from %s to %s, %s req/s, at %s", until(i.FirstArrival), until(i.LastArrival),
		decimals(i.ArrivalRate, 3), plural(i.DistinctArrivals, "distinct time"))
	line("prompt tokens", "%s", spread(i.PromptTokens))
	line("output tokens", "%s", spread(i.OutputTokens))
	line("blocks", "%s, %s distinct", grouped(i.Blocks), grouped(i.DistinctBlocks))
	line("shared prefix", "%s of prompt tokens, in a cache that never evicts", percent(i.SharedPrefix))
	report := t.Report()
	m := t.Meta
	m.Evidence = append(m.Evidence, report.Remarks()...)
	for _, kv := range m.KeyValues() {
		line(kv.Key, "%s", kv.Value)
	}
	return errors.Join(w.Flush(), readError(path, i.Err))
}

func spread(s traces.Spread) string {
	return fmt.Sprintf("%s in all; min %s, p50 %s, p90 %s, p99 %s, max %s", count(s.Sum), count(s.Min), count(s.P50), count(s.P90), count(s.P99), count(s.Max))
}

func (a *app) headCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "head FILE|DIR", Short: "Print a trace's first rows as JSON lines",
		Args: cobra.ExactArgs(1),
	}
	f := newFlags(c)
	rows := 0
	one(f, &rows, counts(1), "rows,n", "how many", "10")
	c.RunE = func(_ *cobra.Command, args []string) error { return a.head(f, rows, args[0]) }
	return c
}

func (a *app) head(f *flags, n int, path string) error {
	if err := f.err(); err != nil {
		return err
	}
	t, err := source(path)
	if err != nil {
		return err
	}
	_, err = export.JSONL(first(t.Rows(), n), a.stdout)
	return readError(path, err)
}

// first is the first n rows.
func first(rows traces.Source, n int) traces.Source {
	return func(yield func(traces.Row, error) bool) {
		left := n
		for row, err := range rows {
			left--
			if !yield(row, err) || left == 0 {
				return
			}
		}
	}
}

type exportOptions struct {
	csv, jsonl, parquet bool
	out                 string
}

func (a *app) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export FILE|DIR --csv|--jsonl|--parquet",
		Short: "Write a trace for other programs",
		Long: `Writes a trace as CSV, JSON lines or Parquet. Of one that was cut short, every
whole row is written as a whole file, and the exit status tells.`,
		Example: "  kvfleet trace export run.arrows --parquet --out run.parquet",
		Args:    cobra.ExactArgs(1),
	}
	f := newFlags(c)
	o := &exportOptions{}
	c.Flags().BoolVar(&o.csv, "csv", false, "CSV with a header")
	c.Flags().BoolVar(&o.jsonl, "jsonl", false, "a JSON object a line")
	c.Flags().BoolVar(&o.parquet, "parquet", false, "Parquet")
	one(f, &o.out, files(), "out", "where it goes (default: standard output)", "")
	c.RunE = func(_ *cobra.Command, args []string) error { return a.export(f, o, args[0]) }
	return c
}

func (a *app) export(f *flags, o *exportOptions, path string) error {
	var write func(traces.Source, traces.Meta, io.Writer) (int64, error)
	forms := 0
	for _, form := range []struct {
		chosen bool
		write  func(traces.Source, traces.Meta, io.Writer) (int64, error)
	}{
		{o.csv, func(rows traces.Source, _ traces.Meta, w io.Writer) (int64, error) { return export.CSV(rows, w) }},
		{o.jsonl, func(rows traces.Source, _ traces.Meta, w io.Writer) (int64, error) { return export.JSONL(rows, w) }},
		{o.parquet, export.Parquet},
	} {
		if form.chosen {
			write = form.write
			forms++
		}
	}
	if forms != 1 {
		f.fault("want one of --csv, --jsonl and --parquet")
	}
	if o.out != "" && samePlace(o.out, path) {
		f.fault("--out: is the trace itself")
	}
	f.output("out", o.out)
	if err := f.err(); err != nil {
		return err
	}
	t, err := source(path)
	if err != nil {
		return err
	}
	if o.out == "" {
		_, err := write(t.Rows(), t.Meta, a.stdout)
		return readError(path, err)
	}
	// How the rows end is told after the file is finished: it holds what is whole.
	var end error
	err = writeOut(o.out, func(w io.Writer) error {
		n, err := write(t.Rows(), t.Meta, w)
		if cut := new(traces.TruncatedError); errors.As(err, &cut) {
			end, err = err, nil
		}
		if err == nil {
			a.talk("wrote %s to %s", plural(n, "row"), o.out)
		}
		return readError(path, err)
	})
	return errors.Join(err, readError(path, end))
}

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE|DIR", Short: "Look for what contradicts itself in a trace; exits with 1 if there is any",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.check(args[0]) },
	}
}

func (a *app) check(path string) error {
	t, err := source(path)
	if err != nil {
		return err
	}
	r := traces.Check(t.Rows())
	for _, finding := range r.Findings {
		fmt.Fprintln(a.stdout, finding)
	}
	fmt.Fprintf(a.stdout, "%s, %s\n", plural(r.Rows, "row"), plural(r.Faults, "finding"))
	if r.Err != nil {
		return readError(path, r.Err)
	}
	if r.Faults > 0 {
		return fmt.Errorf("%s: %s", path, plural(r.Faults, "finding"))
	}
	return nil
}
