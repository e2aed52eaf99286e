package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/traces"
	"kvfleet/traces/convert"
	"kvfleet/traces/workload"
)

// source yields rows, and then an error if it is one.
func source(err error, rows ...traces.Row) traces.Source {
	return func(yield func(traces.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(traces.Row{}, err)
		}
	}
}

// planned is a row that has not been run.
func planned(at time.Duration, tokens, most int64) traces.Row {
	r := traces.NewRow()
	r.ScheduledAt, r.PromptTokens, r.MaxTokens = int64(at), tokens, most
	return r
}

// A planned row is sent when it is due and has the answer planned; a finished
// one is sent when it was sent and has the answer it got.
func TestPromptsFromRows(t *testing.T) {
	plain := planned(3*time.Second, 100, 20)
	chained := planned(2*time.Second, 1100, 7)
	chained.RequestID, chained.Session, chained.SessionSource, chained.Turn, chained.VirtualUser = "x", "s", traces.SessionDerived, 4, 9
	chained.Blocks, chained.BlockSize, chained.SystemPrompt, chained.Branch = []uint64{1, 2, 3}, 512, true, true
	finished := planned(time.Second, 100, 20)
	finished.SentAt, finished.EnginePromptTokens, finished.OutputTokens, finished.PromptBytes = int64(4*time.Second), 111, 5, 444
	closed := planned(0, 100, traces.None)
	closed.ScheduledAt, closed.SentAt, closed.OutputTokens = traces.None, int64(5*time.Second), 8
	longer := planned(6*time.Second, 100, 20)
	longer.SentAt, longer.OutputTokens = int64(6*time.Second), 30
	failed := planned(7*time.Second, 100, 20)
	failed.SentAt, failed.OutputTokens, failed.Outcome = int64(7*time.Second), 0, traces.Failed

	prompts, report, err := PromptsFromRows(source(nil, plain, chained, finished, closed, longer, failed))
	if err != nil {
		t.Fatal(err)
	}
	if want := (TraceReport{Rows: 6, Unsorted: 1, Distinct: 5}); report != want {
		t.Errorf("got report %+v, want %+v", report, want)
	}
	want := []Prompt{
		{Session: "s", Source: traces.SessionDerived, Turn: 4, User: 9, Tokens: 1100, Trace: []uint64{1, 2, 3}, TraceBlock: 512, Max: 7, Stop: 7,
			System: true, Branch: true, ScheduledAt: 2e9, RequestID: "x"},
		{Turn: -1, User: -1, Tokens: 100, Distinct: true, Max: 20, Stop: 20, ScheduledAt: 3e9},
		{Turn: -1, User: -1, Bytes: 444, Tokens: 111, Distinct: true, Max: 20, Stop: 5, ScheduledAt: 4e9},
		{Turn: -1, User: -1, Tokens: 100, Distinct: true, Max: 8, Stop: 8, ScheduledAt: 5e9},
		{Turn: -1, User: -1, Tokens: 100, Distinct: true, Max: 30, Stop: 30, ScheduledAt: 6e9},
		{Turn: -1, User: -1, Tokens: 100, Distinct: true, Max: 20, Stop: 20, ScheduledAt: 7e9},
	}
	for i := range want {
		if got, want := fmt.Sprintf("%+v", prompts[i]), fmt.Sprintf("%+v", want[i]); got != want {
			t.Errorf("prompt %d: got\n%s, want\n%s", i, got, want)
		}
	}
	chained.Blocks[0] = 99
	if prompts[0].Trace[0] != 1 {
		t.Error("a prompt holds the row's own blocks, which its source may reuse")
	}
	if _, report, err := PromptsFromRows(source(nil, plain)); err != nil || !report.Planned {
		t.Errorf("a planned trace: got %+v, %v", report, err)
	}
	if got, report, err := PromptsFromRows(source(nil)); err != nil || len(got) != 0 || report.Rows != 0 {
		t.Errorf("no rows: got %d, %+v, %v", len(got), report, err)
	}
}

