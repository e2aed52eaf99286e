package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kvfleet/traces"
	"kvfleet/traces/export"
)

type exportOptions struct {
	csv, jsonl, parquet bool
	out                 string
}

func (a *app) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export FILE|DIR --csv|--jsonl|--parquet",
		Short: "Write a trace or a step log for other programs",
		Long: `Writes a trace as CSV, JSON lines or Parquet, a step log as CSV or JSON lines. Of
one that was cut short, every whole row is written as a whole file, and the exit
status tells.

` + stepHelp,
		Example: `  kvfleet trace export run.arrows --parquet --out run.parquet
  kvfleet trace export steps.arrows --csv --out steps.csv`,
		Args: cobra.ExactArgs(1),
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

// An exporter writes a file's rows in one form.
type exporter struct {
	form  form
	rows  func(traces.Source, traces.Meta, io.Writer) (int64, error)
	steps func(traces.StepSource, io.Writer) (int64, error) // nil: not in this form
}

// exporter is the form asked for; none or several are a fault.
func (o *exportOptions) exporter(f *flags) exporter {
	var chosen []exporter
	for _, x := range []struct {
		asked bool
		exporter
	}{
		{o.csv, exporter{csvForm(), func(rows traces.Source, _ traces.Meta, w io.Writer) (int64, error) { return export.CSV(rows, w) }, stepsCSV}},
		{o.jsonl, exporter{jsonlForm(), func(rows traces.Source, _ traces.Meta, w io.Writer) (int64, error) { return export.JSONL(rows, w) }, stepsJSONL}},
		{o.parquet, exporter{parquetForm(), export.Parquet, nil}},
	} {
		if x.asked {
			chosen = append(chosen, x.exporter)
		}
	}
	if len(chosen) != 1 {
		f.fault("want one of --csv, --jsonl and --parquet")
		return exporter{}
	}
	chosen[0].form.hint = "without --out it goes to standard output"
	f.output("out", o.out, chosen[0].form)
	return chosen[0]
}

func (a *app) export(f *flags, o *exportOptions, path string) error {
	x := o.exporter(f)
	if o.out != "" && samePlace(o.out, path) {
		f.fault("--out: is the trace itself")
	}
	if err := f.err(); err != nil {
		return err
	}
	log, err := stepLog(path)
	if err != nil {
		return err
	}
	if log != nil {
		defer log.Close()
		if x.steps == nil {
			return fmt.Errorf("%s: a step log is exported as CSV or JSON lines, not as %s", path, x.form.name)
		}
		return a.exportTo(o.out, path, func(w io.Writer) (int64, error) { return x.steps(log.Rows(), w) })
	}
	t, err := source(path)
	if err != nil {
		return err
	}
	return a.exportTo(o.out, path, func(w io.Writer) (int64, error) { return x.rows(t.Rows(), t.Meta, w) })
}

// exportTo writes to a file, or to standard output if there is none.
func (a *app) exportTo(out, path string, write func(io.Writer) (int64, error)) error {
	if out == "" {
		_, err := write(a.stdout)
		return readError(path, err)
	}
	// How the rows end is told after the file is finished: it holds what is whole.
	var end error
	err := writeOut(out, func(w io.Writer) error {
		n, err := write(w)
		if cut := new(traces.TruncatedError); errors.As(err, &cut) {
			end, err = err, nil
		}
		if err == nil {
			a.talk("wrote %s to %s", plural(n, "row"), out)
		}
		return readError(path, err)
	})
	return errors.Join(err, end)
}
