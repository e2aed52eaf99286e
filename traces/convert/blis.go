package convert

import (
	"cmp"

	"kvfleet/traces"
)

// The header names of a trace of blis observe. Its times are whole µs. Files of
// older versions lack the optional ones.
var (
	blisColumns = []string{"request_id", "session_id", "round_index", "prefix_group", "streaming",
		"input_tokens", "output_tokens", "arrival_time_us", "send_time_us",
		"first_chunk_time_us", "last_chunk_time_us", "num_chunks", "status", "error_message"}
	blisOptional = []string{"server_input_tokens", "x_request_id"}
)

// blisRow reads a finished row. arrival_time_us, the planned arrival, counts from
// the start of the run; the other times are those of the client's wall clock.
func blisRow(p *pass, c *record, r *traces.Row) {
	r.RequestID = cmp.Or(c.value("x_request_id"), c.value("request_id"))
	if r.RequestID == "" {
		c.fault("request_id", "an id")
	}
	if r.Session = c.value("session_id"); r.Session != "" {
		r.SessionSource = traces.SessionSupplied
		r.Turn = int32(min(c.integer("round_index", 0, false), 1<<30))
	}
	if c.value("prefix_group") != "" {
		c.fault("prefix_group", "nothing: which tokens the prompts of a group share is not stated")
	}
	r.PromptTokens = c.integer("input_tokens", 1, false)
	r.EnginePromptTokens = noneIfZero(c.integer("server_input_tokens", 0, true))
	r.OutputTokens = c.integer("output_tokens", 0, false)
	r.Chunks = c.integer("num_chunks", 0, false)
	r.ScheduledAt = c.micros("arrival_time_us")

	ok := c.value("status") == "ok"
	moment := func(name string) int64 {
		if text := c.value(name); !ok && (text == "" || text == "0") {
			return traces.None // it failed before
		}
		at := c.micros(name)
		if ok && at == 0 {
			c.fault(name, "µs since the Unix epoch, above 0, in a row that is ok")
		}
		return at
	}
	sent, first, last := moment("send_time_us"), moment("first_chunk_time_us"), moment("last_chunk_time_us")
	switch {
	case ok && c.value("streaming") != "true":
		c.fault("streaming", "true: of an answer that came whole the first token's time is not known")
	case ok:
		r.Outcome, r.MaxTokens = traces.Success, r.OutputTokens
	case c.value("status") == "":
		c.fault("status", "ok, or how the request failed")
	default:
		r.Outcome, r.Error = traces.Failed, cmp.Or(c.value("error_message"), c.value("status"))
	}
	if c.badField != "" {
		return
	}
	if sent != traces.None {
		p.clocks.see(r.ScheduledAt, sent)
	}
	for _, t := range []struct {
		to   *int64
		wall int64
	}{{&r.SentAt, sent}, {&r.FirstTokenAt, first}, {&r.LastTokenAt, last}, {&r.EndedAt, last}} {
		if t.wall != traces.None {
			*t.to = p.clocks.at(t.wall)
		}
	}
	r.ITLMean = meanGap(first, last, r.OutputTokens)
}

func noneIfZero(v int64) int64 {
	if v == 0 {
		return traces.None
	}
	return v
}

// meanGap is the mean time between so many tokens, or None.
func meanGap(first, last, tokens int64) int64 {
	if first == traces.None || last == traces.None || tokens < 2 {
		return traces.None
	}
	return (last - first) / (tokens - 1)
}