// Rows that nobody can replay are errors that name row and field.
func TestPromptsFromBadRows(t *testing.T) {
	good := planned(0, 100, 20)
	bad := func(change func(*traces.Row)) traces.Row {
		r := good
		change(&r)
		return r
	}
	for _, c := range []struct {
		row  traces.Row
		want string
	}{
		{bad(func(r *traces.Row) { r.ScheduledAt = traces.None }), "row 2: scheduled_at: got none"},
		{bad(func(r *traces.Row) { r.PromptTokens = traces.None }), "row 2: prompt_tokens: got none"},
		{bad(func(r *traces.Row) { r.PromptTokens = 0 }), "row 2: prompt_tokens: got 0"},
		{bad(func(r *traces.Row) { r.EnginePromptTokens = -1 }), "row 2: engine_prompt_tokens: got -1"},
		{bad(func(r *traces.Row) { r.MaxTokens = traces.None }), "row 2: max_tokens: got none"},
		{bad(func(r *traces.Row) { r.MaxTokens = 0 }), "row 2: max_tokens: got 0"},
	} {
		prompts, _, err := PromptsFromRows(source(nil, good, c.row, good))
		wantError(t, err, c.want)
		if len(prompts) != 1 {
			t.Errorf("%s: got %d prompts beside the error, want those before it", c.want, len(prompts))
		}
	}
	torn := errors.New("torn")
	if prompts, _, err := PromptsFromRows(source(torn, good, good)); !errors.Is(err, torn) || len(prompts) != 2 {
		t.Errorf("got %d prompts and %v, want the source's error", len(prompts), err)
	}
}

// tokensOf is the slow twin of a trace prompt's identity: what each token is.
// Two prompts have equal tokens up to the end of the last trace block they share.
// A token is where it stands, in which trace block or in whose own text.
type token struct {
	block uint64
	owner int
	at    int
}

func tokensOf(p *Prompt, serial int) []token {
	tokens := make([]token, p.Tokens)
	for i := range tokens {
		if b := i / max(1, p.TraceBlock); p.TraceBlock > 0 && b < len(p.Trace) {
			tokens[i] = token{block: p.Trace[b], at: i}
		} else {
			tokens[i] = token{owner: serial + 1, at: i}
		}
	}
	return tokens
}

func sharedRun[T comparable](a, b []T) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Two prompts share engine blocks and prefix blocks exactly as far as the
// trace's ids say, whatever the sizes of its blocks and the engine's, and
// nothing beyond: against a twin that spells out every token.
func TestIdentities(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{512, 64, 16, 100, 7} {
		for _, engineBlock := range []int{16, 64} {
			for _, bytesPerToken := range []float64{4, 1.6577} {
				f := *smallFleet(t)
				f.Engine.BlockSize, f.Router.BytesPerToken = engineBlock, bytesPerToken
				ids := newIdentities(&f)
				prompts := sharing(rng, size, 40)
				var blocks, prefix [][]uint64
				var tokens [][]token
				for i := range prompts {
					blocks = append(blocks, ids.blocks(nil, &prompts[i]))
					prefix = append(prefix, ids.prefix(nil, &prompts[i]))
					tokens = append(tokens, tokensOf(&prompts[i], i))
				}
				name := fmt.Sprintf("trace blocks of %d, engine blocks of %d, %v bytes a token", size, engineBlock, bytesPerToken)
				for i := range prompts {
					checkIdentity(t, name, &prompts[i], blocks[i], prefix[i], &f)
					for j := range i {
						a, b := tokens[i], tokens[j]
						shared := sharedRun(a, b)
						if got, want := sharedRun(blocks[i], blocks[j]), shared/engineBlock; got != want {
							t.Fatalf("%s: prompts of %d and %d tokens share %d engine blocks, want %d (%d tokens)", name, len(a), len(b), got, want, shared)
						}
						if got, want := sharedRun(prefix[i], prefix[j]), int(float64(shared)*bytesPerToken)/64; got != want {
							t.Fatalf("%s: prompts of %d and %d tokens share %d prefix blocks, want %d (%d tokens)", name, len(a), len(b), got, want, shared)
						}
						// Past the first difference nothing is equal again.
						at := sharedRun(blocks[i], blocks[j])
						for _, h := range blocks[i][at:] {
							if slices.Contains(blocks[j], h) {
								t.Fatalf("%s: engine block %d of one prompt is in another, which is not its prefix", name, h)
							}
						}
					}
				}
			}
		}
	}
}

