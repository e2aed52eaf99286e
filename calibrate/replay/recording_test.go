package replay

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kvfleet/traces"
	"kvfleet/traces/convert"
)

const ms = time.Millisecond

// Rows that contradict themselves are left out, each named with its place in the
// file and what is wrong; what is kept is as it was, in order of being sent.
func TestContradictions(t *testing.T) {
	bad := func(id string, change func(*traces.Row)) traces.Row {
		r := answered(id, 500*ms, 300*ms)
		change(&r)
		return r
	}
	rows := []traces.Row{
		answered("late", 900*ms, 300*ms),
		bad("unsent", func(r *traces.Row) { r.SentAt = traces.None }),
		bad("foreseen", func(r *traces.Row) { r.FirstTokenAt = r.SentAt - 1_500_000 }),
		answered("early", 100*ms, 300*ms),
		bad("reversed", func(r *traces.Row) { r.LastTokenAt = r.FirstTokenAt - 2_000_000 }),
		bad("ended", func(r *traces.Row) { r.EndedAt, r.FirstTokenAt, r.LastTokenAt = r.SentAt-1, traces.None, traces.None }),
		bad("cached", func(r *traces.Row) { r.CachedTokens = 101 }),
		bad("planned length", func(r *traces.Row) { r.EnginePromptTokens, r.PromptTokens, r.CachedTokens = traces.None, 60, 61 }),
		bad("silent", func(r *traces.Row) { r.OutputTokens = 0 }),
		answered("early", 700*ms, 300*ms),
		bad("failed", func(r *traces.Row) {
			r.Outcome, r.OutputTokens, r.FirstTokenAt, r.LastTokenAt = traces.Failed, 0, traces.None, traces.None
		}),
		bad("failed, no limit", func(r *traces.Row) { r.Outcome, r.OutputTokens, r.MaxTokens = traces.Failed, 0, traces.None }),
		bad("lengthless", func(r *traces.Row) { r.EnginePromptTokens, r.PromptTokens = traces.None, traces.None }),
		bad("promptless", func(r *traces.Row) { r.EnginePromptTokens = 0 }),
		bad("all cached", func(r *traces.Row) { r.CachedTokens = 100 }),
		bad("cached", func(*traces.Row) {}),
	}
	r := open(t, traces.Meta{}, rows...)
	var left []string
	for _, e := range r.Excluded {
		left = append(left, e.String())
	}
	want := []string{
		"row 2 (unsent): sent_at: is not known",
		"row 3 (foreseen): first_token_at: comes 1.500 ms before the request was sent",
		"row 5 (reversed): last_token_at: comes 2.000 ms before the first token",
		"row 6 (ended): ended_at: comes 0.000 ms before the request was sent",
		"row 7 (cached): cached_tokens: are 101 of a prompt of 100",
		"row 8 (planned length): cached_tokens: are 61 of a prompt of 60",
		"row 9 (silent): output_tokens: are 0 of an answer that succeeded",
		"row 10 (early): request_id: is that of row 4 too",
		"row 14 (promptless): prompt_tokens: are 0, want at least 1",
		"row 13 (lengthless): prompt_tokens: are not known",
	}
	if !slices.Equal(left, want) {
		t.Errorf("left out:\n%s\nwant\n%s", strings.Join(left, "\n"), strings.Join(want, "\n"))
	}
	for i, at := range []int{3, 10, 11, 14, 15, 0} {
		if !reflect.DeepEqual(r.Rows[i], rows[at]) {
			t.Errorf("row %d: got\n%+v, want row %d of the file\n%+v", i, r.Rows[i], at+1, rows[at])
		}
	}
	for i, at := range []int{1, 2, 4, 5, 6, 7, 8, 9, 13, 12} {
		if !reflect.DeepEqual(r.Left[i], rows[at]) {
			t.Errorf("left %d: got\n%+v, want row %d of the file\n%+v", i, r.Left[i], at+1, rows[at])
		}
	}
	if !slices.Equal(r.Judged, []bool{true, false, false, true, true, true}) {
		t.Errorf("judged %v, want all but the two that failed", r.Judged)
	}
	before := slices.Clone(r.Rows)
	simulate(t, r, madeFleet(t), "")
	if !reflect.DeepEqual(r.Rows, before) {
		t.Error("simulating has changed the rows")
	}
	if r.Identified || r.Closed || r.Rest {
		t.Errorf("identified %v, closed %v, rest %v; want none of it", r.Identified, r.Closed, r.Rest)
	}
}

// Rows that name no request are not one request.
func TestNamelessRows(t *testing.T) {
	if r := open(t, traces.Meta{}, answered("", 0, ms), answered("", ms, ms)); len(r.Rows) != 2 {
		t.Errorf("%d rows, left out %v", len(r.Rows), r.Excluded)
	}
}

