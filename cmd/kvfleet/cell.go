package main

import (
	"github.com/spf13/cobra"

	"kvfleet/sim"
	"kvfleet/traces"
	"kvfleet/traces/seed"
	"kvfleet/traces/workload"
)

// cellOptions describe one cell: a fleet, a workload and how it is sent.
type cellOptions struct {
	fleet            fleetOptions
	workingSet, skew float64
	sessions         int
	users            int
	rate             float64
	load             loadOptions
	repetition       int
}

// declare adds the flags that a cell and a generated trace have in common.
func (o *cellOptions) declare(f *flags, c *cobra.Command) {
	o.fleet.declare(f, c)
	one(f, &o.workingSet, positive(), "working-set", "session-pool tokens over the fleet's KV tokens", "1")
	one(f, &o.sessions, counts(1), "sessions", "size of the session pool, instead of --working-set", "")
	one(f, &o.skew, notNegative(), "skew", "Zipf exponent over the session pool; 0 is uniform", "0")
	one(f, &o.repetition, counts(1), "repetition", "which repetition's bytes are sent", "1")
}

// driver names what drives the cell, and its load.
func (o *cellOptions) driver(f *flags) (string, float64) {
	if f.given("rate") {
		return sim.DriverOpen, o.rate
	}
	return sim.DriverClosed, float64(o.users)
}

// workload is the cell's workload and epoch; whatever is wrong becomes a fault.
func (o *cellOptions) workload(f *flags, fleet fleetFile, driver string, load float64) (workload.MultiTurn, int) {
	if f.given("sessions") && f.given("working-set") {
		f.fault("--sessions and --working-set: want one of them")
	}
	m := workload.Published(o.workingSet, o.skew, fleet.KVTokens(), seed.Seed(o.load.seed))
	m.Sessions = o.sessions
	m, err := m.Resolve()
	if err != nil {
		f.fault("%w", err)
		return m, 0
	}
	if o.sessions > 0 {
		o.workingSet = float64(m.Sessions*m.Turns*(m.PromptTokens+m.OutputTokens)) / float64(fleet.KVTokens())
	}
	return m, sim.Epoch(driver, load, o.workingSet, o.skew, o.repetition)
}

// meta says what the rows of a cell are.
func (o *cellOptions) meta(fleet fleetFile, m workload.MultiTurn, driver string, load float64) traces.Meta {
	v := readVersions()
	return traces.Meta{
		Producer: "kvfleet " + v.KVFleet, Commit: v.Commit, Seed: o.load.seed, Clock: traces.ClockVirtual,
		Workload: m.Name(), SLO: fleet.SLO.Limit(), Fleet: fleet.meta(),
		Cell: traces.Cell{
			Driver: driver, Load: load, WorkingSet: o.workingSet, Skew: o.skew, Repetition: int64(o.repetition),
		},
	}
}