// sharing is prompts of one trace: a tree of blocks, some of them cut short,
// some with a tail that the trace does not speak of.
func sharing(rng *rand.Rand, size, n int) []Prompt {
	prompts := []Prompt{{Tokens: 333, Distinct: true}, {Tokens: 5, Distinct: true}}
	next := uint64(0)
	for len(prompts) < n {
		p := Prompt{TraceBlock: size}
		if other := prompts[rng.IntN(len(prompts))]; rng.IntN(3) > 0 && len(other.Trace) > 0 {
			whole := other.Tokens / size // a block cut short is the end of a prompt
			p.Trace = slices.Clone(other.Trace[:rng.IntN(min(whole, len(other.Trace))+1)])
		}
		for range 1 + rng.IntN(1+1500/size) {
			next++
			p.Trace = append(p.Trace, next)
		}
		p.Tokens = size*len(p.Trace) - rng.IntN(size)
		if rng.IntN(3) == 0 {
			p.Tokens = size*len(p.Trace) + rng.IntN(100)
		}
		prompts = append(prompts, p)
	}
	return prompts
}

func checkIdentity(t *testing.T, name string, p *Prompt, blocks, prefix []uint64, f *Fleet) {
	t.Helper()
	if got, want := len(blocks), p.Tokens/f.Engine.BlockSize; got != want {
		t.Fatalf("%s: %d tokens have %d engine blocks, want %d", name, p.Tokens, got, want)
	}
	if got, want := len(prefix), int(float64(p.Tokens)*f.Router.BytesPerToken)/64; got != want {
		t.Fatalf("%s: %d tokens have %d prefix blocks, want %d", name, p.Tokens, got, want)
	}
	seen := map[uint64]bool{}
	for _, h := range blocks {
		if h == 0 || h >= 1<<63 || seen[h] {
			t.Fatalf("%s: block number %d twice or out of range", name, h)
		}
		seen[h] = true
	}
}

// A row that tells its bytes keeps their number, and shares the same blocks as
// if it did not: the next turn of a conversation has another ratio.
func TestIdentityOfStatedBytes(t *testing.T) {
	f := smallFleet(t)
	ids := newIdentities(f)
	a := Prompt{Tokens: 1600, Bytes: 6500, TraceBlock: 16}
	for i := range 100 {
		a.Trace = append(a.Trace, uint64(i+1))
	}
	b := a
	b.Tokens, b.Bytes = 3200, 12300
	for i := range 100 {
		b.Trace = append(b.Trace[:100+i:100+i], uint64(i+1000))
	}
	x, y := ids.prefix(nil, &a), ids.prefix(nil, &b)
	if len(x) != 6500/64 || len(y) != 12300/64 || sharedRun(x, y) != 1600*4/64 {
		t.Errorf("got %d and %d prefix blocks, %d shared, want %d, %d, %d", len(x), len(y), sharedRun(x, y), 6500/64, 12300/64, 1600*4/64)
	}
}

// A recording whose origin lies after its first requests begins at 0.
func TestEarlyRowsAreShifted(t *testing.T) {
	row := func(at int64) traces.Row {
		r := traces.NewRow()
		r.ScheduledAt, r.PromptTokens, r.MaxTokens = at, 20, 5
		return r
	}
	prompts, report, err := PromptsFromRows(source(nil, row(3), row(-5), row(0)))
	if err != nil {
		t.Fatal(err)
	}
	var ats []int64
	for _, p := range prompts {
		ats = append(ats, p.ScheduledAt)
	}
	if !slices.Equal(ats, []int64{0, 5, 8}) || report.Shift != 5 || report.Unsorted != 1 {
		t.Errorf("due at %v, %+v", ats, report)
	}
}

