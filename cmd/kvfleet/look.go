package main

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kvfleet/traces"
	"kvfleet/traces/export"
)

func (a *app) infoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "info FILE|DIR", Short: "Say what a trace or a step log is and what load it offers",
		Long: "Says what a trace is and what load it offers, or what the engines did by a step\nlog.\n\n" + stepHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.info(args[0]) },
	}
}

func (a *app) info(path string) error {
	if log, err := stepLog(path); err != nil {
		return err
	} else if log != nil {
		return errors.Join(a.stepInfo(log), log.Close())
	}
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
	line("arrivals", "%s", arrivals(&i))
	line("prompt tokens", "%s", spread(i.PromptTokens))
	line("output tokens", "%s", spread(i.OutputTokens))
	line("blocks", "%s, %s distinct", grouped(i.Blocks), grouped(i.DistinctBlocks))
	if i.WideBlocks > 0 {
		line("wide ids", "%s blocks above 2^53: read an export to JSON as integers, not as doubles", grouped(i.WideBlocks))
	}
	if known(i.SharedPrefix) {
		line("shared prefix", "%s of prompt tokens, in a cache that never evicts", percent(i.SharedPrefix))
	} else {
		line("shared prefix", "not known")
	}
	report := t.Report()
	m := t.Meta
	m.Evidence = append(m.Evidence, report.Remarks()...)
	for _, kv := range m.KeyValues() {
		line(kv.Key, "%s", strings.ReplaceAll(kv.Value, "\n", "\n\t"))
	}
	return errors.Join(w.Flush(), i.Err)
}

func arrivals(i *traces.Info) string {
	if i.FirstArrival == traces.None {
		return "not known"
	}
	text := fmt.Sprintf("from %s to %s", until(i.FirstArrival), until(i.LastArrival))
	if known(i.ArrivalRate) {
		text += ", " + rate(i.ArrivalRate)
	}
	return text + ", at " + plural(i.DistinctArrivals, "distinct time")
}

func spread(s traces.Spread) string {
	if !known(s.Sum) || !known(s.Min) {
		return "not known"
	}
	return fmt.Sprintf("%s in all; min %s, p50 %s, p90 %s, p99 %s, max %s", count(s.Sum), count(s.Min), count(s.P50), count(s.P90), count(s.P99), count(s.Max))
}

func (a *app) headCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "head FILE|DIR", Short: "Print the first rows of a trace or a step log as JSON lines",
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
	if log, err := stepLog(path); err != nil {
		return err
	} else if log != nil {
		_, err := stepsJSONL(first(log.Rows(), n), a.stdout)
		return errors.Join(readError(path, err), log.Close())
	}
	t, err := source(path)
	if err != nil {
		return err
	}
	_, err = export.JSONL(first(t.Rows(), n), a.stdout)
	return readError(path, err)
}

// first is the first n rows.
func first[T any](rows iter.Seq2[T, error], n int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		left := n
		for row, err := range rows {
			left--
			if !yield(row, err) || left == 0 {
				return
			}
		}
	}
}

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE|DIR", Short: "Look for what contradicts itself in a trace; exits with 1 if there is any",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.check(args[0]) },
	}
}

func (a *app) check(path string) error {
	if err := noSteps(path); err != nil {
		return err
	}
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
		return r.Err
	}
	if r.Faults > 0 {
		return fmt.Errorf("%s: %s", path, plural(r.Faults, "finding"))
	}
	return nil
}
