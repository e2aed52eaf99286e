package convert

import (
	"fmt"
	"strconv"

	"kvfleet/traces"
)

// The header names of the two kvroute files. Their times are ms.
var (
	kvrouteRowColumns = []string{"scheduled_ms", "started_ms", "session", "turn", "replica", "decision", "inflight_at_choice",
		"prompt_tokens", "cached_tokens", "prompt_bytes", "output_tokens", "ttft_ms", "total_ms",
		"itl_mean_ms", "itl_p50_ms", "itl_max_ms", "outcome"}
	kvrouteProbeColumns = []string{"virtual_user", "turn", "warmup", "started_ms", "ttft_ms", "total_ms",
		"output_tokens", "itl_mean_ms", "itl_p50_ms", "itl_max_ms", "outcome"}
)

// kvrouteRow reads a finished row of an open-loop run. prompt_tokens and
// cached_tokens are the engine's.
func kvrouteRow(p *pass, c *record, r *traces.Row) {
	c.client(r)
	r.RequestID = fmt.Sprint("kvroute-", c.number)
	r.ScheduledAt = c.time("scheduled_ms", 1e6)
	r.Session, r.SessionSource = c.value("session"), traces.SessionSupplied
	r.Replica, r.Reason = c.value("replica"), c.value("decision")
	r.InFlightAtChoice = c.integer("inflight_at_choice", 0, true)
	r.EnginePromptTokens = c.integer("prompt_tokens", 1, false)
	r.CachedTokens = c.integer("cached_tokens", 0, true)
	r.PromptBytes = c.integer("prompt_bytes", 0, true)
}

// kvrouteProbeRow reads a finished row of a closed-loop probe of one replica.
func kvrouteProbeRow(p *pass, c *record, r *traces.Row) {
	c.client(r)
	r.RequestID = fmt.Sprint("kvroute-", c.number)
	r.VirtualUser = int32(min(c.integer("virtual_user", 0, false), 1<<30))
	warmup, err := strconv.ParseBool(c.value("warmup"))
	if err != nil {
		c.fault("warmup", "true or false")
	}
	r.Warmup = warmup
}

// client reads what the client saw, which both files state alike.
func (c *record) client(r *traces.Row) {
	r.Turn = int32(min(c.integer("turn", 0, false), 1<<30))
	r.SentAt = c.time("started_ms", 1e6)
	r.FirstTokenAt = r.SentAt + c.duration("ttft_ms", 1e6)
	r.EndedAt = r.SentAt + c.duration("total_ms", 1e6)
	r.OutputTokens = c.integer("output_tokens", 0, false)
	r.ITLMean = c.gap("itl_mean_ms")
	r.ITLP50 = c.gap("itl_p50_ms")
	r.ITLMax = c.gap("itl_max_ms")
	outcome, err := traces.ParseOutcome(c.value("outcome"))
	if err != nil {
		c.fault("outcome", "success, failed, dropped or cancelled")
	}
	r.Outcome = outcome
}

// gap reads a time between tokens; an answer of one token has none.
func (c *record) gap(name string) int64 {
	if c.value(name) == "" {
		return traces.None
	}
	return c.duration(name, 1e6)
}
