package convert

import (
	"encoding/json"
	"math"

	"kvfleet/traces"
)

// llmservingsimRow reads a line of what LLMServingSim's bench measured of vLLM.
// arrival_time is of the wall clock, the other times are of the engine's
// monotonic one. Lengths were imposed: input_toks were sent as token ids, and
// exactly output_toks generated.
func llmservingsimRow(p *pass, number int, line []byte, r *traces.Row) (bool, error) {
	var v struct {
		ID        string   `json:"request_id"`
		Input     *int64   `json:"input_toks"`
		Output    *int64   `json:"output_toks"`
		Arrival   *float64 `json:"arrival_time"`
		Queued    *float64 `json:"queued_ts"`
		Scheduled *float64 `json:"scheduled_ts"`
		First     *float64 `json:"first_token_ts"`
		Last      *float64 `json:"last_token_ts"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return false, p.badJSON(number, line, err, llmservingsimWants)
	}
	if v.ID == "" {
		return false, p.bad(number, "request_id", llmservingsimWants("request_id"), "")
	}
	for _, count := range []struct {
		field string
		v     *int64
	}{{"input_toks", v.Input}, {"output_toks", v.Output}} {
		if count.v == nil || *count.v < 1 || *count.v > maxTokens {
			return false, p.bad(number, count.field, wantInput, show(count.v))
		}
	}
	var arrival, queued, scheduled, first, last int64
	for _, t := range []struct {
		field string
		v     *float64
		to    *int64
	}{
		{"arrival_time", v.Arrival, &arrival}, {"queued_ts", v.Queued, &queued}, {"scheduled_ts", v.Scheduled, &scheduled},
		{"first_token_ts", v.First, &first}, {"last_token_ts", v.Last, &last},
	} {
		if t.v == nil || *t.v < 0 || *t.v > maxWall {
			return false, p.bad(number, t.field, wantSeconds, show(t.v))
		}
		// A product with 1e9 would lose what a float64 of the epoch has left.
		whole, rest := math.Modf(*t.v)
		*t.to = int64(whole)*1e9 + nanos(rest, 1e9)
	}
	p.clocks.see(arrival, queued)
	r.RequestID = v.ID
	r.PromptTokens, r.EnginePromptTokens = *v.Input, *v.Input
	r.MaxTokens, r.OutputTokens = *v.Output, *v.Output
	r.ScheduledAt = arrival - p.clocks.first
	r.SentAt = r.ScheduledAt
	r.QueueTime, r.PrefillTime = scheduled-queued, first-scheduled
	r.FirstTokenAt = p.clocks.at(first) - p.clocks.first
	r.LastTokenAt = p.clocks.at(last) - p.clocks.first
	r.EndedAt = r.LastTokenAt
	r.ITLMean = meanGap(first, last, *v.Output)
	r.Outcome = traces.Success
	return true, nil
}

// llmservingsimWants is what a field holds, in words.
func llmservingsimWants(field string) string {
	switch field {
	case "request_id":
		return "a text"
	case "input_toks", "output_toks":
		return wantInput
	}
	return wantSeconds
}