// A prompt beyond the context is refused by the multi-turn drivers too, and a
// workload whose prompts are all too long before it starts.
func TestWorkloadBeyondTheContext(t *testing.T) {
	f := loadFleet(t, "rtx3090x5")
	f.Tokenizer.StartTokens = 126_000
	cfg := Config{Fleet: f, Policy: choice(t, "round_robin"), Users: 8, Window: 2 * time.Minute}
	var err error
	cfg.Workload, err = workload.Published(1, 0, f.KVTokens(), 1).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), cfg)
	wantError(t, err, "its prompts reach about 13")
	f.Tokenizer.StartTokens = 25
	rows, _ := rowsOf(t, cfg)
	longest := int64(0)
	for _, r := range rows {
		longest = max(longest, r.PromptTokens+r.MaxTokens)
	}
	f.MaxModelLen = int(longest) - 1
	rows, result := rowsOf(t, cfg)
	for _, r := range rows {
		if (r.Outcome == traces.Failed) != (r.PromptTokens+r.MaxTokens > longest-1) {
			t.Errorf("%d tokens: %v", r.PromptTokens+r.MaxTokens, r.Outcome)
		}
	}
	if len(result.Rejected) == 0 {
		t.Error("nothing was rejected")
	}
}

// What no replica could ever serve is named, and nothing is lost.
func TestRejectedPrompts(t *testing.T) {
	f := smallFleet(t) // a replica holds 2,240 tokens, the model takes 4,096
	var trace []Prompt
	for i, tokens := range []int{100, 2240, 2230, 4090, 5000, 2239, 1 << 40, 1} {
		trace = append(trace, Prompt{ScheduledAt: int64(i), Tokens: tokens, Max: 10, Stop: 1, Distinct: true})
	}
	trace[3].RequestID = "long"
	rows, result := rowsOf(t, Config{Fleet: f, Policy: choice(t, "prefix_affinity"), Trace: trace, KeepIDs: true})
	want := []Rejection{
		{"sim-2", "2240 tokens of prompt and 10 of answer, a replica's KV cache holds 2240"},
		{"long", "4090 tokens of prompt and 10 of answer, the model's context is 4096"},
		{"sim-5", "5000 tokens of prompt and 10 of answer, the model's context is 4096"},
		{"sim-6", "2239 tokens of prompt and 10 of answer, a replica's KV cache holds 2240"},
		{"sim-7", "1099511627776 tokens of prompt and 10 of answer, the model's context is 4096"},
	}
	if !slices.Equal(result.Rejected, want) {
		t.Errorf("got\n%v, want\n%v", result.Rejected, want)
	}
	if result.End != time.Duration(rows[len(rows)-1].EndedAt) {
		t.Errorf("ended at %v, the last row at %d ns", result.End, rows[len(rows)-1].EndedAt)
	}
	if len(rows) != len(trace) || result.Summary.Failed != int64(len(want)) {
		t.Errorf("%d rows of %d, %d failed, want %d", len(rows), len(trace), result.Summary.Failed, len(want))
	}
}

func TestUnsortedTraceIsRefused(t *testing.T) {
	f := smallFleet(t)
	for _, ats := range [][2]int64{{5, 4}, {-1, 0}} {
		trace := []Prompt{{Tokens: 1, Max: 1, Stop: 1, ScheduledAt: ats[0]}, {Tokens: 1, Max: 1, Stop: 1, ScheduledAt: ats[1]}}
		_, err := Run(context.Background(), Config{Fleet: f, Policy: choice(t, "round_robin"), Trace: trace})
		wantError(t, err, "trace row", "want times from 0 on in rising order")
	}
}

// What a run kept can be run again: the rows of a run, replayed, offer the same
// prompts at the same times, which share as much.
func TestRowsReplay(t *testing.T) {
	cfg := lawful(t, DriverOpen, rand.New(rand.NewPCG(3, 14)))
	cfg.Policy = choice(t, "prefix_affinity")
	rows, first := rowsOf(t, cfg)
	for i := range rows {
		rows[i].Blocks = slices.Clone(rows[i].Blocks)
	}
	prompts, report, err := PromptsFromRows(source(nil, rows...))
	if err != nil || report.Distinct != 0 || report.Planned {
		t.Fatalf("got %+v, %v", report, err)
	}
	again, second := rowsOf(t, Config{Fleet: cfg.Fleet, Policy: cfg.Policy, Seed: cfg.Seed, Epoch: cfg.Epoch, Trace: prompts, Window: cfg.Window})
	if len(again) != len(rows) {
		t.Fatalf("got %d rows, want %d", len(again), len(rows))
	}
	a, b := &first.Summary, &second.Summary
	if d := a.HitRate - b.HitRate; d > 0.03 || d < -0.03 || a.HitRate < 0.1 {
		t.Errorf("hit rate %.3f, replayed %.3f", a.HitRate, b.HitRate)
	}
	affinity := func(rows []traces.Row) (n int) {
		for _, r := range rows {
			if r.Reason == "PREFIX_AFFINITY" {
				n++
			}
		}
		return n
	}
	if x, y := affinity(rows), affinity(again); y < x*95/100 || y > x*105/100 {
		t.Errorf("%d requests followed a match, replayed %d", x, y)
	}
}

