package workload

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"kvfleet/traces"
)

func plan() OpenPlan {
	return OpenPlan{Epoch: 3, Rate: 6, Window: 100 * time.Second, Tokenizer: rtx3090}
}

func collect(t *testing.T, rows traces.Source) []traces.Row {
	t.Helper()
	var out []traces.Row
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

func planned(rows []traces.Row) traces.Source {
	return func(yield func(traces.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestOpenRowsArePlansOfTheWorkload(t *testing.T) {
	m := published(t)
	rows := collect(t, m.OpenRows(plan()))
	if len(rows) != 600 {
		t.Fatalf("got %d rows, want 600: 6 a second for 100 s", len(rows))
	}
	if report := traces.Check(planned(rows)); report.Faults > 0 || report.Err != nil {
		t.Errorf("got %v, %v; want rows that do not contradict themselves", report.Findings, report.Err)
	}
	content, draws := m.Content(3, rtx3090, 16), m.Draws()
	turns := make([]int, 30)
	for k := range rows {
		r := &rows[k]
		turn := turns[r.VirtualUser]
		turns[r.VirtualUser]++
		session := draws.Session(int(r.VirtualUser), turn/4)
		p := content.Prompt(session, turn%4)
		want := traces.NewRow()
		want.RequestID, want.Session, want.SessionSource = r.RequestID, p.Session, traces.SessionSupplied
		want.Turn, want.VirtualUser, want.Epoch = int32(turn%4), r.VirtualUser, 3
		want.ScheduledAt = int64(math.Round(float64(k) / 6 * 1e9))
		want.PromptBytes, want.PromptTokens, want.MaxTokens = int64(p.Bytes), int64(p.Tokens), 64
		want.BlockSize, want.Blocks = 16, p.Blocks
		want.SystemPrompt, want.Branch = p.System, p.Branch
		if !reflect.DeepEqual(*r, want) {
			t.Fatalf("row %d: got %+v, want %+v", k, *r, want)
		}
		if plan := r.Plan(); !reflect.DeepEqual(plan, *r) {
			t.Fatalf("row %d: got plan %+v, want the row itself", k, plan)
		}
	}
}

func TestOpenRowsRepeat(t *testing.T) {
	m := published(t)
	for _, arrivals := range []string{"even", "poisson", "gamma"} {
		p := plan()
		p.Arrivals, p.Shape = arrivals, 0.5
		source := m.OpenRows(p)
		first, second := collect(t, source), collect(t, source)
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s: got other rows in the second pass", arrivals)
		}
		if arrivals != "even" && len(first) == 600 {
			t.Errorf("%s: got exactly 600 rows, want it to vary", arrivals)
		}
		p.Epoch = 4
		if other := collect(t, m.OpenRows(p)); reflect.DeepEqual(first, other) {
			t.Errorf("%s: got the same rows in another epoch", arrivals)
		}
		// A consumer may stop.
		for range source {
			break
		}
		// A longer window only adds rows.
		p = plan()
		p.Arrivals, p.Shape, p.Window = arrivals, 0.5, 130*time.Second
		if longer := collect(t, m.OpenRows(p)); !reflect.DeepEqual(longer[:len(first)], first) {
			t.Errorf("%s: got other rows at the beginning of a longer window", arrivals)
		}
	}
}

func TestOpenRowsStop(t *testing.T) {
	m := published(t)
	p := plan()
	type turn struct{ slot, visit, turn int }
	var asked []turn
	p.Stop = func(slot, visit, k int) int {
		asked = append(asked, turn{slot, visit, k})
		return 1 + k
	}
	rows := collect(t, m.OpenRows(p))
	if len(asked) != len(rows) {
		t.Fatalf("got asked %d times for %d rows", len(asked), len(rows))
	}
	for i, r := range rows {
		if want := (turn{int(r.VirtualUser), i / 120, int(r.Turn)}); asked[i] != want || r.MaxTokens != int64(1+r.Turn) {
			t.Errorf("row %d: got asked for %+v and %d tokens, want %+v and %d", i, asked[i], r.MaxTokens, want, 1+r.Turn)
		}
	}
}

func TestOpenRowsReportAllFaults(t *testing.T) {
	m := MultiTurn{Sessions: -1, Skew: -1}
	n := 0
	for _, err := range m.OpenRows(OpenPlan{Arrivals: "odd", Rate: 1, Think: -1, BlockSize: -1}) {
		n++
		if err == nil {
			t.Fatal("got no error")
		}
		for _, want := range []string{"sessions: got -1", "skew: got -1", `arrivals: got "odd"`, "think time: got -1ns", "window: got 0s", "tokenizer: bytes_per_token: got 0", "block size: got -1"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want it to say %q", err, want)
			}
		}
	}
	if n != 1 {
		t.Errorf("got %d rows, want one error", n)
	}
	p := plan()
	p.Rate, p.Think = 1e9, time.Hour
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "3.6e+12 conversations at once") {
		t.Errorf("got %v, want too many conversations refused", err)
	}
}

func TestOpenPlanWarnings(t *testing.T) {
	for _, c := range []struct {
		rate          float64
		think, window time.Duration
		want          []string
	}{
		{6, 0, 300 * time.Second, nil},
		{6, 5 * time.Second, 300 * time.Second, nil},
		{0.7, 10 * time.Second, 40 * time.Second, nil},
		{6, 0, 250 * time.Second, []string{"window of 4m10s is 12.5 visits of 20s (4 turns, 5s apart)"}},
		{6, 0, 5 * time.Second, []string{"0.25 visits"}},
		{1.3, 0, 20 * time.Second, []string{"is 6.5 conversations at once: 7 are held, with turns 5.385s apart"}},
		{0.1, 2 * time.Second, 9 * time.Second, []string{"1.125 visits", "0.2 conversations at once: 1 are held, with turns 10s apart"}},
	} {
		p := OpenPlan{Rate: c.rate, Think: c.think, Window: c.window}
		got := p.Warnings(4)
		if len(got) != len(c.want) {
			t.Errorf("%+v: got %q, want %q", c, got, c.want)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%+v: got %q, want it to say %q", c, got[i], c.want[i])
			}
		}
	}
}

func BenchmarkOpenRows(b *testing.B) {
	m := published(b)
	p := plan()
	p.Window = math.MaxInt64
	n := 0
	b.ReportAllocs()
	for range m.OpenRows(p) {
		if n++; n == b.N {
			break
		}
	}
}
