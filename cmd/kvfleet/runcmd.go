package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"kvfleet/sim"
	"kvfleet/traces"
	"kvfleet/traces/seed"
)

type runOptions struct {
	cell                        cellOptions
	policy                      string
	trace                       string
	convert                     convertOptions
	out, decisions, steps, file string // file is of faults
	json                        bool
}

func (a *app) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Simulate one cell or one trace",
		Long: `Simulates one cell of the multi-turn workload, or replays a trace, and prints
what came of it. A trace is recognised by its content: one of kvfleet's own,
Mooncake, Azure, Weka, RAGPulse, vidur.

A fault file gives a schedule of faults. For slow and event_gap, "for" is how
long it lasts; left out, it lasts to the end of the run.

  faults:
    # The process dies, its cache with it.
    - {at: 60s, replica: replica-1, kind: kill}
    # It is started again and serves, with an empty cache, once it is up.
    - {at: 90s, replica: replica-1, kind: restart}
    # The operator takes it out of rotation; what runs on it finishes.
    - {at: 100s, replica: replica-2, kind: drain}
    # Undoes drain.
    - {at: 130s, replica: replica-2, kind: restore}
    # Everything takes factor times as long.
    - {at: 150s, replica: replica-4, kind: slow, factor: 1.5, for: 30s}
    # Its KV events are lost and not sent again: what the replica had stored
    # before stays unknown to the router until it is stored again.
    - {at: 200s, replica: replica-5, kind: event_gap, for: 10s}`,
		Example: `  kvfleet run --policy prefix_affinity --working-set 1 --users 32
  kvfleet run --policy round_robin --trace mooncake.jsonl --spread-bin 3s --max-model-len 131072`,
		Args: cobra.NoArgs,
	}
	f := newFlags(c)
	o := &runOptions{}
	p := words()
	p.kind = "NAME[:k=v,...]"
	one(f, &o.policy, p, "policy", "places the requests", "prefix_affinity")
	complete(c, "policy", policyNames())
	o.cell.declare(f, c)
	one(f, &o.cell.users, countsTo(1, mostUsers), "users", "closed loop: number of users", "32")
	one(f, &o.cell.rate, positive(), "rate", "open loop instead: requests per second (also for a trace without arrival times)", "")
	o.cell.load.declare(f, c)
	p = files()
	p.kind = "FILE|DIR"
	one(f, &o.trace, p, "trace", "replay this trace instead of a cell; every request counts unless --window is given", "")
	o.convert.declare(f)
	one(f, &o.out, files(), "out", "keep the rows (.arrows)", "")
	one(f, &o.decisions, files(), "decisions", "keep the decision log (JSON lines)", "")
	one(f, &o.steps, files(), "steps", "keep the engines' step log (.arrows)", "")
	one(f, &o.file, files(), "faults", "a YAML file of faults", "")
	c.Flags().BoolVar(&o.json, "json", false, "JSON on standard output instead of the summary")
	c.RunE = func(c *cobra.Command, _ []string) error { return a.run(c.Context(), f, o) }
	return c
}

// A job is a run that is ready to go.
type job struct {
	cfg      sim.Config
	fleet    fleetFile
	meta     traces.Meta
	warnings []string
	aloud    []string // told at once, not under the figures
	lastSent int64    // ns, by the run's rows
}

// end is the window's end or, of a trace without one, the last arrival.
func (j *job) end() time.Duration {
	if n := len(j.cfg.Trace); n > 0 {
		return time.Duration(j.cfg.Trace[n-1].ScheduledAt)
	}
	return j.cfg.Window
}

// checkFaults warns of faults that can do nothing.
func (j *job) checkFaults() {
	end, name := j.end(), "the window's end"
	if len(j.cfg.Trace) > 0 {
		name = "the last arrival"
		if w := j.cfg.Window; w > 0 && w < end {
			end, name = w, "the window's end"
		}
	}
	j.warnings = append(j.warnings, idleFaults(j.cfg.Faults, end, name, j.cfg.Policy.Spec.NeedsEvents)...)
}

// job is what is asked for; whatever is wrong becomes a fault.
func (o *runOptions) job(f *flags) *job {
	traced := f.given("trace")
	f.only(!traced, "with --trace", "users", "working-set", "sessions", "skew", "repetition", "arrivals", "shape", "think")
	f.only(traced, "without --trace", o.convert.names()...)
	if !traced {
		if f.given("users") && f.given("rate") {
			f.fault("--users and --rate: want one of them, a closed loop or an open one")
		}
		o.cell.load.check(f, f.given("rate"))
	}
	o.checkOutputs(f)
	j := &job{}
	choices := f.choose([]string{o.policy})
	fleet, ok := o.cell.fleet.load(f)
	if !ok || len(choices) == 0 {
		return j
	}
	j.fleet = fleet
	j.cfg = sim.Config{Fleet: fleet.Fleet, Policy: choices[0], Seed: seed.Seed(o.cell.load.seed)}
	if f.given("faults") {
		faults, err := readFaults(o.file, fleet.Fleet)
		if err != nil {
			f.fault("--faults: %w", err)
		}
		j.cfg.Faults = faults
	}
	if traced {
		o.replay(f, j)
	} else {
		o.drive(f, j)
	}
	if text := fleet.staleBelief(choices[0]); text != "" {
		j.aloud = append(j.aloud, text)
	}
	j.meta.Cell.Policy = choices[0].Spec.Name
	j.meta.Cell.Parameters = choices[0].Effective(fleet.Bounds())
	j.cfg.KeepIDs = f.given("out")
	return j
}

