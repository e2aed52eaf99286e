package workload

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvfleet/traces/seed"
)

// MultiTurn describes the multi-turn workload. Zero fields take the defaults
// their comments state; Sessions or WorkingSet is required.
type MultiTurn struct {
	// Sessions is the size of the session pool. Zero derives it: WorkingSet times
	// FleetTokens, in whole sessions of Turns*(PromptTokens+OutputTokens).
	Sessions    int
	WorkingSet  float64 // session-pool tokens over fleet KV tokens
	FleetTokens int     // fleet KV capacity, tokens

	Turns        int // turns a session; 4
	PromptTokens int // new user text a turn, nominal tokens; 448
	OutputTokens int // assistant text a turn and max_tokens; 64

	// Skew is the Zipf exponent over the pool; 0 is uniform.
	Skew float64

	// SystemShare of the sessions, 0..1, start with one shared system prompt of
	// SystemTokens (128), taken off their last user turn.
	SystemShare  float64
	SystemTokens int
	// BranchShare of the sessions, 0..1, belong to one of BranchFamilies (8) and
	// share its text for the first BranchTurns (1) turns.
	BranchShare    float64
	BranchFamilies int
	BranchTurns    int

	BytesPerToken int // bytes of text per nominal token; 4
	Seed          seed.Seed
}

// Published is the multi-turn workload of the published grid for a fleet of
// fleetTokens of KV: 30% of sessions with a system prompt, 30% in families.
func Published(workingSet, skew float64, fleetTokens int, s seed.Seed) MultiTurn {
	return MultiTurn{
		WorkingSet: workingSet, FleetTokens: fleetTokens, Skew: skew,
		SystemShare: 0.3, BranchShare: 0.3, Seed: s,
	}
}

func orDefault(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}

// Resolve fills in defaults and derives the pool size, or reports every fault.
func (m MultiTurn) Resolve() (MultiTurn, error) {
	orDefault(&m.Turns, 4)
	orDefault(&m.PromptTokens, 448)
	orDefault(&m.OutputTokens, 64)
	orDefault(&m.SystemTokens, 128)
	orDefault(&m.BranchFamilies, 8)
	orDefault(&m.BranchTurns, 1)
	orDefault(&m.BytesPerToken, 4)
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, f := range []struct {
		name string
		v    int
	}{
		{"turns", m.Turns}, {"prompt tokens", m.PromptTokens}, {"output tokens", m.OutputTokens},
		{"system tokens", m.SystemTokens}, {"branch families", m.BranchFamilies},
		{"branch turns", m.BranchTurns}, {"bytes per token", m.BytesPerToken},
	} {
		if f.v < 1 {
			fault("workload: %s: got %d, want at least 1", f.name, f.v)
		}
	}
	if !(m.Skew >= 0) || math.IsInf(m.Skew, 0) {
		fault("workload: skew: got %v, want zero or more", m.Skew)
	}
	if !(m.SystemShare >= 0 && m.SystemShare <= 1) {
		fault("workload: system share: got %v, want 0 to 1", m.SystemShare)
	}
	if !(m.BranchShare >= 0 && m.BranchShare <= 1) {
		fault("workload: branch share: got %v, want 0 to 1", m.BranchShare)
	}
	if m.SystemShare > 0 && m.SystemTokens >= m.PromptTokens {
		fault("workload: system tokens: got %d, want less than the %d of a user turn, which pays for them", m.SystemTokens, m.PromptTokens)
	}
	if m.BranchShare > 0 && m.BranchTurns >= m.Turns {
		fault("workload: branch turns: got %d of %d, want fewer, or the sessions of a family are one session", m.BranchTurns, m.Turns)
	}
	if len(faults) > 0 {
		return m, errors.Join(faults...)
	}
	if m.Sessions == 0 {
		per := m.Turns * (m.PromptTokens + m.OutputTokens)
		if !(m.WorkingSet > 0) || math.IsInf(m.WorkingSet, 0) || m.FleetTokens < 1 {
			return m, fmt.Errorf("workload: working set: got %v of %d fleet tokens, want both positive, or a number of sessions", m.WorkingSet, m.FleetTokens)
		}
		m.Sessions = int(m.WorkingSet*float64(m.FleetTokens)) / per
		if m.Sessions < 1 {
			return m, fmt.Errorf("workload: working set: %v of %d fleet tokens is less than one session of %d tokens", m.WorkingSet, m.FleetTokens, per)
		}
	}
	if m.Sessions < 1 {
		return m, fmt.Errorf("workload: sessions: got %d, want at least 1", m.Sessions)
	}
	return m, nil
}

// Name names the workload; it contains every knob that changes a byte.
func (m MultiTurn) Name() string {
	var b strings.Builder
	fmt.Fprintf(&b, "multiturn(sessions=%d,skew=%g,turns=%d,prompt=%dt,output=%dt", m.Sessions, m.Skew, m.Turns, m.PromptTokens, m.OutputTokens)
	fmt.Fprintf(&b, ",system=%gx%dt,branch=%gx%dfam%dt,bpt=%d,seed=%d)", m.SystemShare, m.SystemTokens,
		m.BranchShare, m.BranchFamilies, m.BranchTurns, m.BytesPerToken, uint64(m.Seed))
	return b.String()
}

// MaxPromptBytes is the text of a session's last turn, without framing.
func (m MultiTurn) MaxPromptBytes() int {
	return m.BytesPerToken * (m.Turns*m.PromptTokens + (m.Turns-1)*m.OutputTokens)
}

// A Draws picks sessions by Zipf's law: session i has weight 1/(i+1)^skew.
type Draws struct {
	m          MultiTurn
	cumulative []float64
}

// Draws builds the exact cumulative table of a resolved workload's pool.
func (m MultiTurn) Draws() *Draws {
	d := &Draws{m: m, cumulative: make([]float64, m.Sessions)}
	total := 0.0
	for i := range d.cumulative {
		total += math.Pow(float64(i+1), -m.Skew)
		d.cumulative[i] = total
	}
	for i := range d.cumulative {
		d.cumulative[i] /= total
	}
	return d
}

// Session is the session of a user's v-th visit. It depends on (seed, user,
// visit) alone, so every epoch offers the same shape of load.
func (d *Draws) Session(user, visit int) int {
	i, _ := slices.BinarySearch(d.cumulative, d.m.visit(user, visit))
	return min(i, len(d.cumulative)-1)
}
