package convert

import (
	"bytes"
	"strings"
	"testing"

	"kvfleet/traces"
)

// The request sent soonest after it was due, 200 µs by the two clocks, is the
// second: by that much all that was measured is moved.
func TestBlisRows(t *testing.T) {
	const us = 1000
	rows, tr := all(t, "testdata/blis.csv", Options{})
	if len(rows) != 4 {
		t.Fatalf("got %d rows, want 4", len(rows))
	}
	wantRow(t, rows[0], func(r *traces.Row) {
		r.RequestID, r.PromptTokens, r.EnginePromptTokens, r.MaxTokens = "one", 500, 480, 11
		r.ScheduledAt, r.SentAt, r.FirstTokenAt, r.LastTokenAt, r.EndedAt = 100_000*us, 100_500*us, 150_500*us, 250_500*us, 250_500*us
		r.OutputTokens, r.Chunks, r.ITLMean, r.Outcome = 11, 13, 10_000*us, traces.Success
	})
	wantRow(t, rows[1], func(r *traces.Row) {
		r.RequestID, r.PromptTokens, r.MaxTokens = "1", 500, 1 // the server's count is not stated
		r.Session, r.SessionSource, r.Turn = "s7", traces.SessionSupplied, 2
		r.ScheduledAt, r.SentAt, r.FirstTokenAt, r.LastTokenAt, r.EndedAt = 300_000*us, 300_000*us, 330_000*us, 330_000*us, 330_000*us
		r.OutputTokens, r.Chunks, r.Outcome = 1, 3, traces.Success
	})
	wantRow(t, rows[2], func(r *traces.Row) {
		r.RequestID, r.PromptTokens = "three", 500
		r.ScheduledAt, r.SentAt = 200_000*us, 200_700*us
		r.OutputTokens, r.Chunks, r.Outcome, r.Error = 0, 0, traces.Failed, "connection refused, twice"
	})
	wantRow(t, rows[3], func(r *traces.Row) {
		r.RequestID, r.PromptTokens, r.EnginePromptTokens = "four", 500, 490
		r.ScheduledAt, r.SentAt, r.FirstTokenAt, r.LastTokenAt, r.EndedAt = 400_000*us, 400_300*us, 460_300*us, 1_400_300*us, 1_400_300*us
		r.OutputTokens, r.Chunks, r.ITLMean, r.Outcome, r.Error = 4, 5, 313_333_333, traces.Failed, "timeout"
	})
	if r := tr.Report(); r.OutOfOrder != 1 || r.Shifted != 0 || r.Origin != 1_700_000_000_000_200*us {
		t.Errorf("got %+v, want one row out of order and the wall clock's time of the start", r)
	}
}

// Older files lack the columns that later versions added.
func TestBlisColumnsOfOlderVersions(t *testing.T) {
	text := strings.Join(blisColumns, ",") + "\n5,,0,,true,9,2,0,1000,3000,5000,4,ok,\n"
	rows, _ := all(t, file(t, "x", text), Options{})
	wantRow(t, rows[0], func(r *traces.Row) {
		r.RequestID, r.PromptTokens, r.MaxTokens, r.OutputTokens, r.Chunks = "5", 9, 2, 2, 4
		r.ScheduledAt, r.SentAt, r.FirstTokenAt, r.LastTokenAt, r.EndedAt = 0, 0, 2e6, 4e6, 4e6
		r.ITLMean, r.Outcome = 2e6, traces.Success
	})
}

func TestBlisFaultsAreNamed(t *testing.T) {
	good := fixture(t, "blis.csv")
	for _, c := range []struct{ old, new, want string }{
		{",true,500,1,", ",false,500,1,", `field streaming: want true: of an answer that came whole the first token's time is not known, got "false"`},
		{",s7,2,,", ",s7,2,g1,", `field prefix_group: want nothing: which tokens the prompts of a group share is not stated, got "g1"`},
		{",s7,2,", ",s7,x,", `field round_index: want a whole number, 0 or more, got "x"`},
		{",true,500,1,", ",true,0,1,", `field input_tokens: want a whole number, 1 or more, got "0"`},
		{",true,500,1,", ",true,500,-1,", `field output_tokens: want a whole number, 0 or more, got "-1"`},
		{",300000,", ",3e5,", `field arrival_time_us: want a whole number of µs, 0 or more, got "3e5"`},
		{",1700000000300200,", ",,", "field send_time_us: want a whole number of µs, 0 or more, got nothing"},
		{",1700000000300200,", ",0,", `field send_time_us: want µs since the Unix epoch, above 0, in a row that is ok, got "0"`},
		{",1700000000330200,1700000000330200,", ",1700000000330200,1700000000330200000,", `field last_chunk_time_us: want a whole number of µs, 0 or more, got "1700000000330200000"`},
		{",3,ok,", ",3,,", "field status: want ok, or how the request failed, got nothing"},
		{"\n1,a,", "\n,a,", "field request_id: want an id, got nothing"},
		{",3,ok,", ",ok,", `want 28 fields, got "27"`},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s is not in the fixture", c.old)
		}
		path := file(t, "x", text)
		wantFault(t, path, "FILE: line 3: "+c.want, 1)
		if rows, tr := all(t, path, Options{MaxErrors: 1}); len(rows) != 3 || tr.Report().Skipped != 1 {
			t.Errorf("%s: got %d rows and %+v, want 3 and the one skipped", c.new, len(rows), tr.Report())
		}
	}
}

func FuzzBlis(f *testing.F) {
	f.Add([]byte(fixture(f, "blis.csv")))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &pass{opts: &Options{MaxErrors: -1}, report: &Report{}, clocks: &clocks{}}
		var rows []traces.Row
		for range 2 { // the first is for the clocks
			rows = nil
			p.emit = func(r *traces.Row) error {
				rows = append(rows, *r)
				return nil
			}
			_ = scanCSV(p, bytes.NewReader(data), blisColumns, blisRow, blisOptional...)
		}
		for _, r := range rows {
			if r.SentAt != traces.None && r.SentAt < r.ScheduledAt || r.ScheduledAt < 0 || r.RequestID == "" ||
				r.Outcome == traces.Success && (r.FirstTokenAt == traces.None || r.EndedAt == traces.None) {
				t.Errorf("got row %+v", r)
			}
		}
	})
}
