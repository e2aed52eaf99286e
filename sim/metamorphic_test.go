package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/sim/engine"
	"kvfleet/traces"
)

// replayed runs a random trace on the small fleet.
func replayed(t testing.TB, p policies.Choice, s uint64, change func(*Config)) []traces.Row {
	t.Helper()
	rng := rand.New(rand.NewPCG(s, 21))
	cfg := lawful(t, DriverTrace, rng)
	cfg.Policy, cfg.Window = p, 0
	cfg.Faults = randomFaults(rng, cfg.Fleet, 10*time.Second)
	change(&cfg)
	rows, _ := rowsOf(t, cfg)
	return rows
}

// Everything a minute and a half later is the same run a minute and a half
// later. (A multiple of the interval of health checks, which tick from 0 on.)
func TestShiftedTimes(t *testing.T) {
	const shift = 90 * time.Second
	for _, p := range catalog(t) {
		want := replayed(t, p, 1, func(*Config) {})
		got := replayed(t, p, 1, func(cfg *Config) {
			for i := range cfg.Trace {
				cfg.Trace[i].ScheduledAt += int64(shift)
			}
			for i := range cfg.Faults {
				cfg.Faults[i].At += shift
			}
		})
		for i := range got {
			r := &got[i]
			for _, at := range []*int64{
				&r.ScheduledAt, &r.ReceivedAt, &r.DecidedAt, &r.DispatchedAt,
				&r.SentAt, &r.FirstByteAt, &r.FirstTokenAt, &r.LastTokenAt, &r.EndedAt,
			} {
				if *at != traces.None {
					*at -= int64(shift)
				}
			}
		}
		sameRows(t, p.Spec.Name, got, want)
	}
}

// What a session is called matters only to the policies that hash the name.
func TestRenamedSessions(t *testing.T) {
	hashed := map[string]bool{"session_affinity": true, "bounded_session_affinity": true}
	for _, p := range catalog(t) {
		want := replayed(t, p, 2, func(*Config) {})
		got := replayed(t, p, 2, func(cfg *Config) {
			for i := range cfg.Trace {
				if s := &cfg.Trace[i].Session; *s != "" {
					*s = "renamed-" + *s
				}
			}
		})
		moved := 0
		for i := range min(len(got), len(want)) {
			if want[i].Session != "" && !hashed[p.Spec.Name] {
				want[i].Session = "renamed-" + want[i].Session
			}
			if got[i].Replica != want[i].Replica {
				moved++
			}
		}
		if hashed[p.Spec.Name] {
			if moved == 0 {
				t.Errorf("%s: no request moved with its session's name", p.Spec.Name)
			}
			continue
		}
		sameRows(t, p.Spec.Name, got, want)
	}
}

// distinctTrace is n prompts that share nothing, at Poisson times.
func distinctTrace(rng *rand.Rand, n int, perSecond float64) []Prompt {
	var trace []Prompt
	at := 0.0
	for i := range n {
		at += rng.ExpFloat64() / perSecond
		p := Prompt{
			RequestID: fmt.Sprint(i), ScheduledAt: int64(at * 1e9), Tokens: 1 + rng.IntN(500), Stop: 1 + rng.IntN(40), Distinct: true,
			Session: fmt.Sprint("s", rng.IntN(9)), Source: traces.SessionSupplied,
		}
		p.Max = p.Stop
		trace = append(trace, p)
	}
	return trace
}

// Replicas that are alike get alike: exactly, in turn; by chance at most, on
// load.
func TestSymmetricReplicas(t *testing.T) {
	const n, replicas = 4000, 5
	for _, c := range []struct {
		policy string
		most   float64 // chi-square, 4 degrees of freedom
	}{
		{"round_robin", 1e-9}, {"least_outstanding", 18.47}, {"power_of_two", 18.47}, // 1 in 1,000 runs is above
	} {
		f := smallFleet(t).Scale(replicas)
		cfg := Config{Fleet: f, Policy: choice(t, c.policy), Seed: 11, Trace: distinctTrace(rand.New(rand.NewPCG(3, 3)), n, 40)}
		rows, _ := rowsOf(t, cfg)
		count := map[string]float64{}
		for _, r := range rows {
			count[r.Replica]++
		}
		chi := 0.0
		for _, r := range f.Replicas {
			d := count[r.Name] - n/replicas
			chi += d * d / (n / replicas)
		}
		if chi > c.most {
			t.Errorf("%s: placed %v, chi-square %.1f, want at most %v", c.policy, count, chi, c.most)
		}
	}
}

