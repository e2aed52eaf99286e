package calibrate

import (
	"context"
	"errors"

	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvfleet/calibrate/fit"
	"kvfleet/sim"
	"kvfleet/traces"
)

// A capture is a trace to be: prompts and how they are changed before they are
// written.
type capture struct {
	n       int
	gap     time.Duration
	even    bool
	prompt  func(rng *rand.Rand) int
	output  func(rng *rand.Rand) int
	engine  string
	change  func(i int, r *traces.Row)
	distort func(f *sim.Fleet)
}

// write serves the capture on cpu-vllm and writes what a client saw.
func (c capture) write(t *testing.T, name string) string {
	t.Helper()
	f, err := sim.LoadFleet("cpu-vllm")
	if err != nil {
		t.Fatal(err)
	}
	f = f.Copy()
	f.Step.NoiseShare = 0.02
	if c.distort != nil {
		c.distort(f)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	var prompts []sim.Prompt
	at := 0.0
	for range c.n {
		out := c.output(rng)
		prompts = append(prompts, sim.Prompt{ScheduledAt: int64(at), Tokens: c.prompt(rng), Max: out, Stop: out, Distinct: true})
		if step := float64(c.gap); c.even {
			at += step
		} else {
			at += step * rng.ExpFloat64()
		}
	}
	policy, err := sim.ParsePolicy("least_outstanding")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	meta := traces.Meta{Producer: "test"}
	meta.Fleet.Engine = c.engine
	sink, err := traces.Create(path, meta, traces.Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	_, err = sim.Run(context.Background(), sim.Config{
		Fleet: f, Policy: policy, Seed: 1, Trace: prompts, KeepIDs: true,
		Rows: func(r *traces.Row) {
			row := *r
			row.Blocks, row.BlockSize = nil, 0
			if c.change != nil {
				c.change(i, &row)
			}
			i++
			if err := sink.Write(&row); err != nil {
				t.Fatal(err)
			}
		},
	})
	if err := errors.Join(err, sink.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func between(low, high int) func(*rand.Rand) int {
	return func(rng *rand.Rand) int { return low + rng.IntN(high-low+1) }
}

func calibrated(t *testing.T, in Inputs) (*Result, error) {
	t.Helper()
	f, err := sim.LoadFleet("cpu-vllm")
	if err != nil {
		t.Fatal(err)
	}
	in.Base, in.BaseName = f, "cpu-vllm"
	return Run(context.Background(), in, Options{Seed: 1, Folds: -1})
}

func verdicts(r *Result) map[string]fit.Estimate {
	all := map[string]fit.Estimate{}
	for _, e := range r.Estimates {
		all[e.Path] = e
	}
	return all
}

// untold fails the test unless the constant was left where it was, with advice.
func untold(t *testing.T, r *Result, path string) {
	t.Helper()
	e, ok := verdicts(r)[path]
	if !ok {
		t.Errorf("%s: no estimate", path)
		return
	}
	if e.Verdict == fit.Measured || e.Advice == "" {
		t.Errorf("%s: got %v (%.4g, %.4g to %.4g), advice %q; want it refused or kept, with the run that would tell it", path, e.Verdict, e.Value, e.Low, e.High, e.Advice)
	}
}

// One request at a time at one distance: nothing meets anything, so what requests
// do to each other is not told.
func TestConstantLoad(t *testing.T) {
	path := capture{n: 120, gap: 3 * time.Second, even: true, prompt: between(100, 1200), output: between(10, 60)}.write(t, "constant.arrows")
	r, err := calibrated(t, Inputs{Traces: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"step.prefill_mixed_ms", "step.mixed_decode_ms", "step.mixed_context_ms", "front_end.service_ms", "front_end.stream_ms"} {
		untold(t, r, p)
	}
}

// Identical prompts: the cost of a token and of its pairs cannot be told apart.
func TestIdenticalPrompts(t *testing.T) {
	path := capture{n: 200, gap: time.Second, prompt: between(700, 700), output: between(20, 20)}.write(t, "identical.arrows")
	r, err := calibrated(t, Inputs{Traces: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"step.pair_ms", "front_end.service_token_ms"} {
		untold(t, r, p)
	}
}

func TestTenRows(t *testing.T) {
	path := capture{n: 10, gap: time.Second, prompt: between(100, 1000), output: between(10, 60)}.write(t, "ten.arrows")
	_, err := calibrated(t, Inputs{Traces: []string{path}})
	if err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("got %v, want that ten rows are too few", err)
	}
}

// A clock that jumps is named, and so are rows that contradict themselves.
func TestJumpsAndContradictions(t *testing.T) {
	shift := func(r *traces.Row, d time.Duration) {
		for _, at := range []*int64{&r.SentAt, &r.ReceivedAt, &r.DecidedAt, &r.DispatchedAt, &r.FirstByteAt, &r.FirstTokenAt, &r.LastTokenAt, &r.EndedAt} {
			if *at != traces.None {
				*at += int64(d)
			}
		}
	}
	path := capture{n: 150, gap: time.Second, prompt: between(100, 1000), output: between(10, 60), change: func(i int, r *traces.Row) {
		switch {
		case i == 20:
			r.FirstTokenAt = r.SentAt - int64(time.Millisecond)
		case i == 30:
			r.CachedTokens = r.EnginePromptTokens + 1
		case i >= 100:
			shift(r, time.Hour)
		}
	}}.write(t, "jump.arrows")
	r, err := calibrated(t, Inputs{Traces: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(r.Warnings, "\n")
	for _, want := range []string{"clock jumped", "row 21", "first_token_at", "row 31", "cached_tokens", "left out"} {
		if !strings.Contains(all, want) {
			t.Errorf("got warnings\n%s\nwant %q among them", all, want)
		}
	}
}

func TestMixedEngineSettings(t *testing.T) {
	f, err := sim.LoadFleet("cpu-vllm")
	if err != nil {
		t.Fatal(err)
	}
	c := capture{n: 60, gap: time.Second, prompt: between(100, 1000), output: between(10, 60), engine: f.EngineText()}
	a := c.write(t, "a.arrows")
	c.engine = strings.Replace(f.EngineText(), "max_num_seqs=16", "max_num_seqs=64", 1)
	b := c.write(t, "b.arrows")
	if _, err := calibrated(t, Inputs{Traces: []string{a, b}}); err == nil || !strings.Contains(err.Error(), "different settings") {
		t.Errorf("two engines: got %v, want an error that they differ", err)
	}
	if _, err := calibrated(t, Inputs{Traces: []string{b}}); err == nil || !strings.Contains(err.Error(), "max_num_seqs=64") {
		t.Errorf("another engine than the base's: got %v, want an error that says so", err)
	}
	settings := filepath.Join(t.TempDir(), "settings.json")
	write := func(text string) {
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"block_size": 32, "kv_cache": {"block_size": 16}}`)
	if _, err := ReadSettings(settings); err == nil || !strings.Contains(err.Error(), "block_size and kv_cache.block_size differ") {
		t.Errorf("got %v, want both keys named", err)
	}
	for _, text := range []string{"[]", "{", `{"block_size": 0}`, `{"block_size": "x"}`, `{"async_scheduling": 1}`, `{"enable_expert_parallel": 2}`, `{"something": 1}`} {
		write(text)
		if _, err := ReadSettings(settings); err == nil || !strings.Contains(err.Error(), settings) {
			t.Errorf("%s: got %v, want an error that names the file", text, err)
		}
	}
}

func TestNothingToCalibrate(t *testing.T) {
	if _, err := calibrated(t, Inputs{}); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v, want ErrNothing", err)
	}
	if _, err := calibrated(t, Inputs{Thermal: "../../shared/reference/rtx3090/thermal.csv"}); err == nil || !strings.Contains(err.Error(), "no thermal section") {
		t.Errorf("telemetry for a fleet without cards: got %v", err)
	}
}

// The same inputs and seed give the same bytes, and a fleet that is written reads
// back with its intervals and draws.
func TestSameBytes(t *testing.T) {
	path := capture{n: 120, gap: time.Second, prompt: between(100, 1200), output: between(10, 60), distort: func(f *sim.Fleet) { f.Step.DenseTokenMS *= 1.5 }}.write(t, "same.arrows")
	var texts [2]string
	for i := range texts {
		r, err := calibrated(t, Inputs{Traces: []string{path}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
		if i > 0 {
			continue
		}
		f, err := sim.DecodeFleet(text, "written")
		if err != nil {
			t.Fatal(err)
		}
		p := f.Provenance["step.dense_token_ms"]
		if len(p.Interval) != 2 || p.Interval[0] > 0.45 || p.Interval[1] < 0.45 || p.Rows == "" || p.Verdict != "measured" {
			t.Errorf("step.dense_token_ms: got %+v, want the truth 0.45 in its interval, and the rows", p)
		}
		if f.Draws == nil || len(f.Draws.Values) != 32 {
			t.Fatalf("got draws %+v, want 32", f.Draws)
		}
		for k := range f.Draws.Values {
			if _, err := f.Draw(k); err != nil {
				t.Error(err)
			}
		}
	}
	if texts[0] != texts[1] {
		t.Error("the same calibration twice gives two texts")
	}
}

// The report holds every number, its figures and the tables; the page needs no
// network.
func TestReport(t *testing.T) {
	path := capture{n: 100, gap: time.Second, prompt: between(100, 1200), output: between(10, 60)}.write(t, "report.arrows")
	r, err := calibrated(t, Inputs{Traces: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	paths, err := r.WriteReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 9 {
		t.Errorf("got %d files: %v", len(paths), paths)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "step.dense_token_ms", "report.arrows", "</html>"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("report.html lacks %q", want)
		}
	}
	for _, never := range []string{"<script", `src="http`, `href="http`, "@import"} {
		if strings.Contains(string(page), never) {
			t.Errorf("report.html holds %q: it must open without a network", never)
		}
	}
	estimates, err := os.ReadFile(filepath.Join(dir, "estimates.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(string(estimates), "\n"), len(r.Estimates)+1; got < want {
		t.Errorf("estimates.csv: got %d lines, want %d", got, want)
	}
	requests, err := os.ReadFile(filepath.Join(dir, "requests-1.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(requests), "\n"); got != 101 {
		t.Errorf("requests-1.csv: got %d lines, want a header and 100", got)
	}
}

// Experts spread over data-parallel ranks make the ranks step together.
func TestExpertParallelSettings(t *testing.T) {
	f, err := sim.LoadFleet("cpu-vllm")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "meta.json")
	for text, want := range map[string][2]int{
		`{"engine_kwargs": {"data_parallel_size": 2, "enable_expert_parallel": true}}`:  {2, 2},
		`{"engine_kwargs": {"enable_expert_parallel": true, "data_parallel_size": 4}}`:  {4, 4},
		`{"engine_kwargs": {"data_parallel_size": 2, "enable_expert_parallel": false}}`: {2, 0},
		`{"engine_kwargs": {"data_parallel_size": 2}}`:                                  {2, 0},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		settings, err := ReadSettings(path)
		if err != nil {
			t.Fatal(err)
		}
		g := f.Copy()
		apply(g, settings, "meta.json")
		if got := [2]int{len(g.Replicas), g.Engine.LockstepRanks}; got != want {
			t.Errorf("%s: got %d replicas, %d of them in step, want %v", text, got[0], got[1], want)
		}
		if err := g.Validate(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
