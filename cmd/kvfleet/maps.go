package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kvfleet/traces/report"
)

type mapOptions struct{ policy, baseline, out string }

func (a *app) mapCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "map DIR",
		Short: "Draw a sweep's pressure map, regime map and goodput curves",
		Long: `Draws, from DIR/cells.csv, the pressure map of two policies, which policy wins
each point, and goodput against working set: an SVG and the JSON it is drawn
from for each, and a table on standard output.

Of a sweep with --fleet-samples, points of the regime map that depend on the
calibration are marked and told: those whose first policy is behind the best by
more than the spread under over 5% of the draws in DIR/samples.csv.`,
		Example: "  kvfleet map out/grid --policy prefix_affinity --baseline round_robin",
		Args:    cobra.ExactArgs(1),
	}
	f := newFlags(c)
	o := &mapOptions{}
	one(f, &o.policy, words(), "policy", "of the pressure map (default: the one that beats session_affinity most often)", "")
	one(f, &o.baseline, words(), "baseline", "what it is compared with", "")
	complete(c, "policy", policyNames())
	complete(c, "baseline", policyNames())
	one(f, &o.out, directories(), "out", "where the figures go (default: DIR)", "")
	c.RunE = func(_ *cobra.Command, args []string) error { return a.maps(f, o, args[0]) }
	return c
}

func (a *app) maps(f *flags, o *mapOptions, dir string) error {
	if (o.policy == "") != (o.baseline == "") {
		f.fault("--policy and --baseline: want both or neither%s", a.sweptPolicies(dir))
	}
	if err := f.err(); err != nil {
		return err
	}
	cells, err := report.ReadCells(filepath.Join(dir, "cells.csv"))
	if err != nil {
		return err
	}
	swept, err := a.swept(dir)
	if err != nil {
		return err
	}
	samples, err := readSamples(dir)
	if err != nil {
		return err
	}
	for _, text := range append(swept.unfinished(), swept.undrawn()...) {
		a.talk("warning: %s", text)
	}
	if o.out == "" {
		o.out = dir
	}
	paths, text, err := report.WriteMaps(o.out, cells, report.MapOptions{
		Policy: o.policy, Baseline: o.baseline, Fleet: swept.Fleet.Name, Defaults: swept.PolicyDefaults, Samples: samples,
	})
	if err != nil {
		return err
	}
	for _, path := range paths {
		a.talk("wrote %s", path)
	}
	_, err = a.stdout.WriteString(text)
	return err
}

// readSamples reads the cells of draws; a sweep without them is no error.
func readSamples(dir string) ([]report.Sample, error) {
	samples, err := report.ReadSamples(filepath.Join(dir, "samples.csv"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return samples, err
}

// sweptPolicies says which policies a sweep has, if it can be read.
func (a *app) sweptPolicies(dir string) string {
	cells, err := report.ReadCells(filepath.Join(dir, "cells.csv"))
	if err != nil {
		return ""
	}
	var names []string
	for _, c := range cells {
		names = append(names, c.Policy)
	}
	slices.Sort(names)
	return "; the sweep has " + strings.Join(slices.Compact(names), ", ")
}

// swept is what a sweep says of itself: its fleet, and what the plain names of
// policies mean there. Of one that does not say, the defaults are those of the
// default fleet, and nothing else is known.
func (a *app) swept(dir string) (sweepRecord, error) {
	r, found, err := readSweepRecord(filepath.Join(dir, sweepFile))
	if err != nil || found && len(r.PolicyDefaults) > 0 {
		return r, err
	}
	a.talk("%s does not say which fleet it is of; taking the defaults of policies from %s", dir, defaultFleet)
	fleet, err := loadFleet(defaultFleet)
	if err != nil {
		return r, err
	}
	return sweepRecord{PolicyDefaults: fleet.defaults()}, nil
}
