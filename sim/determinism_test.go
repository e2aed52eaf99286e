package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"kvfleet/traces"
	"kvfleet/traces/workload"
)

// sameRows compares all fields of all rows.
func sameRows(t testing.TB, what string, got, want []traces.Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d rows, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s: row %d: got\n%+v, want\n%+v", what, i+1, got[i], want[i])
			return
		}
	}
}

// A run is a function of its configuration: rows, counters and summary are the
// same again, on one processor and on two, and with prompts shared with a run
// before it.
func TestSameConfigSameRows(t *testing.T) {
	for _, driver := range driverNames {
		for _, p := range catalog(t) {
			t.Run(driver+"/"+p.Spec.Name, func(t *testing.T) {
				config := func() Config {
					rng := rand.New(rand.NewPCG(5, 5))
					cfg := lawful(t, driver, rng)
					cfg.Policy, cfg.Faults, cfg.Audit = p, randomFaults(rng, cfg.Fleet, cfg.Window), false
					return cfg
				}
				cfg := config()
				if cfg.Trace == nil {
					cfg.Content = cfg.Workload.Content(cfg.Epoch, cfg.Fleet.Tokenizer, cfg.Fleet.Engine.BlockSize)
					cfg.Draws = cfg.Workload.Draws()
				}
				want, wantResult := rowsOf(t, cfg)
				shared, _ := rowsOf(t, cfg)
				for i := range shared {
					shared[i].Blocks, want[i].Blocks = nil, nil // numbered by who asked first
				}
				sameRows(t, "prompts of the run before", shared, want)
				for _, n := range []int{1, 2} {
					was := runtime.GOMAXPROCS(n)
					got, result := rowsOf(t, config())
					runtime.GOMAXPROCS(was)
					for i := range got {
						got[i].Blocks = nil
					}
					sameRows(t, fmt.Sprintf("GOMAXPROCS %d", n), got, want)
					if a, b := fmt.Sprintf("%+v", result), fmt.Sprintf("%+v", wantResult); a != b {
						t.Errorf("GOMAXPROCS %d: got result\n%s, want\n%s", n, a, b)
					}
				}
			})
		}
	}
}

// Blocks are equal again too when nothing was shared.
func TestSameConfigSameBlocks(t *testing.T) {
	run := func() []traces.Row {
		cfg := lawful(t, DriverTrace, rand.New(rand.NewPCG(6, 6)))
		cfg.Policy = choice(t, "exact_residency")
		rows, _ := rowsOf(t, cfg)
		return rows
	}
	sameRows(t, "again", run(), run())
}

// Another seed is another run.
func TestOtherSeedOtherRows(t *testing.T) {
	cfg := lawful(t, DriverOpen, rand.New(rand.NewPCG(7, 7)))
	cfg.Policy = choice(t, "round_robin")
	a, _ := rowsOf(t, cfg)
	cfg.Seed++
	b, _ := rowsOf(t, cfg)
	if reflect.DeepEqual(a, b) {
		t.Error("two seeds give the same rows")
	}
}

// Advancing decode stretches in closed form changes no row, whatever happens to
// the fleet meanwhile.
func TestStepwiseRowsAreTheSame(t *testing.T) {
	for _, driver := range driverNames {
		for _, p := range catalog(t) {
			t.Run(driver+"/"+p.Spec.Name, func(t *testing.T) {
				for s := range 2 {
					rng := rand.New(rand.NewPCG(uint64(s), 9))
					cfg := lawful(t, driver, rng)
					cfg.Policy, cfg.Faults, cfg.Audit = p, randomFaults(rng, cfg.Fleet, cfg.Window), false
					if s == 1 {
						cfg.Fleet.Engine.IdleTTL = 500 * time.Millisecond
						cfg.Fleet.Engine.Async = true
					}
					closedForm, a := rowsOf(t, cfg)
					cfg.Stepwise = true
					stepwise, b := rowsOf(t, cfg)
					sameRows(t, "closed form", closedForm, stepwise)
					if !reflect.DeepEqual(a.IdleBeforeEvict, b.IdleBeforeEvict) || a.Preemptions != b.Preemptions || a.Steps != b.Steps || a.End != b.End {
						t.Errorf("got %d evictions, %d preemptions, %d steps until %v, stepwise %d, %d, %d, %v", a.IdleBeforeEvict.N(), a.Preemptions, a.Steps, a.End,
							b.IdleBeforeEvict.N(), b.Preemptions, b.Steps, b.End)
					}
					if a.Events >= b.Events {
						t.Errorf("closed form takes %d events, stepwise %d", a.Events, b.Events)
					}
				}
			})
		}
	}
}