// Warm-up rows and those whose first token is not known are simulated and not
// compared.
func TestJudged(t *testing.T) {
	warm, blind := answered("warm", 0, 300*ms), answered("blind", 10*ms, 300*ms)
	warm.Warmup, blind.FirstTokenAt = true, traces.None
	r := open(t, traces.Meta{}, warm, blind, answered("seen", 20*ms, 300*ms))
	if !slices.Equal(r.Judged, []bool{false, false, true}) {
		t.Errorf("judged %v, want the last", r.Judged)
	}
	for i, o := range simulate(t, r, madeFleet(t), "") {
		if o.TTFT <= 0 || o.E2E <= o.TTFT || o.Sent != r.Rows[i].SentAt || o.Ended != o.Sent+o.E2E {
			t.Errorf("row %d: %+v, want it served when it was sent", i, o)
		}
	}
}

// What was not measured is refused, and so is a trace of which nothing is left.
func TestRefused(t *testing.T) {
	planned := answered("b", ms, ms)
	planned = planned.Plan()
	planned.RequestID = "b"
	path := file(t, traces.Meta{}, answered("a", 0, ms), planned)
	_, err := Open(path)
	wantError(t, err, path+": row 2: has not run; want a measured trace")

	unsent := answered("a", 0, ms)
	unsent.SentAt = traces.None
	path = file(t, traces.Meta{}, unsent, unsent)
	_, err = Open(path)
	wantError(t, err, path+": none of its 2 rows can be simulated", "row 1 (a): sent_at: is not known")

	_, err = Open(filepath.Join(t.TempDir(), "none.arrows"))
	if !os.IsNotExist(err) && err == nil {
		t.Error("no such file: got no error")
	}
}

// What the reader has to say of the file is passed on.
func TestReadersRemarks(t *testing.T) {
	r := open(t, traces.Meta{}, answered("a", -5*ms, ms), answered("b", 0, ms))
	if want := []string{"1 row due or sent before time 0"}; !slices.Equal(r.Remarks, want) {
		t.Errorf("remarks %q, want %q", r.Remarks, want)
	}
	if out := simulate(t, r, madeFleet(t), ""); out[0].TTFT <= 0 || out[1].TTFT <= 0 || out[1].Sent-out[0].Sent != int64(5*ms) {
		t.Errorf("got %+v, want both served, 5 ms apart", out)
	}
}

// turns are requests of a conversation in full swing, one a second: each took 600
// ms, and most of its prompt was cached.
func turns(n int) []traces.Row {
	var rows []traces.Row
	for i := range n {
		r := answered(fmt.Sprint("r", i), time.Duration(i)*time.Second, 600*ms)
		r.Turn, r.CachedTokens = int32(4+i%3), 64
		rows = append(rows, r)
	}
	return rows
}

// A trace whose first request is a later turn that found its past in the cache was
// cut out of a run. What ran beside its first and last requests is not in it:
// twice the longest tenth's time from either end is not compared, and a remark says
// so.
func TestCutTrace(t *testing.T) {
	r := open(t, traces.Meta{}, turns(20)...)
	for i, judged := range r.Judged {
		if want := i >= 2 && i <= 17; judged != want { // 1.2 s from either end
			t.Errorf("row %d: judged %v, want %v", i, judged, want)
		}
	}
	if len(r.Remarks) != 1 || r.Remarks[0] != "begins in the midst of a run (its first request is a turn 4 with 64 tokens cached): the 4 requests of its first and last 1.2 s are not compared, since what ran beside them is not in it" {
		t.Errorf("remarks %q", r.Remarks)
	}
	for what, change := range map[string]func(*traces.Row){
		"a first turn":  func(r *traces.Row) { r.Turn = 0 },
		"nothing found": func(r *traces.Row) { r.CachedTokens = 0 },
		"not told":      func(r *traces.Row) { r.CachedTokens = traces.None },
	} {
		rows := turns(20)
		change(&rows[0])
		if r := open(t, traces.Meta{}, rows...); len(r.Remarks) > 0 || slices.Contains(r.Judged, false) {
			t.Errorf("begins with %s: judged %v, remarks %q; want all, and none", what, r.Judged, r.Remarks)
		}
	}
}

