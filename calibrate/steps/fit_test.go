package steps_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"kvfleet/calibrate/fit"
	"kvfleet/calibrate/steps"
	"kvfleet/sim/latency"
)

// truth is another card: everything is faster than the base file says, each term by
// a factor of its own.
func truth(t testing.TB) latency.Params {
	p := base(t)
	p.WeightsMS, p.DenseTokenMS, p.PairMS = 2, 0.1, 5e-6
	p.MixedDecodeMS, p.MixedContextMS, p.SustainedShare, p.EagerMS = 0.03, 5e-4, 0.08, 0.9
	p.PrefillMixedMS, p.SmallMixedMS, p.NoiseShare = 0, 0, 0.004
	p.DecodeWave, p.DecodeWaveShare = 8.5, 0.7
	p.DecodeLadder = nil
	for b := 1; b <= 64; b = next(b) {
		p.DecodeLadder = append(p.DecodeLadder, latency.Rung{Batch: b, MS: 2 + 0.05*float64(b) + float64(b/32), ContextMS: 1e-4})
	}
	return p
}

func next(b int) int {
	if b < 8 {
		return 2 * b
	}
	return b + 8
}

// stepsOf makes a log of steps as a model has them.
type stepsOf struct {
	m    *latency.Model
	rng  *rand.Rand
	rows []steps.Row
}

func newSteps(t testing.TB, p latency.Params) *stepsOf {
	t.Helper()
	m, err := latency.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return &stepsOf{m: m, rng: rand.New(rand.NewPCG(3, 1))}
}

func (s *stepsOf) add(r steps.Row, ticks latency.Ticks) {
	r.Line, r.Steps = len(s.rows)+2, 1
	r.BusyMS = float64(ticks) / 1024 / 1e6 * (1 + s.m.NoiseShare()*s.rng.NormFloat64())
	s.rows = append(s.rows, r)
}

func (s *stepsOf) decode(n int, context int64) {
	ticks, per := s.m.Decode(n, 1, 1)
	s.add(steps.Row{DecodeRequests: n, DecodeContext: context}, ticks+latency.Ticks(context)*per)
}

func (s *stepsOf) prefill(tokens, context, n int, decoded int64) {
	ticks := s.m.Mixed([]latency.Chunk{{Tokens: tokens, Context: context}}, n, decoded, 1)
	s.add(steps.Row{PrefillRequests: 1, PrefillTokens: tokens, PrefillContext: int64(context), DecodeRequests: n, DecodeContext: decoded}, ticks)
}

func (s *stepsOf) log() *steps.Log { return &steps.Log{Path: "made.csv", Rows: s.rows, Pooled: true} }

// made is a log that tells everything.
func made(t testing.TB) *steps.Log {
	s := newSteps(t, truth(t))
	for _, tokens := range []int{1, 5, 17, 33, 63, 64, 65, 97, 128, 129, 193, 256, 257, 321, 449, 512, 577, 1024, 1025, 2048} {
		for _, before := range []int{0, 4000, 14000} {
			s.prefill(tokens, before+tokens, 0, 0)
		}
		s.prefill(tokens, tokens, 20, 4000)
		s.prefill(tokens, tokens+2000, 10, 60000)
	}
	for n := 1; n <= 64; n++ {
		s.decode(n, int64(n)*300)
		s.decode(n, int64(n)*2500)
	}
	return s.log()
}