// With prompts that share nothing there is nothing to follow: a prefix policy is
// its load rule. The rows are the same but for what they say of the decision.
func TestDistinctPromptsFollowLoad(t *testing.T) {
	run := func(policy string) []traces.Row {
		f := smallFleet(t)
		f.Router.TokenizeMS = 0
		cfg := Config{Fleet: f, Policy: choice(t, policy), Seed: 11, Trace: distinctTrace(rand.New(rand.NewPCG(4, 4)), 1500, 30)}
		rows, _ := rowsOf(t, cfg)
		for i := range rows {
			r := &rows[i]
			r.Policy, r.Reason, r.MatchBytes, r.MatchTokens, r.TokenizeTime = "", "", 0, 0, 0
		}
		return rows
	}
	want := run("least_outstanding")
	for _, policy := range []string{"prefix_affinity", "exact_residency", "exact_speculative", "prefix_affinity:spill_factor=0"} {
		sameRows(t, policy, run(policy), want)
	}
}

// Requests that all arrive at once wait for steps alone, so steps twice as fast
// halve every wait.
func TestTwiceAsFast(t *testing.T) {
	mean := func(factor float64) float64 {
		f := smallFleet(t).Scale(1)
		f.FrontEnd = FrontEnd{}
		f.Step.NoiseShare = 0
		f.Step.DenseTokenMS *= factor
		f.Step.HostMS *= factor
		f.Step.HostRequestMS *= factor
		for i := range f.Step.DecodeLadder {
			f.Step.DecodeLadder[i].MS *= factor
		}
		cfg := Config{Fleet: f, Policy: choice(t, "round_robin"), Trace: distinctTrace(rand.New(rand.NewPCG(5, 5)), 80, 1e9)}
		rows, _ := rowsOf(t, cfg)
		sum := 0.0
		for _, r := range rows {
			sum += float64(r.QueueTime)
		}
		return sum / float64(len(rows))
	}
	slow, fast := mean(1), mean(0.5)
	if ratio := fast / slow; ratio < 0.49 || ratio > 0.51 {
		t.Errorf("mean wait %v, with steps twice as fast %v, want half", time.Duration(slow), time.Duration(fast))
	}
}

// A fault of factor 2 from the start on is a fleet whose engines and front ends
// are half as fast.
func TestSlowFromTheStart(t *testing.T) {
	run := func(faults []Fault, factor float64) []traces.Row {
		f := smallFleet(t).Scale(1)
		f.Step.NoiseShare = 0
		f.Step.DenseTokenMS *= factor
		f.Step.HostMS *= factor
		f.Step.HostRequestMS *= factor
		f.Step.PairMS *= factor
		f.FrontEnd.ServiceMS *= factor
		f.FrontEnd.DelayMS *= factor
		for i := range f.Step.DecodeLadder {
			f.Step.DecodeLadder[i].MS *= factor
			f.Step.DecodeLadder[i].ContextMS *= factor
		}
		cfg := Config{Fleet: f, Policy: choice(t, "round_robin"), Faults: faults, Trace: distinctTrace(rand.New(rand.NewPCG(6, 6)), 50, 2)}
		rows, _ := rowsOf(t, cfg)
		return rows
	}
	faulty := run([]Fault{{Replica: "replica-0", Kind: "slow", Factor: 2}}, 1)
	slow := run(nil, 2)
	for i := range slow {
		if got, want := faulty[i].E2E(), slow[i].E2E(); got < want-want/10000 || got > want+want/10000 {
			t.Errorf("request %d: took %v, want %v", i, time.Duration(got), time.Duration(want))
		}
	}
}

// Looking changes nothing: logs and ids are taken of the same run.
func TestLookingChangesNothing(t *testing.T) {
	for _, p := range catalog(t) {
		want := replayed(t, p, 3, func(cfg *Config) { cfg.KeepIDs, cfg.Audit = false, false })
		decisions, steps := 0, 0
		got := replayed(t, p, 3, func(cfg *Config) {
			cfg.Decided = func(DecisionRecord) { decisions++ }
			cfg.Steps = func(string, engine.Step) { steps++ }
		})
		placed := 0
		for i := range got {
			got[i].RequestID, got[i].Blocks, got[i].BlockSize = "", nil, 0
			placed += int(got[i].Reroutes)
			if got[i].Replica != "" {
				placed++
			}
		}
		sameRows(t, p.Spec.Name, got, want)
		if decisions != placed || steps == 0 {
			t.Errorf("%s: %d decisions logged of %d, %d steps", p.Spec.Name, decisions, placed, steps)
		}
	}
}
