package traces

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func sliceSource(rows []Row) Source {
	return func(yield func(Row, error) bool) {
		for i := range rows {
			if !yield(rows[i], nil) {
				return
			}
		}
	}
}

// soundRow is an answered request that contradicts nothing.
func soundRow(n int64) Row {
	r := NewRow()
	r.RequestID, r.Session, r.SessionSource, r.Turn, r.VirtualUser = fmt.Sprint("r", n), "s", SessionSupplied, int32(n), 1
	r.ScheduledAt, r.SentAt, r.ReceivedAt, r.DecidedAt, r.DispatchedAt = n*100, n*100+1, n*100+2, n*100+3, n*100+4
	r.FirstByteAt, r.FirstTokenAt, r.LastTokenAt, r.EndedAt = n*100+5, n*100+6, n*100+7, n*100+8
	r.PromptTokens, r.EnginePromptTokens, r.CachedTokens, r.MaxTokens, r.OutputTokens = 33, 33, 32, 5, 5
	r.BlockSize, r.Blocks = 16, []uint64{1, 2}
	r.ITLMean, r.ITLP50, r.ITLP99, r.ITLMax = 2, 1, 3, 3
	r.Outcome = Success
	return r
}

func TestCheckPassesSoundRows(t *testing.T) {
	rows := []Row{soundRow(0), soundRow(1), soundRow(2)}
	again := soundRow(3)
	again.Turn = 0 // another visit
	report := Check(sliceSource(append(rows, again)))
	if report.Faults != 0 || report.Rows != 4 || report.Outcomes[Success] != 4 {
		t.Errorf("got %+v, want four answered rows without a finding", report)
	}
}

func TestCheckNamesRowAndField(t *testing.T) {
	for _, c := range []struct {
		field string
		spoil func(*Row)
	}{
		{"request_id", func(r *Row) { r.RequestID = "r0" }},
		{"request_id", func(r *Row) { r.RequestID = "" }},
		{"session_source", func(r *Row) { r.SessionSource = SessionNone }},
		{"turn", func(r *Row) { r.Turn = 3 }},
		{"decided_at", func(r *Row) { r.DecidedAt = r.ReceivedAt - 1 }},
		{"ended_at", func(r *Row) { r.EndedAt = 0 }},
		{"scheduled_at", func(r *Row) { r.ScheduledAt = -1 }},
		{"sent_at", func(r *Row) { r.ScheduledAt, r.SentAt, r.Session, r.SessionSource = None, -1, "", SessionNone }},
		{"ended_at", func(r *Row) { r.EndedAt = None }},
		{"itl_p50", func(r *Row) { r.ITLP50 = 4 }},
		{"itl_max", func(r *Row) { r.ITLMean, r.ITLP50, r.ITLP99, r.ITLMax = None, None, None, -1 }},
		{"cached_tokens", func(r *Row) { r.CachedTokens = 33 }},
		{"output_tokens", func(r *Row) { r.OutputTokens = 6 }},
		{"output_tokens", func(r *Row) { r.OutputTokens = 0 }},
		{"blocks", func(r *Row) { r.Blocks = r.Blocks[:1] }},
		{"block_size", func(r *Row) { r.BlockSize = 0 }},
		{"rerouted_from", func(r *Row) { r.Reroutes = 1 }},
		{"match_tokens", func(r *Row) { r.MatchTokens = -1 }},
		{"outcome", func(r *Row) { r.Outcome = 9 }},
		{"first_token_at", func(r *Row) { r.Outcome = Pending; r.EndedAt = None }},
	} {
		bad := soundRow(1)
		c.spoil(&bad)
		report := Check(sliceSource([]Row{soundRow(0), bad}))
		if report.Faults != 1 || report.Findings[0].Row != 2 || report.Findings[0].Field != c.field {
			t.Errorf("%s: got %v, want one finding in row 2", c.field, report.Findings)
		}
	}
}

func TestCheckReportsTheErrorThatEndedTheRows(t *testing.T) {
	wrong := errors.New("wrong")
	report := Check(func(yield func(Row, error) bool) { _ = yield(soundRow(0), nil) && yield(Row{}, wrong) })
	if report.Rows != 1 || report.Err != wrong {
		t.Errorf("got %+v, want one row and the error", report)
	}
}

func TestDescribe(t *testing.T) {
	a, b := soundRow(0), soundRow(1)
	b.Blocks = []uint64{1, 1<<53 + 1}
	info := Describe(sliceSource([]Row{a, b}))
	if info.Rows != 2 || info.Sessions != 1 || info.DistinctBlocks != 3 || info.Blocks != 4 || info.WideBlocks != 1 || info.LastArrival != 100 {
		t.Errorf("got %+v", info)
	}
	if want := 16. / 66; info.SharedPrefix != want || info.PromptTokens.P50 != 33 || info.OutputTokens.Sum != 10 {
		t.Errorf("got shared %v, prompts %+v, outputs %+v", info.SharedPrefix, info.PromptTokens, info.OutputTokens)
	}
	empty := Describe(sliceSource(nil))
	if !math.IsNaN(empty.SharedPrefix) || empty.FirstArrival != None {
		t.Errorf("no rows: got %+v, want nothing known", empty)
	}
}

func TestPlanForgetsWhatHappened(t *testing.T) {
	r := soundRow(4)
	r.ScheduledAt, r.MaxTokens = None, None
	p := r.Plan()
	if p.ScheduledAt != r.SentAt || p.MaxTokens != 5 || p.Outcome != Pending || p.SentAt != None || p.Replica != "" {
		t.Errorf("got %+v", p)
	}
}

func TestSLO(t *testing.T) {
	for _, text := range []string{"none", "ttft=1.2s", "itl=45ms", "ttft=1.2s,itl=45ms"} {
		s, err := ParseSLO(text)
		if err != nil || s.String() != text {
			t.Errorf("%s: got %s, %v", text, s, err)
		}
	}
	for _, text := range []string{"ttft", "ttft=0s", "tpot=1s", "ttft=1s;itl=1s"} {
		if _, err := ParseSLO(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want an error that names it", text, err)
		}
	}
}
