package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kvfleet/sim"
	"kvfleet/traces/report"
)

type validateOptions struct {
	measured string
	json     bool
	csv      string
	limits   report.Limits
	traces   traceCheck
}

func (a *app) validateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "validate [DIR --measured FILE | --fleet FLEET --trace FILE]",
		Short: "Hold a sweep against measured cells, or a fleet against captured traces",
		Long: `With a directory, compares DIR/cells.csv with measured cells: goodput, hit rate,
TTFT, recomputed prefill and winners. Errors are ratios (0.025 is 2.5%), those of
the hit rate differences.

With --trace, simulates a captured trace's own requests on --fleet and compares
them one by one. Arrivals, prompts and answer lengths are the trace's; requests go
to the replica the trace names; where it says how much was cached but not which
prompts share a prefix, that much is taken as cached. MAPE is the mean over
requests of |simulated/measured - 1|; the other errors are of means and
percentiles. REPEAT is how far a second run of the same workload is from this one.

Exits with 1 if a limit is broken.`,
		Example: `  kvfleet validate out/grid --measured ../shared/reference/rtx3090/grid.csv --max-median-error 0.025 --require-winners
  kvfleet validate --fleet cpu.yaml --trace rate4_run1.csv --repeat rate4_run2.csv --out requests.csv`,
		Args: cobra.MaximumNArgs(1),
	}
	f := newFlags(c)
	o := &validateOptions{}
	l := &o.limits
	one(f, &o.measured, files(), "measured", "grid of measured cells, CSV", "")
	c.Flags().BoolVar(&o.json, "json", false, "JSON on standard output instead of the table")
	one(f, &o.csv, files(), "csv", "also write the compared cells to this file", "")
	one(f, &l.MaxMedianError, positive(), "max-median-error", "limit on the median goodput error over stable cells", "")
	one(f, &l.MaxP90Error, positive(), "max-p90-error", "limit on its 90th percentile", "")
	one(f, &l.MaxWorstError, positive(), "max-worst-error", "limit on the worst", "")
	one(f, &l.MaxHitRateMedian, positive(), "max-hit-rate-median", "limit on the median hit rate error", "")
	one(f, &l.MaxHitRateWorst, positive(), "max-hit-rate-worst", "limit on the worst hit rate error", "")
	one(f, &l.MaxTTFTP50, positive(), "max-ttft-p50", "limit on the median error of TTFT p50", "")
	one(f, &l.MaxTTFTP99, positive(), "max-ttft-p99", "limit on the median error of TTFT p99", "")
	one(f, &l.MaxFrozenError, positive(), "max-frozen-error", "limit on the goodput error of prefix_affinity at working set 1, skew 0, whose lead must then lie in the measured range", "")
	c.Flags().BoolVar(&l.RequireWinners, "require-winners", false, "every decided point must have the right winner")
	c.Flags().BoolVar(&l.RequireOverlap, "require-overlap", false, "every unstable cell's ranges must overlap")
	o.traces.declare(f)
	complete(c, "fleet", sim.FleetNames())
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(o.traces.traces) > 0 {
			for _, dir := range args {
				f.fault("%s: means nothing with --trace", dir)
			}
			f.only(false, "with --trace", gridOnly...)
			return a.validateTraces(c.Context(), f, &o.traces, o.json)
		}
		f.only(false, "without --trace", o.traces.names()...)
		if len(args) != 1 {
			f.fault("want a sweep's directory, or --trace")
			return f.err()
		}
		return a.validate(f, o, args[0])
	}
	return c
}

// gridOnly are the flags that only a sweep needs.
var gridOnly = []string{"measured", "csv", "max-median-error", "max-p90-error", "max-worst-error", "max-hit-rate-median",
	"max-hit-rate-worst", "max-ttft-p50", "max-ttft-p99", "max-frozen-error", "require-winners", "require-overlap"}

func (a *app) validate(f *flags, o *validateOptions, dir string) error {
	if o.measured == "" {
		f.fault("--measured: missing, want a CSV of measured cells")
	}
	f.output("csv", o.csv, csvForm())
	if err := f.err(); err != nil {
		return err
	}
	cells, err := report.ReadCells(filepath.Join(dir, "cells.csv"))
	measured, errMeasured := report.ReadMeasured(o.measured)
	if err := errors.Join(err, errMeasured); err != nil {
		return err
	}
	swept, err := a.swept(dir)
	if err != nil {
		return err
	}
	for _, text := range append(swept.unfinished(), incomparable(&swept, measured)...) {
		a.talk("warning: %s", text)
	}
	v, err := report.Matcher{Defaults: swept.PolicyDefaults}.Validate(cells, measured)
	if err != nil {
		return err
	}
	if o.csv != "" {
		if err := writeOut(o.csv, v.WriteCSV); err != nil {
			return err
		}
	}
	if o.json {
		err = v.WriteJSON(a.stdout)
	} else {
		_, err = a.stdout.WriteString(v.Table())
	}
	broken := o.limits.Check(v)
	if len(broken) > 0 {
		broken = append(broken, fmt.Errorf("validate: %s broken", plural(int64(len(broken)), "limit")))
	}
	return errors.Join(append([]error{err}, broken...)...)
}

// The measured cells lasted and were counted like this, on this fleet.
const (
	measuredFleet  = "rtx3090x5"
	measuredWindow = 300 * time.Second
	measuredWarmup = 50 * time.Second
	measuredUsers  = 32
)

// incomparable says in what a sweep's cells differ from the measured ones beyond
// what is compared. What the sweep does not say is not known to differ.
func incomparable(r *sweepRecord, measured []report.MeasuredCell) []string {
	var all []string
	stated := !slices.ContainsFunc(measured, func(m report.MeasuredCell) bool { return m.Driver == "" })
	if load := r.load(); !stated && load != "" && load != report.LoadName(sim.DriverClosed, measuredUsers) {
		all = append(all, fmt.Sprintf("the measured file does not say its load; the published cells are of a %s, the sweep is of a %s",
			report.LoadName(sim.DriverClosed, measuredUsers), load))
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	if window, warmup := seconds(r.WindowS), seconds(r.WarmupS); window > 0 && (window != measuredWindow || warmup != measuredWarmup) {
		all = append(all, fmt.Sprintf("the sweep has a window of %v and a warm-up of %v, the measured cells have %v and %v: rates and percentiles are not of the same time",
			window, warmup, measuredWindow, measuredWarmup))
	}
	if name := r.Fleet.Name; name != "" && name != measuredFleet {
		all = append(all, fmt.Sprintf("the sweep is of fleet %s, the measured cells are of %s", name, measuredFleet))
	}
	return all
}
