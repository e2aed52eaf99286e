package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/traces"
)

// byID runs a configuration and finds its rows by their request ids.
func byID(t testing.TB, cfg Config) map[string]traces.Row {
	t.Helper()
	cfg.KeepIDs = true
	rows, _ := rowsOf(t, cfg)
	m := map[string]traces.Row{}
	for _, r := range rows {
		if _, twice := m[r.RequestID]; twice {
			t.Errorf("request %s ended twice", r.RequestID)
		}
		m[r.RequestID] = r
	}
	if len(m) != len(cfg.Trace) {
		t.Errorf("%d requests ended of %d", len(m), len(cfg.Trace))
	}
	return m
}

// plainPrompt is a prompt that shares nothing.
func plainPrompt(id string, at time.Duration) Prompt {
	return Prompt{RequestID: id, ScheduledAt: int64(at), Tokens: 100, Max: 10, Stop: 10, Distinct: true}
}

// follower waits for the prompt in that place to end, and then for the gap.
func follower(id string, place int, gap time.Duration) Prompt {
	p := plainPrompt(id, gap)
	p.After = place + 1
	return p
}

// Alice has two follow-ups, one of which has its own; bob's prompt is too long for
// any replica, and his next comes all the same. A request that nobody follows is
// sent when it is due.
func TestFollowers(t *testing.T) {
	tooLong := plainPrompt("bob", 50*time.Millisecond)
	tooLong.Tokens = 5000
	trace := []Prompt{
		plainPrompt("alice", 0), tooLong, follower("alice again", 0, 30*time.Millisecond), follower("alice's tab", 0, 0),
		follower("bob again", 1, time.Second), plainPrompt("carol", 70*time.Millisecond), follower("alice still", 2, 40*time.Second),
	}
	for _, policy := range []string{"round_robin", "exact_residency"} {
		rows := byID(t, Config{Fleet: smallFleet(t), Policy: choice(t, policy), Trace: trace, Audit: true})
		for i, p := range trace {
			r := rows[p.RequestID]
			due := p.ScheduledAt
			if p.After > 0 {
				due += rows[trace[p.After-1].RequestID].EndedAt
			}
			if r.SentAt != due {
				t.Errorf("%s: %s was sent at %v, want %v", policy, p.RequestID, time.Duration(r.SentAt), time.Duration(due))
			}
			if (r.ScheduledAt == traces.None) != (p.After > 0) {
				t.Errorf("%s: %s is said to have been due at %d", policy, p.RequestID, r.ScheduledAt)
			}
			if want := traces.Success; i != 1 && r.Outcome != want {
				t.Errorf("%s: %s: %v", policy, p.RequestID, r.Outcome)
			}
		}
		if rows["bob"].Outcome != traces.Failed {
			t.Errorf("bob: %v, want his prompt refused", rows["bob"].Outcome)
		}
	}
}

// A user whose requests wait for one another has one request at a time, however
// slow the fleet is, and the fleet's periodic work goes on in the gaps.
func TestFollowersAreAClosedLoop(t *testing.T) {
	const users, turns = 4, 6
	rng := rand.New(rand.NewPCG(8, 8))
	var trace []Prompt
	for turn := range turns {
		for u := range users {
			p := plainPrompt(fmt.Sprint(u, "/", turn), 0)
			p.User, p.Tokens = u, 50+rng.IntN(400)
			if turn > 0 {
				p.After, p.ScheduledAt = len(trace)-users+1, int64(rng.IntN(3e9))
			}
			trace = append(trace, p)
		}
	}
	for _, slow := range []float64{1, 20} {
		f := smallFleet(t)
		f.Router.ReportEvery, f.Router.ReportWindow = 200*time.Millisecond, 100*time.Second
		var faults []Fault
		for _, r := range f.Replicas {
			faults = append(faults, Fault{Replica: r.Name, Kind: "slow", Factor: slow})
		}
		p, err := policies.ParseChoice("prefix_affinity:hit_rate_low_water=0.5")
		if err != nil {
			t.Fatal(err)
		}
		rows := byID(t, Config{Fleet: f, Policy: p, Trace: trace, Faults: faults, Audit: true})
		aged := 0
		for i, p := range trace {
			r := rows[p.RequestID]
			if p.After > 0 {
				if before := rows[trace[p.After-1].RequestID]; r.SentAt-before.EndedAt != p.ScheduledAt {
					t.Errorf("slow by %v: row %d was sent %v after the one before ended, want %v", slow, i+1, time.Duration(r.SentAt-before.EndedAt), time.Duration(p.ScheduledAt))
				}
			}
			if r.SignalAge == traces.None {
				continue
			}
			aged++
			if age := time.Duration(r.SignalAge); age > f.Router.ReportEvery {
				t.Errorf("slow by %v: row %d: the last report was %v old: reports ended in a gap", slow, i+1, age)
			}
		}
		if aged < users*turns/2 {
			t.Errorf("slow by %v: %d rows know of a report", slow, aged)
		}
	}
}