// Nor does it where cards heat up: what a stretch has done of a second's work is
// booked to that second.
func TestStepwiseHeatIsTheSame(t *testing.T) {
	f := loadFleet(t, "rtx3090x6")
	load, err := workload.Published(1, 1, f.KVTokens(), 1).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Fleet: f, Policy: choice(t, "prefix_affinity"), Seed: 1, Workload: load, Users: 32, Window: 40 * time.Second, Epoch: 1}
	closedForm, _ := rowsOf(t, cfg)
	cfg.Stepwise = true
	stepwise, _ := rowsOf(t, cfg)
	sameRows(t, "closed form", closedForm, stepwise)
}

// A cancelled run says when it was stopped, and why.
func TestCancelledRun(t *testing.T) {
	cfg := lawful(t, DriverClosed, rand.New(rand.NewPCG(8, 8)))
	cfg.Policy, cfg.Window = choice(t, "round_robin"), 10*time.Minute
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	cfg.Rows = func(*traces.Row) {
		if n++; n == 50 {
			cancel()
		}
	}
	_, err := Run(ctx, cfg)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "of virtual time") || n > 5000 {
		t.Fatalf("got %v after %d rows, want the context's error soon", err, n)
	}
}

// What a configuration lacks, and what does not fit a fleet, is said.
func TestConfigFaults(t *testing.T) {
	f := smallFleet(t)
	cfg := Config{Fleet: f, Policy: choice(t, "round_robin"), Users: -1, Rate: -1, Warmup: time.Second, Faults: []Fault{
		{Replica: "z", Kind: "kill"}, {Replica: "replica-0", Kind: "slow"}, {Replica: "replica-0", Kind: "melt", At: -1},
		{Replica: "replica-0", Kind: "kill", For: 1, Factor: 2},
		{Replica: "replica-1", Kind: "slow", Factor: 2, At: 5 * time.Second},
		{Replica: "replica-1", Kind: "slow", Factor: 2, At: 7 * time.Second, For: time.Second},
		{Replica: "replica-1", Kind: "event_gap", At: 7 * time.Second},
		{Replica: "replica-1", Kind: "slow", Factor: 2, At: 4 * time.Second, For: time.Second},
	}}
	_, err := Run(context.Background(), cfg)
	wantError(t, err, "exactly one of users, rate and trace, got 2", "users: got -1", "rate: got -1", "window: got 0s",
		"faults[0]: replica: got \"z\", want one of fleet story: replica-0, replica-1", "faults[1]: factor: got 0", "faults[2]: kind: got \"melt\"",
		"faults[2]: at, for: got -1ns", "faults[3]: factor: given for kill", "faults[3]: for: given for kill", "faults[5]: slow of replica-1 overlaps faults[4]")
	if n := strings.Count(err.Error(), "overlaps"); n != 1 {
		t.Errorf("%d overlaps told, want 1: %v", n, err)
	}
	_, err = Run(context.Background(), Config{})
	wantError(t, err, "no fleet")
	cfg = Config{Fleet: f, Policy: choice(t, "round_robin"), Users: 1, Window: time.Second, Warmup: time.Second, Workload: smallLoad(t, f)}
	_, err = Run(context.Background(), cfg)
	wantError(t, err, "warmup: got 1s of a window of 1s")
	cfg.Warmup, cfg.Workload.PromptTokens = 0, 4000
	_, err = Run(context.Background(), cfg)
	wantError(t, err, "its prompts reach about", "takes 4096")
	cfg.Workload.PromptTokens = 800
	_, err = Run(context.Background(), cfg)
	wantError(t, err, "a replica of fleet story holds 2240")
	cfg = lawful(t, DriverOpen, rand.New(rand.NewPCG(1, 1)))
	cfg.Policy, cfg.Arrivals = choice(t, "round_robin"), "sometimes"
	_, err = Run(context.Background(), cfg)
	wantError(t, err, "sometimes")
	cfg.Fleet.Router.BeliefTTL, cfg.Policy = 0, choice(t, "prefix_affinity")
	_, err = Run(context.Background(), cfg)
	wantError(t, err, "ttl")
}

// wantError wants an error that says all of that.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("got no error, want one that says %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("got error %q, want it to say %q", err, p)
		}
	}
}
