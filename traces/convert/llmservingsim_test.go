package convert

import (
	"bytes"
	"strings"
	"testing"

	"kvfleet/traces"
)

// The second request arrives first and is queued soonest after, so that 501.001 s
// of the engine's clock is taken for its arrival, the start.
func TestLLMServingSimRows(t *testing.T) {
	const ms, us = 1_000_000, 1000
	rows, tr := all(t, "testdata/llmservingsim.jsonl", Options{})
	if len(rows) != 3 {
		t.Fatalf("got %d rows, want 3", len(rows))
	}
	wantRow(t, rows[0], func(r *traces.Row) {
		r.RequestID, r.PromptTokens, r.EnginePromptTokens, r.MaxTokens, r.OutputTokens = "bench-0", 700, 700, 5, 5
		r.ScheduledAt, r.SentAt, r.QueueTime, r.PrefillTime = 250*ms, 250*ms, 500*us, 46_500*us
		r.FirstTokenAt, r.LastTokenAt, r.EndedAt = 299*ms, 339*ms, 339*ms
		r.ITLMean, r.Outcome = 10*ms, traces.Success
	})
	wantRow(t, rows[1], func(r *traces.Row) {
		r.RequestID, r.PromptTokens, r.EnginePromptTokens, r.MaxTokens, r.OutputTokens = "bench-1", 90, 90, 1, 1
		r.ScheduledAt, r.SentAt, r.QueueTime, r.PrefillTime = 0, 0, 1*ms, 18*ms
		r.FirstTokenAt, r.LastTokenAt, r.EndedAt = 19*ms, 19*ms, 19*ms
		r.Outcome = traces.Success
	})
	wantRow(t, rows[2], func(r *traces.Row) {
		r.RequestID, r.PromptTokens, r.EnginePromptTokens, r.MaxTokens, r.OutputTokens = "bench-2", 91, 91, 3, 3
		r.ScheduledAt, r.SentAt, r.QueueTime, r.PrefillTime = 500*ms, 500*ms, 480*ms, 123_456_789
		r.FirstTokenAt, r.LastTokenAt, r.EndedAt = 1_122_456_789, 1_199*ms, 1_199*ms
		r.ITLMean, r.Outcome = 38_271_605, traces.Success
	})
	if r := tr.Report(); r.OutOfOrder != 1 || r.Origin != 1_700_000_010e9 {
		t.Errorf("got %+v, want one row out of order and the wall clock's time of the first arrival", r)
	}
}

func TestLLMServingSimFaultsAreNamed(t *testing.T) {
	good := fixture(t, "llmservingsim.jsonl")
	for _, c := range []struct{ old, new, want string }{
		{`"bench-1"`, `""`, "field request_id: want a text, got nothing"},
		{`"bench-1"`, `1`, `field request_id: want a text, got "1"`},
		{`"input_toks": 90`, `"input_toks": 0`, `field input_toks: want a whole number of tokens, 1 or more, got "0"`},
		{`"input_toks": 90`, `"input_toks": "90"`, `field input_toks: want a whole number of tokens, 1 or more, got the text "90"`},
		{`"output_toks": 1,`, ``, "field output_toks: want a whole number of tokens, 1 or more, got nothing"},
		{`1700000010.0`, `null`, "field arrival_time: want seconds, 0 or more, got nothing"},
		{`501.001`, `-501.001`, `field queued_ts: want seconds, 0 or more, got "-501.001"`},
		{`501.002`, `1e300`, `field scheduled_ts: want seconds, 0 or more, got "1e+300"`},
		{`"first_token_ts": 501.02`, `"first_token_ts": "soon"`, `field first_token_ts: want seconds, 0 or more, got "soon"`},
		{`, "last_token_ts": 501.02`, ``, "field last_token_ts: want seconds, 0 or more, got nothing"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s is not in the fixture", c.old)
		}
		wantFault(t, file(t, "x", text), "FILE: line 2: "+c.want, 1)
	}
}

func FuzzLLMServingSim(f *testing.F) {
	f.Add([]byte(fixture(f, "llmservingsim.jsonl")))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &pass{opts: &Options{MaxErrors: -1}, report: &Report{}, clocks: &clocks{}}
		var rows []traces.Row
		for range 2 { // the first is for the clocks
			rows = nil
			p.emit = func(r *traces.Row) error {
				rows = append(rows, *r)
				return nil
			}
			_ = scanLines(p, bytes.NewReader(data), llmservingsimRow)
		}
		for _, r := range rows {
			if queued := r.FirstTokenAt - r.PrefillTime - r.QueueTime; queued < r.SentAt || r.SentAt < 0 || r.PromptTokens < 1 || r.RequestID == "" {
				t.Errorf("got row %+v", r)
			}
		}
	})
}