// Faults drop a request; the one that follows it is sent when it was dropped.
func TestFollowersOfTheDropped(t *testing.T) {
	f := smallFleet(t).Scale(1)
	trace := []Prompt{plainPrompt("alice", 0), follower("alice again", 0, 2*time.Second)}
	trace[0].Max, trace[0].Stop = 300, 300
	rows := byID(t, Config{Fleet: f, Policy: choice(t, "round_robin"), Trace: trace, Audit: true, Faults: []Fault{
		{At: 200 * time.Millisecond, Replica: "replica-0", Kind: "kill"}, {At: 300 * time.Millisecond, Replica: "replica-0", Kind: "restart"},
	}})
	first, again := rows["alice"], rows["alice again"]
	if first.Outcome != traces.Dropped || again.Outcome != traces.Success || again.SentAt != first.EndedAt+2e9 {
		t.Errorf("%v at %v, then %v, sent at %v; want dropped, and a success sent 2s later",
			first.Outcome, time.Duration(first.EndedAt), again.Outcome, time.Duration(again.SentAt))
	}
}

// What a trace cannot ask for is an error that names the row.
func TestFollowersThatCannotBe(t *testing.T) {
	self, backwards, early := follower("b", 1, 0), follower("b", 0, -time.Second), plainPrompt("c", -1)
	negative, unknown := plainPrompt("b", 0), plainPrompt("b", 0)
	negative.After, unknown.Replica = -1, "replica-9"
	for _, c := range []struct {
		trace []Prompt
		want  string
	}{
		{[]Prompt{plainPrompt("a", 0), self}, "trace row 2: follows row 2, want one before it"},
		{[]Prompt{plainPrompt("a", 0), negative}, "trace row 2: follows row -1, want one before it"},
		{[]Prompt{plainPrompt("a", 0), backwards}, "trace row 2: due at -1s"},
		{[]Prompt{plainPrompt("a", 5), follower("b", 0, 1), plainPrompt("c", 4)}, "trace row 3: due at 4ns, want times from 0 on in rising order"},
		{[]Prompt{early}, "trace row 1: due at -1ns"},
		{[]Prompt{plainPrompt("a", 0), unknown}, "trace row 2: replica replica-9, which fleet story does not have"},
	} {
		_, err := Run(context.Background(), Config{Fleet: smallFleet(t), Policy: choice(t, "round_robin"), Trace: c.trace})
		wantError(t, err, c.want)
	}
	// A gap is no due time: followers' need not rise.
	byID(t, Config{Fleet: smallFleet(t), Policy: choice(t, "round_robin"), Trace: []Prompt{plainPrompt("a", 5), follower("b", 0, 9), follower("c", 1, 1)}})
}