// arrivals is an open loop of n requests a second through a server that takes a
// while for each, and a client that lets only so many run at a time; 0 is any.
func arrivals(n int, perSecond float64, atOnce int) []traces.Row {
	rng := rand.New(rand.NewPCG(1, 5))
	var rows []traces.Row
	var busy []time.Duration // when each of the client's places is free
	due := 10.0
	for i := range n {
		due += rng.ExpFloat64() / perSecond
		sent := time.Duration(due * 1e9)
		took := time.Duration(400+rng.IntN(400)) * ms
		if atOnce > 0 && len(busy) == atOnce {
			k := slices.Index(busy, slices.Min(busy))
			if busy[k] > sent {
				sent = busy[k] + 500*time.Microsecond
			}
			busy = slices.Delete(busy, k, k+1)
		}
		busy = append(busy, sent+took)
		r := answered(fmt.Sprint("r", i), sent, took)
		r.ScheduledAt = int64(due * 1e9)
		rows = append(rows, r)
	}
	return rows
}

// A limit on the client's concurrency makes an open loop closed: requests are late
// and leave as others end. It is found and named. A loop that kept its times is not
// suspected, however loaded, and lateness of another kind is told as what it is.
func TestClientsLimit(t *testing.T) {
	limited := open(t, traces.Meta{}, arrivals(300, 10, 4)...)
	if len(limited.Remarks) != 1 || !strings.Contains(limited.Remarks[0], "of 300 requests were sent over 100 ms late, most of them as another ended: a limit on the client's concurrency made the open loop closed") {
		t.Errorf("4 at a time: remarks %q", limited.Remarks)
	}
	if r := open(t, traces.Meta{}, arrivals(300, 10, 0)...); len(r.Remarks) > 0 {
		t.Errorf("no limit: remarks %q", r.Remarks)
	}
	slow := arrivals(300, 0.5, 0)
	for i := range slow {
		slow[i].ScheduledAt -= int64(2 * time.Second)
	}
	if r := open(t, traces.Meta{}, slow...); len(r.Remarks) != 1 || r.Remarks[0] != "300 of 300 requests were sent over 100 ms late" {
		t.Errorf("all late: remarks %q", r.Remarks)
	}
	for late, told := range map[int]int{15: 0, 16: 1} { // over one in twenty
		few := arrivals(300, 0.5, 0)
		for i := range late {
			few[i].ScheduledAt -= int64(2 * time.Second)
		}
		if r := open(t, traces.Meta{}, few...); len(r.Remarks) != told {
			t.Errorf("%d of 300 late: remarks %q, want %d", late, r.Remarks, told)
		}
	}
	if r := open(t, closedLoop, arrivals(300, 10, 4)...); len(r.Remarks) > 0 || !r.Closed {
		t.Errorf("a closed loop: closed %v, remarks %q", r.Closed, r.Remarks)
	}
}

// probe is a published probe's file, as far as a test needs one.
func probe(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "probe.csv")
	text := "virtual_user,turn,warmup,started_ms,ttft_ms,total_ms,output_tokens,itl_mean_ms,itl_p50_ms,itl_max_ms,outcome\n" +
		"0,0,true,0,50,150,8,14,14,15,success\n0,1,false,160,50,160,8,14,14,15,success\n0,2,false,325,50,170,8,14,14,15,success\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A probe does not say how long its prompts are; a fleet does. It started with all
// idle and cold.
func TestProbe(t *testing.T) {
	r, err := Open(probe(t))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Closed || !r.Rest || r.Format != convert.KvrouteProbe {
		t.Errorf("closed %v, rest %v, %v", r.Closed, r.Rest, r.Format)
	}
	f := madeFleet(t)
	_, err = r.Simulate(t.Context(), f, "", 1)
	wantError(t, err, r.Path, ErrNoLengths.Error())
	out := simulate(t, r, f, "")
	tok := &f.Tokenizer
	want := int(probeBytes/tok.BytesPerToken+0.5) + tok.StartTokens + 2*tok.HeaderTokens + tok.TrailerTokens
	cached := tok.StartTokens / 16 * 16
	if got := r.Rows[0].EnginePromptTokens; got != int64(want) {
		t.Errorf("prompts of %d tokens, want %d", got, want)
	}
	for i, o := range out {
		if o.TTFT <= 0 || o.Cached != int64(cached) {
			t.Errorf("row %d: %+v, want it served with %d tokens cached", i, o, cached)
		}
	}
	if len(r.Remarks) != 1 || r.Remarks[0] != fmt.Sprintf("prompts are taken to be %d tokens, %d of them cached", want, cached) {
		t.Errorf("remarks %q", r.Remarks)
	}
	unknown := answered("a", 0, ms)
	unknown.PromptTokens, unknown.EnginePromptTokens = traces.None, traces.None
	other := open(t, traces.Meta{}, unknown)
	wantError(t, other.FitTo(f), other.Path, ErrNoLengths.Error())
}