const samples = "../../shared/data/traces"

// samplePrompts is a public trace's prompts, or skips the test.
func samplePrompts(t testing.TB, name string, o convert.Options) ([]Prompt, TraceReport) {
	t.Helper()
	path := filepath.Join(samples, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here", name)
	}
	trace, err := convert.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	prompts, report, err := PromptsFromRows(convert.Sorted(trace.Rows()))
	if err != nil {
		t.Fatal(err)
	}
	return prompts, report
}

// The public samples run on the published fleet, and everything adds up.
func TestSampleTraces(t *testing.T) {
	for _, c := range []struct {
		name     string
		options  convert.Options
		distinct bool
		hits     float64 // the least that caching should find
	}{
		{"mooncake_fast25_conversation_first3000.jsonl", convert.Options{Limit: 600, SpreadBin: 3 * time.Second}, false, 0.03},
		{"azure_llm_2023_conv_first3000.csv", convert.Options{Limit: 1500}, true, 0},
		{"azure_llm_2023_code_first3000.csv", convert.Options{Limit: 1500}, true, 0},
		{"weka_claude_code", convert.Options{Stagger: time.Minute}, false, 0.2},
	} {
		for _, policy := range []string{"prefix_affinity", "least_outstanding", "exact_residency"} {
			t.Run(c.name+"/"+policy, func(t *testing.T) {
				prompts, report := samplePrompts(t, c.name, c.options)
				if report.Rows != len(prompts) || (report.Distinct == report.Rows) != c.distinct {
					t.Errorf("%d prompts, %+v", len(prompts), report)
				}
				rows, result := rowsOf(t, Config{Fleet: loadFleet(t, "rtx3090x5"), Policy: choice(t, policy), Trace: prompts})
				s := &result.Summary
				if len(rows) != len(prompts) || s.Failed != int64(len(result.Rejected)) || s.Failed > s.Requests/2 {
					t.Errorf("%d rows of %d, %d failed, %d rejected", len(rows), len(prompts), s.Failed, len(result.Rejected))
				}
				if s.Requests != int64(len(rows)) || s.Success+s.Failed != s.Requests {
					t.Errorf("%d of %d succeeded, %d rows", s.Success, s.Requests, len(rows))
				}
				placed := int64(0)
				for _, p := range s.Placement {
					placed += p.Requests
				}
				if placed != s.Success || s.HitRate < c.hits || c.distinct && s.HitRate != 0 {
					t.Errorf("%d placed of %d, hit rate %.3f, want at least %v", placed, s.Requests, s.HitRate, c.hits)
				}
				t.Logf("%d rows, %d rejected, hit rate %.3f, TTFT p50 %.0f ms", len(rows), len(result.Rejected), s.HitRate, s.TTFTP50)
			})
		}
	}
}

// Rows say how old the engine's report was, to policies that read one.
func TestSignalAge(t *testing.T) {
	f := smallFleet(t)
	f.Router.ReportEvery, f.Router.ReportWindow = 200*time.Millisecond, 10*time.Second
	for text, reads := range map[string]bool{"prefix_affinity": false, "prefix_affinity:hit_rate_low_water=0.5": true} {
		c, err := policies.ParseChoice(text)
		if err != nil {
			t.Fatal(err)
		}
		rows, _ := rowsOf(t, Config{Fleet: f, Policy: c, Users: 4, Window: 5 * time.Second, Workload: smallLoad(t, f)})
		known := 0
		for _, r := range rows {
			if r.SignalAge == traces.None {
				continue
			}
			known++
			if age := time.Duration(r.SignalAge); age < 0 || age > f.Router.ReportEvery {
				t.Errorf("%s: a report of %v ago", text, age)
			}
		}
		if (known > len(rows)/2) != reads || !reads && known != 0 {
			t.Errorf("%s: %d of %d rows have an age", text, known, len(rows))
		}
	}
}
