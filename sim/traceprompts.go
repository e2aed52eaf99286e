package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kvfleet/traces"
)

// TraceReport says what became of a trace's rows on their way into a run.
type TraceReport struct {
	Rows     int
	Unsorted int  // rows that came before an earlier one's due time
	Distinct int  // prompts without identity: they share nothing
	Planned  bool // rows had not been run; their answers have the length planned
	// Shift was added to every due time, because the earliest was negative: a
	// recording's origin may lie after its first requests.
	Shift time.Duration
}

// PromptsFromRows reads a trace into prompts to replay, in order of their due
// times. A row that has run is replayed at the time it was sent, with the answer
// it got; one that has not, at its scheduled time with max_tokens. A row without
// a length or a time is an error that names it.
func PromptsFromRows(rows traces.Source) ([]Prompt, TraceReport, error) {
	var prompts []Prompt
	report := TraceReport{Planned: true}
	for r, err := range rows {
		if err != nil {
			return prompts, report, err
		}
		report.Rows++
		p, err := promptFromRow(&r, &report)
		if err != nil {
			return prompts, report, fmt.Errorf("sim: trace row %d: %w", report.Rows, err)
		}
		if n := len(prompts); n > 0 && p.ScheduledAt < prompts[n-1].ScheduledAt {
			report.Unsorted++
		}
		prompts = append(prompts, p)
	}
	if report.Unsorted > 0 {
		slices.SortStableFunc(prompts, func(a, b Prompt) int { return cmp.Compare(a.ScheduledAt, b.ScheduledAt) })
	}
	if len(prompts) > 0 && prompts[0].ScheduledAt < 0 {
		report.Shift = -time.Duration(prompts[0].ScheduledAt)
		for i := range prompts {
			prompts[i].ScheduledAt += int64(report.Shift)
		}
	}
	return prompts, report, nil
}

func promptFromRow(r *traces.Row, report *TraceReport) (Prompt, error) {
	at, field := r.ScheduledAt, "scheduled_at"
	if r.SentAt != traces.None {
		at, field = r.SentAt, "sent_at"
	}
	if at == traces.None {
		return Prompt{}, fmt.Errorf("%s: got none, want the time it is due", field)
	}
	tokens, field := r.PromptTokens, "prompt_tokens"
	if r.EnginePromptTokens != traces.None {
		tokens, field = r.EnginePromptTokens, "engine_prompt_tokens"
	}
	if tokens < 1 {
		return Prompt{}, fmt.Errorf("%s: got %s, want at least 1", field, number(tokens))
	}
	stop, most := r.OutputTokens, r.MaxTokens
	if stop != traces.None && stop > 0 {
		report.Planned = false
	} else {
		stop = most
	}
	if stop == traces.None || stop < 1 {
		return Prompt{}, fmt.Errorf("max_tokens: got %s, want at least 1", number(most))
	}
	p := Prompt{
		Session: r.Session, Source: r.SessionSource, Turn: int(r.Turn), User: int(r.VirtualUser),
		Tokens: int(tokens), Max: int(max(stop, most)), Stop: int(stop),
		System: r.SystemPrompt, Branch: r.Branch, ScheduledAt: at, RequestID: r.RequestID,
	}
	if r.PromptBytes != traces.None {
		p.Bytes = int(r.PromptBytes)
	}
	if len(r.Blocks) > 0 && r.BlockSize > 0 {
		p.Trace, p.TraceBlock = slices.Clone(r.Blocks), int(r.BlockSize)
	} else {
		p.Distinct = true
		report.Distinct++
	}
	return p, nil
}

func number(v int64) string {
	if v == traces.None {
		return "none"
	}
	return fmt.Sprint(v)
}
