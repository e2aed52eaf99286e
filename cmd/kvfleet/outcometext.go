package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"kvfleet/sim"
	"kvfleet/traces/summary"
)

// print writes the outcome for people.
func (o *outcome) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	s := o.Summary
	policy := o.Policy
	if o.Parameters != "" {
		policy += " (" + o.Parameters + ")"
	}
	line("policy", "%s", policy)
	line("fleet", "%s: %s, %s KV tokens", o.Fleet, plural(o.Replicas, "replica"), grouped(o.KVTokens))
	line("load", "%s", o.load())
	line("workload", "%s", o.Workload)
	line("counted", "%s", o.counted())
	line("SLO", "%s", s.SLO)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	line("requests", "%s: %s success, of them %s SLO violation; %s failed, %s dropped, %s cancelled", grouped(s.Requests),
		grouped(s.Success), grouped(s.SLOViolation), grouped(s.Failed), grouped(s.Dropped), grouped(s.Cancelled))
	line("goodput", "%s; %s of the requests met the SLO", rate(s.GoodputRPS), percent(s.Attainment))
	line("throughput", "%s ended in the time counted, %s s", rate(s.ThroughputRPS), decimals(s.Counted.Seconds(), 1))
	line("TTFT", "p50 %s, p90 %s, p99 %s", ms(s.TTFTP50, 1), ms(s.TTFTP90, 1), ms(s.TTFTP99, 1))
	line("between tokens", "p50 %s, p99 %s (of each request's median)", ms(s.ITLP50, 2), ms(s.ITLP99, 2))
	line("end to end", "p50 %s, p99 %s", ms(s.E2EP50, 1), ms(s.E2EP99, 1))
	if known(s.HitRate) {
		line("hit rate", "%s of prompt tokens; %s tokens recomputed per request", percent(s.HitRate), decimals(s.RecomputedPerRequest, 1))
	} else {
		line("hit rate", "not known")
	}
	if known(s.HonouredShare) {
		line("belief", "%s of the tokens claimed were there; per request %s over-predicted, %s under-predicted",
			percent(s.HonouredShare), decimals(s.OverPredicted, 1), decimals(s.UnderPredicted, 1))
	}
	if s.Reroutes > 0 || o.Faults > 0 {
		line("rerouted", "%s, placed again %s in all", plural(s.Rerouted, "request"), plural(s.Reroutes, "time"))
	}
	idle := ""
	if o.EvictedBlocks > 0 {
		idle = fmt.Sprintf(", idle before for p50 %s s, p90 %s s", decimals(float64(o.IdleBeforeEvictP50), 1), decimals(s.IdleBeforeEvictP90, 1))
	}
	line("evictions", "%s%s", plural(int64(o.EvictedBlocks), "block"), idle)
	line("engines", "%s, %s; ended at %s s", plural(o.EngineSteps, "step"), plural(int64(o.Preemptions), "preemption"), decimals(float64(o.EndS), 1))
	if err := w.Flush(); err != nil {
		return err
	}
	if err := o.printTables(out); err != nil {
		return err
	}
	for i, text := range o.Warnings {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, "warning: "+text)
	}
	o.printRejections(out)
	return nil
}

// printRejections names the first of the refused requests.
func (o *outcome) printRejections(out io.Writer) {
	named := o.Rejections[:min(len(o.Rejections), namedRejections)]
	if len(named) > 0 {
		fmt.Fprintln(out, "\nrefused:")
	}
	for _, x := range named {
		fmt.Fprintf(out, "  %s: %s\n", x.Request, x.Reason)
	}
	if more := len(o.Rejections) - len(named); more > 0 {
		fmt.Fprintf(out, "  and %s more (--json names all)\n", grouped(int64(more)))
	}
}

func (o *outcome) load() string {
	switch o.Driver {
	case sim.DriverClosed:
		return fmt.Sprintf("closed loop, %s; working set %s, skew %s, repetition %d", plural(int64(o.Load), "user"), decimals(o.WorkingSet, 3), number(o.Skew), o.Repetition)
	case sim.DriverOpen:
		return fmt.Sprintf("open loop, %s req/s; working set %s, skew %s, repetition %d", number(o.Load), decimals(o.WorkingSet, 3), number(o.Skew), o.Repetition)
	}
	return "a trace, sent when its rows are due"
}

func (o *outcome) counted() string {
	text := "every request"
	if o.WindowS > 0 {
		text = "requests of the first " + number(o.WindowS) + " s"
	}
	if o.WarmupS > 0 {
		text += ", without those of the first " + number(o.WarmupS) + " s"
	}
	return text + "; seed " + fmt.Sprint(o.Seed)
}

// placementRows is how many replicas the placement table has room for.
const placementRows = 16

func (o *outcome) printTables(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nDECISION\tREQUESTS\tSHARE\t")
	// Shares are of all requests, so that those never placed show.
	left := o.Summary.Requests
	row := func(reason string, n int64) {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", reason, grouped(n), percent(float64(n)/float64(o.Summary.Requests)))
	}
	for _, d := range o.Summary.Decisions {
		row(d.Reason, d.Requests)
		left -= d.Requests
	}
	if left > 0 {
		row("not placed", left)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	all := slices.Clone(o.Summary.Placement)
	head := "\nREPLICA"
	if len(all) > placementRows {
		slices.SortStableFunc(all, func(a, b summary.Placement) int { return int(b.Requests - a.Requests) })
		head = fmt.Sprintf("\nBUSIEST %d AND LEAST BUSY OF %d", placementRows-1, len(all))
		all = append(all[:placementRows-1], all[len(all)-1])
	}
	fmt.Fprintln(w, head+"\tREQUESTS\tSHARE\tTTFT P50\tHIT RATE\tOVER-PREDICTED\tUNDER-PREDICTED\t")
	for _, p := range all {
		hit := float64(p.CachedTokens) / float64(p.PromptTokens)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", p.Replica, grouped(p.Requests), percent(p.Share), ms(p.TTFTP50, 1), percent(hit),
			grouped(p.OverPredicted), grouped(p.UnderPredicted))
	}
	return w.Flush()
}