// drive makes the job a cell.
func (o *runOptions) drive(f *flags, j *job) {
	c := &o.cell
	driver, load := c.driver(f)
	m, epoch := c.workload(f, j.fleet, driver, load)
	j.cfg.Workload, j.cfg.Epoch = m, epoch
	j.cfg.Window, j.cfg.Warmup = c.load.window, c.load.warmup
	if driver == sim.DriverOpen {
		j.cfg.Rate, j.cfg.Arrivals, j.cfg.Shape, j.cfg.Think = c.rate, c.load.arrivals, c.load.shape, c.load.think
		if text := c.load.wholeVisits(m); text != "" {
			j.warnings = append(j.warnings, text)
		}
	} else {
		j.cfg.Users = c.users
	}
	j.meta = c.meta(j.fleet, m, driver, load)
}

// checkOutputs faults two outputs in one file, and what is no file.
func (o *runOptions) checkOutputs(f *flags) {
	outs := []struct {
		name, path string
		form       form
	}{{"out", o.out, arrowForm()}, {"decisions", o.decisions, jsonlForm()}, {"steps", o.steps, arrowForm()}}
	for i, x := range outs {
		f.output(x.name, x.path, x.form)
		for _, y := range outs[:i] {
			if x.path != "" && y.path != "" && samePlace(x.path, y.path) {
				f.fault("--%s and --%s: both are %s", y.name, x.name, x.path)
			}
		}
	}
}

func (a *app) run(ctx context.Context, f *flags, o *runOptions) error {
	j := o.job(f)
	if err := f.err(); err != nil {
		return err
	}
	if f.given("trace") {
		read := func() (struct{}, error) { return struct{}{}, o.readTrace(j) }
		if _, err := await(ctx, 0, read); err != nil {
			return err
		}
	}
	for _, text := range j.aloud {
		a.talk("warning: %s", text)
	}
	if o.json {
		j.warnings = append(j.warnings, j.aloud...)
	}
	j.checkFaults()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k, err := o.keep(j, cancel)
	if err != nil {
		return err
	}
	var finished atomic.Int64
	rows := j.cfg.Rows
	j.cfg.Rows = func(r *traces.Row) {
		finished.Add(1)
		j.lastSent = max(j.lastSent, r.SentAt)
		if rows != nil {
			rows(r)
		}
	}
	clock := startClock()
	stop := a.every(talkEvery, func() string { return grouped(finished.Load()) + " requests simulated" })
	result, err := await(ctx, abandonAfter, func() (sim.Result, error) { return sim.Run(ctx, j.cfg) })
	stop()
	if errors.Is(err, errAbandoned) {
		return errors.Join(err, o.removeParts())
	}
	spent := clock.read()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		if errors.Is(err, context.Canceled) {
			err = fmt.Errorf("run: interrupted with %s simulated", plural(finished.Load(), "request"))
		}
		left := k.leave(a)
		if left != nil && strings.Contains(left.Error(), err.Error()) {
			return left // the same write that ended the run
		}
		return errors.Join(err, left)
	}
	if err := k.finish(); err != nil {
		return err
	}
	return a.outcome(o, j, &result, finished.Load(), spent)
}

// abandonAfter is how long a run may take to notice that it was interrupted. Once
// it simulates it notices within milliseconds.
const abandonAfter = time.Second

// outcome prints what came of a run.
func (a *app) outcome(o *runOptions, j *job, result *sim.Result, finished int64, spent spent) error {
	s := &result.Summary
	out := newOutcome(j, result)
	if o.json {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(out); err != nil {
			return err
		}
	} else if err := out.print(a.stdout); err != nil {
		return err
	}
	a.talk("simulated %s in %s (%s per CPU second, %s of memory at most)", plural(finished, "request"),
		time.Duration(float64(spent.WallS)*float64(time.Second)).Round(time.Millisecond),
		count(float64(perSecond(finished, spent.CPUS))), megabytes(spent.PeakRSSBytes))
	if s.Success == 0 {
		return fmt.Errorf("run: none of %s completed", plural(s.Requests, "counted request"))
	}
	return nil
}