func fitted(t *testing.T, l *steps.Log, p latency.Params) *steps.Result {
	t.Helper()
	r, err := steps.Fit(context.Background(), l, p, steps.Options{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func estimate(t *testing.T, r *steps.Result, path string) fit.Estimate {
	t.Helper()
	for _, e := range r.Estimates {
		if e.Path == path {
			return e
		}
	}
	t.Fatalf("no estimate of %s", path)
	return fit.Estimate{}
}

func TestFitFindsWhatMadeTheSteps(t *testing.T) {
	want := truth(t)
	r := fitted(t, made(t), base(t))
	if r.Params.TileTokens != 64 || r.Params.DecodeWave != 8.5 || !r.Ladder.Decided {
		t.Errorf("got tiles of %d, waves of %v, ladder %q, decided %v; want 64, 8.5 and the base file's",
			r.Params.TileTokens, r.Params.DecodeWave, r.Ladder.Chosen, r.Ladder.Decided)
	}
	for path, v := range map[string]float64{
		"step.weights_ms": want.WeightsMS, "step.dense_token_ms": want.DenseTokenMS, "step.pair_ms": want.PairMS,
		"step.mixed_decode_ms": want.MixedDecodeMS, "step.mixed_context_ms": want.MixedContextMS,
		"step.sustained_share": want.SustainedShare, "step.eager_ms": want.EagerMS, "step.tile_tokens": 64,
		"step.decode_ladder[1].ms": want.DecodeLadder[0].MS, "step.decode_ladder[8].ms": want.DecodeLadder[3].MS,
		"step.decode_ladder[8].context_ms": 1e-4, "step.decode_ladder[64].context_ms": 1e-4, "step.noise_share": 0.004,
		"step.decode_wave_share": 0.7,
	} {
		e := estimate(t, r, path)
		t.Logf("%s: %.4g [%.4g, %.4g], true %.4g", path, e.Value, e.Low, e.High, v)
		tolerance := 0.05
		switch path {
		case "step.sustained_share", "step.noise_share", "step.mixed_decode_ms":
			tolerance = 0.4
		}
		if e.Verdict != fit.Measured || math.Abs(e.Value/v-1) > tolerance {
			t.Errorf("%s: got %.4g (%v), want %.4g", path, e.Value, e.Verdict, v)
		}
		if !strings.Contains(path, "wave") && len(e.Draws) != 200 {
			t.Errorf("%s: got %d draws, want 200", path, len(e.Draws))
		}
	}
	if g := region(t, r, "all"); g.HeldOut.Median > 0.006 || g.HeldOut.P90 > 0.02 {
		t.Errorf("held out: got %+.4v, want about the noise of 0.4%%", g.HeldOut)
	}
	for path, v := range map[string]float64{"step.host_ms": base(t).HostMS, "step.prefill_mixed_ms": base(t).PrefillMixedMS} {
		if e := estimate(t, r, path); e.Verdict != fit.Prior || e.Value != v || e.Advice == "" {
			t.Errorf("%s: got %+v, want the base file's with advice", path, e)
		}
	}
}

func TestRungsWithoutStepsAreMarked(t *testing.T) {
	l := made(t)
	l.Rows = keep(l.Rows, func(r steps.Row) bool { return r.DecodeRequests < 25 || r.DecodeRequests > 40 })
	r := fitted(t, l, base(t))
	for _, rung := range []string{"32", "40", "72", "256"} {
		for _, field := range []string{"ms", "context_ms"} {
			e := estimate(t, r, "step.decode_ladder["+rung+"]."+field)
			if e.Verdict != fit.Prior || e.Advice == "" || !(e.Low < e.Value && e.Value < e.High) {
				t.Errorf("%s: got %v from %v to %v (%v), want a prior with an interval and advice", e.Path, e.Value, e.Low, e.High, e.Verdict)
			}
		}
	}
	// The law has a step at 32 that no row shows.
	if e := estimate(t, r, "step.decode_ladder[40].ms"); math.Abs(e.Value-5) > 0.5 {
		t.Errorf("got %v ms for the rung of 40, want about 5 from its neighbours", e.Value)
	}
}

func keep(rows []steps.Row, f func(steps.Row) bool) (out []steps.Row) {
	for _, r := range rows {
		if f(r) {
			out = append(out, r)
		}
	}
	return out
}

func TestWhatStepsDoNotTellIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		keep    func(steps.Row) bool
		path    string
		verdict fit.Verdict
		said    string // in Refused
	}{
		"contexts that follow the batch": {
			func(r steps.Row) bool { return r.PrefillRequests > 0 || r.DecodeContext == int64(r.DecodeRequests)*300 },
			"step.decode_ladder[8].context_ms", fit.Refused, "decode context and batch size never vary apart in this log (300 to 300 tokens a request): add steps with long contexts at small batches",
		},
		"no mixed steps": {
			func(r steps.Row) bool { return r.PrefillRequests == 0 || r.DecodeRequests == 0 }, "step.mixed_context_ms", fit.Prior, "",
		},
		"no prefill": {func(r steps.Row) bool { return r.PrefillRequests == 0 }, "step.dense_token_ms", fit.Prior, ""},
		"no decode":  {func(r steps.Row) bool { return r.PrefillRequests > 0 }, "step.decode_ladder[8].ms", fit.Prior, ""},
		"whole tiles only": {
			func(r steps.Row) bool {
				return r.PrefillTokens%256 == 0 && (r.PrefillRequests == 0 || r.DecodeRequests == 0)
			},
			"step.tile_tokens", fit.Prior, "step.tile_tokens: these steps cannot tell 64 from 16 32 128 256 tokens",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := made(t)
			l.Rows = keep(l.Rows, c.keep)
			r := fitted(t, l, base(t))
			e := estimate(t, r, c.path)
			if e.Verdict != c.verdict || e.Advice == "" {
				t.Errorf("%s: got %v and advice %q, want %v and some", c.path, e.Verdict, e.Advice, c.verdict)
			}
			if all := strings.Join(r.Refused, "\n"); !strings.Contains(all, c.said) {
				t.Errorf("got refusals\n%s\nwant %q", all, c.said)
			}
			if err := r.Params.Validate(); err != nil {
				t.Errorf("the fitted model is impossible: %v", err)
			}
		})
	}
}

