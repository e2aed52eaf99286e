package workload

import (
	"errors"
	"fmt"
	"math"
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

// Limits of what a workload can be; they keep its arithmetic in range, and a
// mistyped number from exhausting the memory.
const (
	maxCount    = 1 << 30     // of anything counted
	maxText     = 1 << 30     // bytes of a session's text
	maxSessions = 100_000_000 // in a pool
)

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
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("workload: "+format, args...))
	}
	counted := m.checkCounts(fault)
	if !(m.Skew >= 0) || math.IsInf(m.Skew, 0) {
		fault("skew: got %v, want zero or more", m.Skew)
	}
	if !(m.SystemShare >= 0 && m.SystemShare <= 1) {
		fault("system share: got %v, want 0 to 1", m.SystemShare)
	}
	if !(m.BranchShare >= 0 && m.BranchShare <= 1) {
		fault("branch share: got %v, want 0 to 1", m.BranchShare)
	}
	if counted && m.SystemShare > 0 && m.SystemTokens >= m.PromptTokens {
		fault("system tokens: got %d, want less than the %d of a user turn, which pays for them", m.SystemTokens, m.PromptTokens)
	}
	if counted && m.BranchShare > 0 && m.BranchTurns >= m.Turns {
		fault("branch turns: got %d of %d, want fewer, or the sessions of a family are one session", m.BranchTurns, m.Turns)
	}
	m.checkPool(counted, fault)
	if len(faults) > 0 {
		return m, errors.Join(faults...)
	}
	if m.Sessions == 0 {
		m.Sessions = int(m.WorkingSet*float64(m.FleetTokens)) / m.sessionTokens()
	}
	return m, nil
}

// checkCounts reports whether the counts that describe a session are sound.
func (m *MultiTurn) checkCounts(fault func(string, ...any)) bool {
	ok := true
	for _, f := range []struct {
		name string
		v    int
	}{
		{"turns", m.Turns}, {"prompt tokens", m.PromptTokens}, {"output tokens", m.OutputTokens},
		{"system tokens", m.SystemTokens}, {"branch families", m.BranchFamilies},
		{"branch turns", m.BranchTurns}, {"bytes per token", m.BytesPerToken},
	} {
		if f.v < 1 || f.v > maxCount {
			fault("%s: got %d, want 1 to %d", f.name, f.v, maxCount)
			ok = false
		}
	}
	if text := float64(m.BytesPerToken) * float64(m.Turns) * float64(m.PromptTokens+m.OutputTokens); ok && text > maxText {
		fault("session: got %.4g bytes of text, want at most %d", text, maxText)
		return false
	}
	return ok
}

// checkPool reports faults of the pool's size. Deriving it takes a session whose
// counts are sound.
func (m *MultiTurn) checkPool(counted bool, fault func(string, ...any)) {
	if m.Sessions != 0 {
		if m.Sessions < 1 || m.Sessions > maxSessions {
			fault("sessions: got %d, want 1 to %d", m.Sessions, maxSessions)
		}
		return
	}
	if !(m.WorkingSet > 0) || math.IsInf(m.WorkingSet, 0) || m.FleetTokens < 1 {
		fault("working set: got %v of %d fleet tokens, want both positive, or a number of sessions", m.WorkingSet, m.FleetTokens)
		return
	}
	if !counted {
		return
	}
	switch pool := m.WorkingSet * float64(m.FleetTokens) / float64(m.sessionTokens()); {
	case pool < 1:
		fault("working set: %v of %d fleet tokens is less than one session of %d tokens", m.WorkingSet, m.FleetTokens, m.sessionTokens())
	case pool > maxSessions:
		fault("working set: %v of %d fleet tokens is %.4g sessions, want at most %d", m.WorkingSet, m.FleetTokens, pool, maxSessions)
	}
}

// sessionTokens is a session's nominal size.
func (m *MultiTurn) sessionTokens() int { return m.Turns * (m.PromptTokens + m.OutputTokens) }

// Name names the workload; it contains every knob that changes a byte.
func (m MultiTurn) Name() string {
	var b strings.Builder
	fmt.Fprintf(&b, "multiturn(sessions=%d,skew=%g,turns=%d,prompt=%dt,output=%dt", m.Sessions, m.Skew, m.Turns, m.PromptTokens, m.OutputTokens)
	fmt.Fprintf(&b, ",system=%gx%dt,branch=%gx%dfam%dt,bpt=%d,seed=%d)", m.SystemShare, m.SystemTokens,
		m.BranchShare, m.BranchFamilies, m.BranchTurns, m.BytesPerToken, uint64(m.Seed))
	return b.String()
}

// MaxPromptBytes is the text of a session's last turn, without framing: the same
// for all sessions.
func (m MultiTurn) MaxPromptBytes() int {
	return m.BytesPerToken * (m.Turns*m.PromptTokens + (m.Turns-1)*m.OutputTokens)
}
