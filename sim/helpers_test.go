package sim

import (
	"context"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/sim/latency"
	"kvfleet/traces"
	"kvfleet/traces/summary"
	"kvfleet/traces/workload"
)

func loadFleet(t testing.TB, name string) *Fleet {
	t.Helper()
	f, err := LoadFleet(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func choice(t testing.TB, text string) policies.Choice {
	t.Helper()
	c, err := policies.ParseChoice(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// smallFleet is three replicas that are quick to simulate and easily full: 140
// blocks of 16 tokens each, and everything that happens around a replica happens
// often.
func smallFleet(t testing.TB) *Fleet {
	f := loadFleet(t, "testdata/fleet.yaml").Scale(3)
	f.Engine.Blocks = 141
	f.Engine.TokenBudget = 256
	f.Step.NoiseShare = 0.01
	f.Step.HostMS, f.Step.HostRequestMS = 1, 0.1
	f.Step.DecodeLadder = []latency.Rung{{Batch: 1, MS: 4, ContextMS: 1e-4}, {Batch: 4, MS: 5, ContextMS: 2e-4}, {Batch: 8, MS: 8, ContextMS: 2e-4}}
	f.Router.ReportEvery, f.Router.ReportWindow = time.Second, 10*time.Second
	f.Router.OverheadMS = 0.1
	f.Router.EventDelayMS = 3
	f.Health = Health{Interval: 200 * time.Millisecond, Failures: 2, Passes: 2, StartUp: 700 * time.Millisecond}
	f.Tokenizer.SpreadShare, f.Tokenizer.SpreadBytes = 0.02, 256
	return f
}

// smallLoad is a workload of three-turn sessions that together are three times
// the small fleet's cache.
func smallLoad(t testing.TB, f *Fleet) workload.MultiTurn {
	t.Helper()
	w, err := workload.MultiTurn{
		WorkingSet: 3, FleetTokens: f.KVTokens(), Turns: 3, PromptTokens: 120, OutputTokens: 40, Skew: 1,
		SystemShare: 0.5, SystemTokens: 32, BranchShare: 0.3, BranchFamilies: 2, Seed: 7,
	}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// drive runs a configuration as Run does, and calls after when each event has
// been handled: it is for tests that look inside.
func drive(t testing.TB, cfg Config, row func(*traces.Row), after func(*cluster)) Result {
	t.Helper()
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	if cfg.Think == 0 {
		cfg.Think = 5 * time.Second
	}
	acc, err := summary.New(summary.Options{Warmup: cfg.Warmup, Window: cfg.Window, SLO: cfg.Fleet.SLO.Limit()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCluster(&cfg, func(r *traces.Row) { acc.Add(r); row(r) })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.setDriver(); err != nil {
		t.Fatal(err)
	}
	after(c)
	if err := c.driver.start(c); err != nil {
		t.Fatal(err)
	}
	after(c)
	for c.loop.Step() {
		if err := c.audit(false); err != nil {
			t.Fatal(err)
		}
		after(c)
	}
	if err := c.audit(true); err != nil {
		t.Fatal(err)
	}
	return c.result(acc)
}

// rowsOf runs a configuration and keeps copies of its rows, in the order they
// ended.
func rowsOf(t testing.TB, cfg Config) ([]traces.Row, Result) {
	t.Helper()
	var rows []traces.Row
	cfg.Rows = func(r *traces.Row) { rows = append(rows, *r) }
	result, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rows, result
}

// catalog is every policy there is, with its defaults.
func catalog(t testing.TB) []policies.Choice {
	t.Helper()
	var all []policies.Choice
	for _, s := range policies.Catalog() {
		all = append(all, choice(t, s.Name))
	}
	return all
}
