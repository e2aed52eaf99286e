package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvfleet/policies"
	"kvfleet/sim"
	"kvfleet/traces/seed"
	"kvfleet/traces/workload"
)

// mainPolicies are what a sweep compares when nobody names a policy.
var mainPolicies = [...]string{"round_robin", "least_outstanding", "session_affinity", "prefix_affinity", "exact_residency"}

type sweepOptions struct {
	load               loadOptions
	fleet              string
	policies           []string
	workingSets, skews []float64
	users              []int
	rates              []float64
	repetitions        int
	fleetSamples       int
	workers            int
	out, grid          string
}

func (a *app) sweepCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sweep --out DIR",
		Short: "Simulate a pressure grid",
		Long: `Simulates every combination of load, working set, skew, policy and repetition
and writes DIR/cells.csv, a row each, and DIR/sweep.json, how it came about.
Interrupted, the same command goes on from what is finished.

A fleet file that kvfleet calibrate wrote holds draws: what its measured
constants may be, together. With --fleet-samples N every cell is also simulated
under each of the first N, with the same seeds and prompts and every repetition,
into DIR/samples.csv, so that kvfleet map can mark the points whose winner
depends on them. That takes N times as long again; under 20, one draw that
differs marks a point.

A grid file sets the same flags, named with underscores:

  working_set: [0.25, 1, 3, 8]
  skew: [0, 1.4]
  policy: ["prefix_affinity:spill_factor=0", session_affinity]

What the command line gives comes first.`,
		Example: `  kvfleet sweep --out out/grid
  kvfleet sweep --policy prefix_affinity:spill_factor=0 --policy session_affinity --rate 4,6 --out out/open
  kvfleet sweep --fleet mine.yaml --fleet-samples 32 --out out/sure`,
		Args: cobra.NoArgs,
	}
	f := newFlags(c)
	o := &sweepOptions{}
	declareFleet(f, c, &o.fleet)
	texts(f, &o.policies, "NAME[:k=v,...]", "policy", "a policy, repeatable (default: the five main ones)")
	complete(c, "policy", policyNames())
	list(f, &o.workingSets, positive(), "working-set", "session-pool tokens over the fleet's KV tokens", "0.25,1,3,8")
	list(f, &o.skews, notNegative(), "skew", "Zipf exponents over the session pool", "0,1,1.4")
	list(f, &o.users, countsTo(1, mostUsers), "users", "closed loop: numbers of users", "32")
	list(f, &o.rates, positive(), "rate", "open loop instead: requests per second", "")
	one(f, &o.repetitions, counts(1), "repetitions", "of each cell, each with its own bytes", "3")
	one(f, &o.fleetSamples, counts(0), "fleet-samples", "simulate the first N draws of a calibrated fleet file too", "")
	o.load.declare(f, c)
	one(f, &o.workers, counts(1), "workers", "cells simulated at once; changes no number", fmt.Sprint(runtime.NumCPU()))
	one(f, &o.out, directories(), "out", "directory for what comes of it; resumed if it holds this sweep", "")
	one(f, &o.grid, files(), "grid", "a YAML file that gives flags", "")
	c.RunE = func(c *cobra.Command, _ []string) error { return a.sweep(c.Context(), f, o) }
	return c
}

// config is what is asked for; whatever is wrong becomes a fault.
func (o *sweepOptions) config(f *flags) (sim.SweepConfig, fleetFile) {
	if o.grid != "" {
		f.applyGrid(o.grid)
	}
	open := f.given("rate")
	if open && f.given("users") {
		f.fault("--users and --rate: want one of them, a closed loop or an open one")
	}
	if open {
		o.users = nil
	}
	o.load.check(f, open)
	if o.out == "" {
		f.fault("--out: missing, want a directory")
	}
	if len(o.policies) == 0 {
		o.policies = mainPolicies[:]
	}
	choices := f.choose(o.policies)
	cfg := sim.SweepConfig{
		Policies: choices, WorkingSets: o.workingSets, Skews: o.skews, Users: o.users, Rates: o.rates,
		Repetitions: o.repetitions, Window: o.load.window, Warmup: o.load.warmup,
		Seed: seed.Seed(o.load.seed), FleetSamples: o.fleetSamples, Workers: o.workers, Dir: o.out,
	}
	v := readVersions()
	cfg.Program = strings.TrimSpace("kvfleet " + v.KVFleet + " " + v.Commit)
	if open {
		cfg.Arrivals, cfg.Shape, cfg.Think = o.load.arrivals, o.load.shape, o.load.think
	}
	fleet, err := loadFleet(o.fleet)
	if err != nil {
		f.fault("--fleet: %w", err)
		return cfg, fleet
	}
	cfg.Fleet, cfg.FleetHash = fleet.Fleet, fleet.hash
	o.checkFleet(f, fleet, choices)
	return cfg, fleet
}

