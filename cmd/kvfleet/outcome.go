package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"kvfleet/sim"
	"kvfleet/sim/kvcache"
	"kvfleet/traces"
	"kvfleet/traces/summary"
)

// An outcome is what a run came to, as JSON prints it.
type outcome struct {
	Fleet      string           `json:"fleet"`
	Replicas   int64            `json:"replicas"`
	KVTokens   int64            `json:"kv_tokens"`
	Policy     string           `json:"policy"`
	Parameters string           `json:"parameters"`
	Driver     string           `json:"driver"`
	Load       float64          `json:"load,omitempty"` // users or requests per second
	WorkingSet float64          `json:"working_set,omitempty"`
	Skew       float64          `json:"skew"`
	Repetition int64            `json:"repetition,omitempty"`
	Epoch      int              `json:"epoch,omitempty"`
	Workload   string           `json:"workload"`
	Seed       uint64           `json:"seed"`
	WindowS    float64          `json:"window_s,omitempty"` // 0: every request counts
	WarmupS    float64          `json:"warmup_s"`
	EndS       figure           `json:"end_s"` // when the last request had ended
	Summary    *summary.Summary `json:"summary"`

	EvictedBlocks      uint64      `json:"evicted_blocks"`
	IdleBeforeEvictP50 figure      `json:"idle_before_evict_p50_s"`
	EngineSteps        int64       `json:"engine_steps"`
	Preemptions        int         `json:"preemptions"`
	EventGaps          uint64      `json:"event_gaps"`
	Faults             int         `json:"faults,omitempty"`
	Rejected           int         `json:"rejected"`
	RejectedFirst      []rejection `json:"rejected_first,omitempty"`
	Warnings           []string    `json:"warnings,omitempty"`

	meta traces.Meta
}

type rejection struct {
	Request string `json:"request"`
	Reason  string `json:"reason"`
}

// namedRejections is how many refused requests are named.
const namedRejections = 5

func newOutcome(j *job, r *sim.Result) *outcome {
	m := j.meta
	o := &outcome{
		Fleet: m.Fleet.Name, Replicas: m.Fleet.Replicas, KVTokens: m.Fleet.KVTokens,
		Policy: m.Cell.Policy, Parameters: m.Cell.Parameters, Driver: m.Cell.Driver, Load: m.Cell.Load,
		WorkingSet: m.Cell.WorkingSet, Skew: m.Cell.Skew, Repetition: m.Cell.Repetition, Epoch: j.cfg.Epoch,
		Workload: m.Workload, Seed: m.Seed, WindowS: j.cfg.Window.Seconds(), WarmupS: j.cfg.Warmup.Seconds(),
		EndS: figure(r.End.Seconds()), Summary: &r.Summary,
		EvictedBlocks:      r.IdleBeforeEvict.N(),
		IdleBeforeEvictP50: figure(idle(&r.IdleBeforeEvict)),
		EngineSteps:        r.Steps, Preemptions: r.Preemptions, EventGaps: r.EventGaps,
		Faults: len(j.cfg.Faults), Rejected: len(r.Rejected), Warnings: j.warnings, meta: m,
	}
	for _, x := range r.Rejected[:min(len(r.Rejected), namedRejections)] {
		o.RejectedFirst = append(o.RejectedFirst, rejection(x))
	}
	o.judge(j, r)
	return o
}

// judge adds what a reader of the figures must know.
func (o *outcome) judge(j *job, r *sim.Result) {
	warn := func(format string, args ...any) { o.Warnings = append(o.Warnings, fmt.Sprintf(format, args...)) }
	s := &r.Summary
	if o.Rejected > 0 {
		warn("%s could not be served by any replica and were not sent", plural(int64(o.Rejected), "request"))
		for _, x := range o.RejectedFirst {
			warn("  %s: %s", x.Request, x.Reason)
		}
		if more := o.Rejected - len(o.RejectedFirst); more > 0 {
			warn("  and %s more", grouped(int64(more)))
		}
	}
	for _, x := range []struct {
		n    int64
		name string
	}{{s.Failed, "failed"}, {s.Dropped, "were dropped"}} {
		if share := float64(x.n) / float64(s.Requests); share > 0.01 {
			warn("%s of the requests %s", percent(share), x.name)
		}
	}
	last := j.cfg.Window
	if n := len(j.cfg.Trace); n > 0 {
		last = time.Duration(j.cfg.Trace[n-1].ScheduledAt)
	}
	if late := r.End - last; o.Driver == sim.DriverOpen && late > last/10 || o.Driver == sim.DriverTrace && late > max(last/10, time.Minute) {
		warn("the fleet is saturated: it was still answering %s after the last arrival", span(late))
	}
	if s.Unfinished > 0 {
		warn("%s never ended", plural(s.Unfinished, "request"))
	}
}

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
	line("goodput", "%s req/s of %s req/s answered; %s of the requests met the SLO",
		decimals(s.GoodputRPS, 3), decimals(s.ThroughputRPS, 3), percent(s.Attainment))
	line("TTFT", "p50 %s ms, p90 %s ms, p99 %s ms", decimals(s.TTFTP50, 1), decimals(s.TTFTP90, 1), decimals(s.TTFTP99, 1))
	line("between tokens", "p50 %s ms, p99 %s ms (of each request's median)", decimals(s.ITLP50, 2), decimals(s.ITLP99, 2))
	line("end to end", "p50 %s ms, p99 %s ms", decimals(s.E2EP50, 1), decimals(s.E2EP99, 1))
	line("hit rate", "%s of prompt tokens; %s tokens recomputed per request", percent(s.HitRate), decimals(s.RecomputedPerRequest, 1))
	if known(s.HonouredShare) {
		line("belief", "%s of the tokens claimed were there; per request %s over-predicted, %s under-predicted",
			percent(s.HonouredShare), decimals(s.OverPredicted, 1), decimals(s.UnderPredicted, 1))
	}
	if s.Reroutes > 0 || o.Faults > 0 {
		line("rerouted", "%s, placed again %s in all", plural(s.Rerouted, "request"), plural(s.Reroutes, "time"))
	}
	line("evictions", "%s, idle before for p50 %s s, p90 %s s", plural(int64(o.EvictedBlocks), "block"),
		decimals(float64(o.IdleBeforeEvictP50), 1), decimals(s.IdleBeforeEvictP90, 1))
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
	return nil
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
	for _, d := range o.Summary.Decisions {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", d.Reason, grouped(d.Requests), percent(d.Share))
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
	fmt.Fprintln(w, head+"\tREQUESTS\tSHARE\tHIT RATE\tOVER-PREDICTED\tUNDER-PREDICTED\t")
	for _, p := range all {
		hit := float64(p.CachedTokens) / float64(p.PromptTokens)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", p.Replica, grouped(p.Requests), percent(p.Share), percent(hit),
			grouped(p.OverPredicted), grouped(p.UnderPredicted))
	}
	return w.Flush()
}

// idle is the median idle age of the evicted blocks, s; NaN if there are none.
func idle(ages *kvcache.IdleAges) float64 {
	p50, ok := ages.Quantile(0.5)
	if !ok {
		return math.NaN()
	}
	return p50.Seconds()
}
