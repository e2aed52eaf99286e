package sim

import (
	"time"

	"kvfleet/policies"
)

// A DecisionRecord is one line of the decision log.
type DecisionRecord struct {
	At       time.Duration `json:"at_ns"`
	Request  string        `json:"request"` // the row's request_id
	Session  string        `json:"session,omitempty"`
	Turn     int           `json:"turn"`
	Replica  string        `json:"replica"`
	Reason   string        `json:"reason"`
	InFlight int           `json:"inflight"`
	Match    int           `json:"match_tokens"`
	// Declined is the best match that was passed over, if one was.
	Declined         string `json:"declined,omitempty"`
	DeclinedMatch    int    `json:"declined_match_tokens,omitempty"`
	DeclinedInFlight int    `json:"declined_inflight,omitempty"`
	Reroutes         int32  `json:"reroutes,omitempty"`
}

// decided writes a decision down.
func (c *cluster) decided(k *call) {
	if c.cfg.Decided == nil {
		return
	}
	d := &k.decision
	r := DecisionRecord{
		At: k.decided, Request: k.name(), Session: k.prompt.Session, Turn: k.prompt.Turn,
		Replica: c.replicas[d.Replica].name, Reason: d.Reason.String(),
		InFlight: d.InFlight, Match: d.MatchTokens, Reroutes: k.reroutes,
	}
	if d.Declined != policies.NoReplica {
		r.Declined = c.replicas[d.Declined].name
		r.DeclinedMatch, r.DeclinedInFlight = d.DeclinedMatchTokens, d.DeclinedInFlight
	}
	c.cfg.Decided(r)
}
