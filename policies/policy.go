package policies

import (
	"errors"
	"time"

	"kvfleet/policies/residency"
)

// ReplicaID identifies a replica for the life of a run: a small dense number
// given out by the router in the order replicas were added, never reused.
type ReplicaID int32

// NoReplica is the ReplicaID of no replica at all.
const NoReplica ReplicaID = -1

// ErrNoReplica is what a policy's caller reports when the snapshot is empty: the
// request is dropped.
var ErrNoReplica = errors.New("policies: no replica in rotation")

// A Request is what a policy may know of a request before placing it.
type Request struct {
	// Session is the session id, supplied or derived; empty if unidentified.
	Session string
	// PromptTokens is the prompt's length in engine tokens, or the router's
	// estimate of it; 0 if unknown.
	PromptTokens int
	// PromptBytes is the length of the rendered prompt in bytes.
	PromptBytes int
	// Prefix holds the chained hashes of the rendered prompt's whole 64-byte
	// prefix blocks, in prompt order (see package block). It is never written to.
	Prefix []uint64
	// Blocks holds the chained hashes of the prompt's whole engine blocks, in
	// prompt order. It is nil when the prompt was not tokenized in time.
	Blocks []uint64
	// Exclude lists replicas that must not be chosen: a reroute excludes the
	// replica that failed. Usually nil.
	Exclude []ReplicaID
}

// A Policy places requests. Equal sequences of inputs, and an equal random
// stream, give equal decisions: a policy reads no clock, starts no goroutine,
// logs nothing and lets no map order reach a decision. It is not safe for
// concurrent use; the router calls it under one lock.
type Policy interface {
	// Name is the catalog name, for example "prefix_affinity".
	Name() string
	// Pick chooses a replica of the snapshot for the request at time at
	// (since the run began). The error is ErrNoReplica when no replica is
	// eligible.
	Pick(at time.Duration, q Request, s *Snapshot) (Decision, error)
}

// A Reason says why a request went where it went. It is a closed enum: traces
// record it.
type Reason uint8

// The reasons of design/policies.md.
const (
	ReasonNone Reason = iota
	ReasonRoundRobin
	ReasonLeastOutstanding
	ReasonPowerOfTwo
	ReasonSessionAffinity
	ReasonSessionUnidentified
	ReasonBoundedSessionAffinity
	ReasonBoundDeflected
	ReasonPrefixHash
	ReasonHashDeflected
	ReasonPromptUnhashed
	ReasonPrefixAffinity
	ReasonCold
	ReasonSpillLoad
	ReasonSpillHitRate
	ReasonPromptUntokenized
	ReasonSpeculative
	reasonCount
)

var reasonNames = [reasonCount]string{
	"NONE", "ROUND_ROBIN", "LEAST_OUTSTANDING", "POWER_OF_TWO",
	"SESSION_AFFINITY", "SESSION_UNIDENTIFIED",
	"BOUNDED_SESSION_AFFINITY", "BOUND_DEFLECTED",
	"PREFIX_HASH", "HASH_DEFLECTED", "PROMPT_UNHASHED",
	"PREFIX_AFFINITY", "COLD", "SPILL_LOAD", "SPILL_HIT_RATE",
	"PROMPT_UNTOKENIZED", "SPECULATIVE",
}

// String returns the reason's name as traces record it, for example
// "SPILL_LOAD".
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "UNKNOWN"
}

// Reasons returns every reason, in order.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// A Decision is where a request goes, and why.
type Decision struct {
	Replica ReplicaID
	Reason  Reason
	// InFlight is the chosen replica's inflight count as the policy saw it,
	// before this request was added.
	InFlight int
	// Match is how much of the prompt the chosen replica is believed (prefix
	// policies) or reported (exact policies) to hold, in blocks of the policy's
	// own unit; 0 for policies that do not look.
	Match int
	// MatchTokens is Match in engine tokens. Prefix policies convert bytes at the
	// fleet's bytes per token; exact ones multiply by the engine block size.
	MatchTokens int
	// Declined is the best match that pressure made the policy pass over, or
	// NoReplica.
	// DeclinedMatch is in the unit of Match, DeclinedMatchTokens in that of
	// MatchTokens.
	Declined            ReplicaID
	DeclinedMatch       int
	DeclinedMatchTokens int
	DeclinedInFlight    int
	// Pending is the prompt tokens predicted not to be cached where the request
	// goes. The router sets it; Prefilled and Done want it back.
	Pending int
	// Candidates holds what was scored, in the order considered, and at most the
	// first 16. It aliases a buffer of the policy's and is valid until the next
	// Pick.
	Candidates []Candidate
}

// A Candidate is one replica a policy weighed. Lower cost is better; what a cost
// is depends on the policy and is stated by it.
type Candidate struct {
	Replica ReplicaID
	Match   int
	Cost    float64
}

const maxCandidates = 16

// An EventConsumer is a policy that learns residency from KV cache events.
type EventConsumer interface {
	// Events applies what one replica's engine announced, in its order.
	Events(at time.Duration, id ReplicaID, events []residency.Event)
	// Gap says that events of the replica were lost: what it was known to hold
	// is forgotten until events tell it again.
	Gap(id ReplicaID)
}

// A Forgetter is a policy that keeps something about what replicas hold.
type Forgetter interface {
	// Forget drops all of it for one replica, whose cache is gone.
	Forget(id ReplicaID)
}

// placed is the decision for a replica with nothing declined.
func placed(r *Replica, why Reason) Decision {
	return Decision{Replica: r.ID, Reason: why, InFlight: r.InFlight, Declined: NoReplica}
}

// onLoad places a request on the least loaded replica and moves the caller's
// cursor, so that ties rotate.
func onLoad(s *Snapshot, cursor *ReplicaID, exclude []ReplicaID, why Reason) (Decision, error) {
	id, ok := s.LeastLoaded(*cursor, exclude)
	if !ok {
		return Decision{Replica: NoReplica, Declined: NoReplica}, ErrNoReplica
	}
	*cursor = id
	return placed(&s.replicas[id], why), nil
}

// inTurn places a request on the replica after the cursor.
func inTurn(s *Snapshot, cursor *ReplicaID, exclude []ReplicaID, why Reason) (Decision, error) {
	id, ok := s.Next(*cursor, exclude)
	if !ok {
		return Decision{Replica: NoReplica, Declined: NoReplica}, ErrNoReplica
	}
	*cursor = id
	return placed(&s.replicas[id], why), nil
}
