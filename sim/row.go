package sim

import (
	"strconv"
	"time"

	"kvfleet/policies"
	"kvfleet/sim/latency"
	"kvfleet/traces"
)

// row writes down how a call went. The row is the cluster's own buffer: its
// consumer copies what it keeps.
func (c *cluster) row(k *call, outcome traces.Outcome, reason string, now time.Duration) {
	p, r := &k.prompt, &c.buffer
	*r = traces.Row{
		Session: p.Session, SessionSource: p.Source, Turn: int32(p.Turn), VirtualUser: int32(p.User), Epoch: int64(c.cfg.Epoch),
		ScheduledAt: p.ScheduledAt, PromptBytes: int64(p.Bytes), PromptTokens: int64(p.Tokens), MaxTokens: int64(p.Max),
		SystemPrompt: p.System, Branch: p.Branch,
		ReceivedAt: traces.At(k.sent), DecidedAt: traces.At(k.decided), DispatchedAt: traces.None,
		Policy: c.policyName, Reason: "", DeclinedReplica: "",
		InFlightAtChoice: traces.None, MatchBytes: traces.None, MatchTokens: traces.None,
		DeclinedMatch: traces.None, DeclinedInFlight: traces.None, SignalAge: traces.None,
		TokenizeTime: traces.None, RouterOverhead: traces.None, Reroutes: k.reroutes,
		EnginePromptTokens: traces.None, CachedTokens: traces.None, QueueTime: traces.None, PrefillTime: traces.None,
		SentAt: traces.At(k.sent), FirstByteAt: traces.None, FirstTokenAt: traces.None, LastTokenAt: traces.None,
		EndedAt: traces.At(now), OutputTokens: traces.None,
		ITLMean: traces.None, ITLP50: traces.None, ITLP99: traces.None, ITLMax: traces.None,
		Chunks: traces.None, Bytes: traces.None,
		Outcome: outcome, Error: reason,
	}
	if outcome == traces.Success {
		r.Status = 200
	} else if outcome == traces.Failed {
		r.Status = 400
	}
	if c.keepIDs {
		r.RequestID = k.name()
		r.Blocks, r.BlockSize = p.Blocks, int32(c.fleet.Engine.BlockSize)
		if p.Blocks == nil && p.Trace != nil { // refused before they were expanded
			r.Blocks, r.BlockSize = p.Trace, int32(p.TraceBlock)
		}
	}
	if k.sent < c.cfg.Warmup {
		r.Warmup = true
	}
	if k.from != policies.NoReplica {
		r.ReroutedFrom = c.replicas[k.from].name
	}
	if k.replica != policies.NoReplica {
		c.decisionColumns(k, r)
		c.engineColumns(k, r)
	}
	c.sink(r)
}

// name is the request's id: the trace's, or its place in the run.
func (k *call) name() string {
	if k.prompt.RequestID != "" {
		return k.prompt.RequestID
	}
	return "sim-" + strconv.FormatInt(k.serial, 10)
}

func (c *cluster) decisionColumns(k *call, r *traces.Row) {
	d := &k.decision
	r.DispatchedAt = traces.At(k.dispatched)
	r.Reason, r.Replica = d.Reason.String(), c.replicas[d.Replica].name
	r.InFlightAtChoice = int64(d.InFlight)
	r.RouterOverhead = int64(c.overhead)
	r.SignalAge = k.signalAge
	if c.needsTokens {
		r.TokenizeTime = int64(k.decided - k.sent)
	}
	if c.looks {
		r.MatchTokens = int64(d.MatchTokens)
		if c.choice.Spec.NeedsBelief && !c.needsTokens { // exact policies match engine blocks, not bytes
			r.MatchBytes = int64(d.Match) * 64
		}
	}
	if d.Declined != policies.NoReplica {
		r.DeclinedReplica = c.replicas[d.Declined].name
		r.DeclinedMatch, r.DeclinedInFlight = int64(d.DeclinedMatchTokens), int64(d.DeclinedInFlight)
	}
}

func (c *cluster) engineColumns(k *call, r *traces.Row) {
	q := k.req
	if q.Admitted == 0 && q.Output() == 0 {
		return
	}
	r.EnginePromptTokens, r.CachedTokens = int64(q.Prompt), int64(q.Cached)
	r.QueueTime = int64((q.Admitted - q.Submitted).Duration())
	r.OutputTokens = int64(q.Output())
	if q.Output() == 0 {
		return
	}
	egress := c.egress
	at := func(t latency.Ticks) int64 { return traces.At(t.Duration() + egress) }
	r.PrefillTime = int64((q.First - q.Admitted).Duration())
	r.FirstByteAt, r.FirstTokenAt, r.LastTokenAt = at(q.First), at(q.First), at(q.Last)
	if r.LastTokenAt > r.EndedAt {
		// The replica died with it on its way. When the one before came is not kept.
		r.LastTokenAt = traces.None
	}
	r.Chunks = int64(q.Output())
	g, scratch := q.Gaps(c.scratch)
	c.scratch = scratch
	if g.N > 0 {
		r.ITLMean, r.ITLP50, r.ITLP99, r.ITLMax = int64(g.Mean), int64(g.P50), int64(g.P99), int64(g.Max)
	}
}