func TestTooFewStepsAreRefused(t *testing.T) {
	one := newSteps(t, truth(t))
	for range 30 {
		one.decode(4, 4000)
	}
	few := made(t)
	few.Rows = few.Rows[:10]
	for want, l := range map[string]*steps.Log{"all 30 rows have one shape": one.log(), "10 rows, want more than 10": few} {
		if _, err := steps.Fit(context.Background(), l, base(t), steps.Options{}); !errors.Is(err, steps.ErrTooFew) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	bad := made(t)
	bad.Rows[3].PrefillContext = 0
	if _, err := steps.Fit(context.Background(), bad, base(t), steps.Options{}); err == nil || !strings.Contains(err.Error(), "row 4 of") {
		t.Errorf("got %v, want the row that contradicts itself", err)
	}
	if _, err := steps.Fit(context.Background(), made(t), base(t), steps.Options{Folds: 1, Draws: 3}); err == nil || !strings.Contains(err.Error(), "folds") || !strings.Contains(err.Error(), "draws") {
		t.Errorf("got %v, want both options' faults", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := steps.Fit(ctx, made(t), base(t), steps.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

func TestFitIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	l := made(t)
	want := fmt.Sprintf("%v", fitted(t, l, base(t))) // NaN is not equal to NaN
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if got := fmt.Sprintf("%v", fitted(t, l, base(t))); got != want {
		t.Error("one processor and several gave different results")
	}
}

// Steps of a simulated fleet: one by one, with what mixed steps cost on top, and
// prompts' last tokens that run as decode steps.
func TestSingleStepsOfOurOwn(t *testing.T) {
	p := base(t)
	p.NoiseShare, p.DecodeWave = 0.02, 0
	s := newSteps(t, p)
	for k := range 40 {
		for _, tokens := range []int{2, 20, 65, 130, 500, 1025, 2040} {
			s.prefill(tokens, tokens+100*k, 0, 0)
			s.prefill(tokens, tokens+100*k, 5, int64(5000+900*k))
		}
		for _, n := range []int{1, 2, 3, 7, 12, 20, 31} {
			s.decode(n, int64(n*(400+k)))
			s.decode(n, int64(n*(5000+k)))
		}
		last := &s.rows[len(s.rows)-1]
		last.PrefillRequests, last.PrefillTokens, last.PrefillContext = 1, 1, 500
		last.DecodeRequests, last.DecodeContext = last.DecodeRequests-1, last.DecodeContext-500
	}
	l := s.log()
	l.Pooled = false
	r := fitted(t, l, base(t))
	for path, v := range map[string]float64{
		"step.dense_token_ms": p.DenseTokenMS, "step.weights_ms": p.WeightsMS, "step.eager_ms": p.EagerMS,
		"step.decode_ladder[8].ms": p.DecodeLadder[3].MS, "step.noise_share": 0.02,
	} {
		if e := estimate(t, r, path); e.Verdict != fit.Measured || math.Abs(e.Value/v-1) > 0.15 || e.Low > v*1.02 || e.High < v*0.98 {
			t.Errorf("%s: got %.4g [%.4g, %.4g] (%v), want %.4g", path, e.Value, e.Low, e.High, e.Verdict, v)
		}
	}
	if g := region(t, r, "all"); g.HeldOut.Median > 0.02 || g.HeldOut.Rows > 700 {
		t.Errorf("got %+.4v, want shapes of several steps and an error of the noise", g.HeldOut)
	}
}
