package main

import (
	"path/filepath"

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
from for each, and a table on standard output.`,
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
		f.fault("--policy and --baseline: want both or neither")
	}
	if err := f.err(); err != nil {
		return err
	}
	cells, err := report.ReadCells(filepath.Join(dir, "cells.csv"))
	if err != nil {
		return err
	}
	fleet, defaults, err := a.sweptFleet(dir)
	if err != nil {
		return err
	}
	if o.out == "" {
		o.out = dir
	}
	paths, text, err := report.WriteMaps(o.out, cells, report.MapOptions{
		Policy: o.policy, Baseline: o.baseline, Fleet: fleet, Defaults: defaults,
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

// sweptFleet is the fleet that a sweep's cells are of, and what the plain names
// of policies mean there. A sweep that does not say is taken to be of the
// default fleet.
func (a *app) sweptFleet(dir string) (name string, defaults report.Defaults, err error) {
	r, found, err := readSweepRecord(filepath.Join(dir, sweepFile))
	if err != nil {
		return "", nil, err
	}
	if found && len(r.PolicyDefaults) > 0 {
		return r.Fleet.Name, r.PolicyDefaults, nil
	}
	a.talk("%s does not say which fleet it is of; taking the defaults of policies from %s", dir, defaultFleet)
	fleet, err := loadFleet(defaultFleet)
	if err != nil {
		return "", nil, err
	}
	return "", fleet.defaults(), nil
}