// Every policy sends a request where the recording says, and the books say so too:
// a policy that spreads by load sees what was placed for it.
func TestRecordedPlaces(t *testing.T) {
	for _, p := range catalog(t) {
		rng := rand.New(rand.NewPCG(9, 9))
		cfg := lawful(t, DriverTrace, rng)
		cfg.Policy, cfg.Window = p, 0
		free := 0
		for i := range cfg.Trace {
			if rng.IntN(4) > 0 {
				cfg.Trace[i].Replica = cfg.Fleet.Replicas[rng.IntN(2)].Name
			}
		}
		rows := byID(t, cfg)
		elsewhere := 0
		for _, q := range cfg.Trace {
			r := rows[q.RequestID]
			switch {
			case r.Outcome != traces.Success:
			case q.Replica == "":
				free++
				if r.Replica == cfg.Fleet.Replicas[2].Name {
					elsewhere++
				}
			case r.Replica != q.Replica:
				t.Errorf("%s: request %s went to %s, recorded %s", p.Spec.Name, q.RequestID, r.Replica, q.Replica)
			}
		}
		if p.Spec.Name == "least_outstanding" && elsewhere < free*2/3 {
			t.Errorf("%d of %d free requests went to the replica that nobody was held to: the others' load was not seen", elsewhere, free)
		}
	}
}

// What the recording found cached is what the row says, and it is computed no
// more: the more was cached, the sooner the first token.
func TestRecordedHits(t *testing.T) {
	f := smallFleet(t)
	f.Step.NoiseShare = 0
	before := int64(1 << 62)
	for _, cached := range []int{0, 50, 150, 199, 200, 999} {
		p := plainPrompt("a", 0)
		p.Tokens, p.Recorded = 200, cached+1
		r := byID(t, Config{Fleet: f, Policy: choice(t, "round_robin"), Trace: []Prompt{p}, Audit: true})["a"]
		if want := int64(min(cached, 199)); r.CachedTokens != want {
			t.Errorf("recorded %d: got %d cached, want %d", cached, r.CachedTokens, want)
		}
		if cached < 200 && r.TTFT() >= before {
			t.Errorf("%d cached: first token after %v, with fewer cached after %v", cached, time.Duration(r.TTFT()), time.Duration(before))
		}
		before = r.TTFT()
	}
}

// A request that is placed again, because its replica died before anyone saw
// anything of it, still has what the recording says.
func TestRecordedHitsArePlacedAgain(t *testing.T) {
	p := plainPrompt("a", 0)
	p.Tokens, p.Recorded = 200, 151
	r := byID(t, Config{Fleet: smallFleet(t), Policy: choice(t, "least_outstanding"), Trace: []Prompt{p}, Audit: true,
		Faults: []Fault{{At: time.Millisecond, Replica: "replica-0", Kind: "kill"}}})["a"]
	if r.Reroutes != 1 || r.CachedTokens != 150 {
		t.Errorf("placed again %d times, %d tokens cached; want once, 150", r.Reroutes, r.CachedTokens)
	}
}

// The warmer the room, the longer a card is held by its temperature limit: never
// in the cold, all the time in the heat. One card that is held is enough.
func TestHeld(t *testing.T) {
	heat := loadFleet(t, "rtx3090x5").Thermal
	last := 0.0
	for room := -20.0; room <= 60; room += 2 {
		share, err := heat.Held(room)
		if err != nil {
			t.Fatal(err)
		}
		if share < last || share > 1 {
			t.Errorf("at %v C held for %.3f of the time, in a cooler room %.3f", room, share, last)
		}
		if room <= 10 && share != 0 || room >= 30 && share < 0.99 {
			t.Errorf("at %v C held for %.3f of the time", room, share)
		}
		last = share
	}
	for i := range heat.Cards {
		one := *heat
		one.Cards = slices.Clone(heat.Cards)
		one.Cards[i].TemperatureLimitC -= 25
		if share, err := one.Held(10); err != nil || share < 0.99 {
			t.Errorf("card %d, whose limit is 25 K lower: held for %.3f of the time, %v; want all", i, share, err)
		}
	}
	broken := *heat
	broken.Coupling = broken.Coupling[:2]
	if _, err := broken.Held(20); err == nil {
		t.Error("coupling of two of five cards: got no error")
	}
}