// checkFleet faults what this fleet cannot run.
func (o *sweepOptions) checkFleet(f *flags, fleet fleetFile, choices []policies.Choice) {
	for _, ws := range o.workingSets {
		if _, err := workload.Published(ws, 0, fleet.KVTokens(), 0).Resolve(); err != nil {
			f.fault("--working-set: %w", err)
		}
	}
	if _, err := fleet.FirstDraws(o.fleetSamples); err != nil {
		f.fault("--fleet-samples: %w", err)
	}
	seen := map[string]bool{}
	for _, c := range choices {
		id := c.Spec.Name
		if p := c.Effective(fleet.Bounds()); p != "" {
			id += " with " + p
		}
		if seen[id] {
			f.fault("--policy: %s is given twice", id)
		}
		seen[id] = true
	}
}

// cellsOf is how many cells a sweep of the fleet alone has.
func cellsOf(cfg *sim.SweepConfig) int {
	return len(cfg.Policies) * len(cfg.WorkingSets) * len(cfg.Skews) * (len(cfg.Users) + len(cfg.Rates)) * cfg.Repetitions
}

func (a *app) sweep(ctx context.Context, f *flags, o *sweepOptions) error {
	cfg, fleet := o.config(f)
	if err := f.err(); err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return &usageError{err}
	}
	for _, c := range cfg.Policies {
		if text := fleet.staleBelief(c); text != "" {
			a.talk("warning: %s", text)
		}
	}
	if open := len(o.rates) > 0; open {
		if text := o.load.wholeVisits(workload.MultiTurn{Turns: 4}); text != "" {
			a.talk("warning: %s", text)
		}
	}
	watch := a.watch(cellsOf(&cfg) * (1 + cfg.FleetSamples))
	cfg.Progress = watch.progress
	clock := startClock()
	result, err := sim.Sweep(ctx, cfg)
	spent := clock.read()
	watch.stop()

	finished := len(result.Cells) + len(result.Samples)
	if result.BegunBy != cfg.Program && result.Simulated < finished {
		a.talk("warning: %s was begun by %s and this is %s: cells of one grid may come from two programs", o.out, cmp.Or(result.BegunBy, "another kvfleet"), cfg.Program)
	}
	interrupted := err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err != nil && !interrupted && result.Simulated == 0 {
		return err
	}
	record := newSweepRecord(a.args, &cfg, fleet, o, &result)
	record.timing = timing{
		CellsSimulated: result.Simulated, RequestsSimulated: result.Requests, spent: spent,
		RequestsPerCPUSecond: perSecond(result.Requests, spent.CPUS),
		GOMAXPROCS:           runtime.GOMAXPROCS(0), Workers: o.workers, Interrupted: interrupted,
	}
	if err := a.keepRecord(o.out, record); err != nil {
		return err
	}
	if interrupted {
		return fmt.Errorf("sweep: interrupted with %d of %s finished; the same command goes on from there", finished, plural(int64(watch.total), "cell"))
	}
	if err != nil {
		return err
	}
	a.talk("%s in %s", plural(int64(len(result.Cells)), "cell"), filepath.Join(o.out, "cells.csv"))
	if n := len(result.Samples); n > 0 {
		a.talk("%s under %s of the fleet's constants in %s", plural(int64(n), "cell"), plural(int64(o.fleetSamples), "draw"), filepath.Join(o.out, "samples.csv"))
	}
	return nil
}

// keepRecord writes sweep.json, unless there is one and this call simulated
// nothing that would be worth telling.
func (a *app) keepRecord(dir string, r sweepRecord) error {
	path := filepath.Join(dir, sweepFile)
	old, found, err := readSweepRecord(path)
	if err != nil {
		return err
	}
	if found && r.CellsSimulated == 0 {
		a.talk("nothing was left to simulate; %s still tells of the run before", path)
		return nil
	}
	if found {
		r.Previous = append(old.Previous, old.timing)
	}
	if err := r.write(path); err != nil {
		return err
	}
	a.talk("simulated %s in %s (%s per CPU second, %s of memory at most)", plural(r.RequestsSimulated, "request"),
		time.Duration(float64(r.WallS)*float64(time.Second)).Round(10*time.Millisecond),
		count(float64(r.RequestsPerCPUSecond)), megabytes(r.PeakRSSBytes))
	return nil
}
