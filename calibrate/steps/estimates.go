package steps

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"kvfleet/calibrate/fit"
	"kvfleet/sim/latency"
)

// An estimator writes a fit's estimates into its result.
type estimator struct {
	*Result
	log   *Log
	base  latency.Params
	draws int
	rng   *rand.Rand
}

func (e *estimator) add(x fit.Estimate) {
	if x.Draws == nil {
		x.Draws = repeated(x.Value, e.draws)
		x.Low, x.High = x.Value, x.Value
	} else {
		x.Low, x.High = fit.Interval(x.Draws)
		// The central draw need not be the value.
		x.Low, x.High = min(x.Low, x.Value), max(x.High, x.Value)
	}
	e.Estimates = append(e.Estimates, x)
}

func (e *estimator) refuse(name, why, advice string) {
	e.Refused = append(e.Refused, fmt.Sprintf("%s: %s: %s", name, why, advice))
}

// mixed writes the constants of steps that prefill.
func (e *estimator) mixed(m *mixedFit, list []shape) {
	all := constants()
	rows := e.log.rowsOf(len(list), "shapes that prefill")
	var draws [][]float64
	if len(m.free) > 0 {
		draws = m.solution.Draws(e.draws, e.rng)
	}
	for j, c := range all {
		x := fit.Estimate{Path: c.path, Unit: c.unit, Value: *c.at(&e.Params)}
		if i := slices.Index(m.free, j); i >= 0 {
			x.Rows, x.How = rows, fmt.Sprintf("robust least squares of relative error weighted by steps (%d at most); one-step bootstrap over shapes", capSteps)
			for _, d := range draws {
				x.Draws = append(x.Draws, d[i])
			}
			if p := m.solution.Problem.Parameters[i]; x.Value >= 0.999*p.High {
				e.Warnings = append(e.Warnings, fmt.Sprintf("%s: ended at the upper bound of its search, %.4g", c.path, p.High))
			}
			e.add(x)
			continue
		}
		x.Verdict, x.How, x.Advice = fit.Prior, "the base file's", c.advice
		if g := m.fixed[j]; len(g.Partners) > 0 {
			x.Verdict = fit.Refused
			e.refuse(c.path, fmt.Sprintf("these steps cannot tell it from %s", strings.Join(g.Partners, ", ")), c.advice)
		}
		e.add(x)
	}
	e.tile(m, rows)
}

// tile writes tile_tokens.
func (e *estimator) tile(m *mixedFit, rows string) {
	x := fit.Estimate{Path: "step.tile_tokens", Unit: "tokens", Value: float64(e.Params.TileTokens), Verdict: fit.Prior,
		How: "the base file's", Advice: "add steps of one new token more than odd multiples of 16, 32, 64 and 128"}
	if len(m.tiles) > 0 {
		var said []string
		for _, t := range m.tiles {
			said = append(said, fmt.Sprintf("%d: %s", t.Tokens, share(t.Score)))
		}
		x.How = "compared by mean error in sample: " + strings.Join(said, ", ")
		if len(m.alike) == 0 {
			x.Verdict, x.Rows, x.Advice = fit.Measured, rows, ""
		} else {
			why := fmt.Sprintf("these steps cannot tell %d from %s tokens", e.Params.TileTokens, strings.Trim(fmt.Sprint(m.alike), "[]"))
			x.How += "; " + why
			e.refuse(x.Path, why, x.Advice)
		}
	}
	e.add(x)
}

// ladder writes the rungs.
func (e *estimator) ladder(d *decodeFit, list []shape) {
	const advice = "add steps that only decode, at two contexts for every captured size"
	if d == nil {
		for _, r := range e.Params.DecodeLadder {
			path := fmt.Sprintf("step.decode_ladder[%d].", r.Batch)
			e.add(fit.Estimate{Path: path + "ms", Unit: "ms", Value: r.MS, Verdict: fit.Prior, How: "the base file's", Advice: advice})
			e.add(fit.Estimate{Path: path + "context_ms", Unit: "ms per token of context", Value: r.ContextMS, Verdict: fit.Prior, How: "the base file's", Advice: advice})
		}
		e.waves(&Ladder{Wave: e.base.DecodeWave, WaveShare: e.base.DecodeWaveShare}, len(list), "the base file's")
		return
	}
	pooled, _ := d.pooled()
	drawn := make([]rungs, e.draws)
	for k := range drawn {
		drawn[k] = d.fill(d.fit.draw(e.rng), e.rng)
	}
	const longer = "add steps with long contexts at small batches"
	if d.refused != "" {
		e.refuse("step.decode_ladder context_ms", d.refused, longer)
	}
	if !d.report.Decided {
		e.refuse("step.decode_ladder batch", "these steps fit several ladders alike",
			"add steps that decode for every number of requests from 1 to 48")
	}
	how := "no waves show in these steps"
	if len(d.report.Waves) == 0 {
		how = "the base file's"
	}
	e.waves(&d.report, len(list), how)
	for i, b := range d.sizes {
		path := fmt.Sprintf("step.decode_ladder[%d].", b)
		below := 1
		if i > 0 {
			below = d.sizes[i-1] + 1
		}
		sizes := fmt.Sprintf("%d to %d requests", below, b)
		if below == b {
			sizes = fmt.Sprintf("%d requests", b)
		}
		ms := fit.Estimate{Path: path + "ms", Unit: "ms", Value: d.values.ms[i], Draws: make([]float64, e.draws)}
		per := fit.Estimate{Path: path + "context_ms", Unit: "ms per token of context", Value: d.values.context[i], Draws: make([]float64, e.draws)}
		for k := range drawn {
			ms.Draws[k], per.Draws[k] = drawn[k].ms[i], drawn[k].context[i]
		}
		if d.rows[i] > 0 {
			ms.Rows = e.log.rowsOf(d.rows[i], "shapes that decode for "+sizes)
			ms.How = "robust least squares of relative error, jointly with the cost of context; bootstrap over residuals"
		} else {
			ms.Verdict, ms.How = fit.Prior, "no steps; from the neighbouring rungs by "+d.report.Curve
			if d.lent(d.known(), i) {
				ms.How = "no steps; the base file's, as its nearest rung with steps is slower or faster"
			}
			ms.Advice = "add steps that decode for " + sizes
		}
		switch {
		case d.refused != "":
			per.Verdict, per.How, per.Advice = fit.Refused, "the base file's", longer
			per.Draws = nil
		case d.contextKnown(i):
			per.Rows, per.How = ms.Rows, ms.How
		case d.rows[i] > 0:
			per.Verdict, per.How = fit.Prior, fmt.Sprintf("contexts differ too little: drawn to all rungs' %.4g", pooled)
			per.Advice = "add another length of context at " + sizes
		default:
			per.Verdict, per.How = fit.Prior, "no steps; from the neighbouring rungs"
			if d.lent(d.known(), i) {
				per.How = "no steps; all rungs'"
			}
			per.Advice = ms.Advice
		}
		e.add(ms)
		e.add(per)
	}
}

// waves writes decode_wave and its share.
func (e *estimator) waves(l *Ladder, rows int, how string) {
	w := fit.Estimate{Path: "step.decode_wave", Unit: "requests", Value: l.Wave, Verdict: fit.Prior, How: how,
		Advice: "add steps that decode for every number of requests from 16 to 64, over long contexts"}
	s := w
	s.Path, s.Unit, s.Value = "step.decode_wave_share", "share", l.WaveShare
	if l.Wave > 0 && len(l.Waves) == 2 {
		how := fmt.Sprintf("sought by mean error in sample, and borne out by shapes held out: %s instead of %s", share(l.Waves[1].Score), share(l.Waves[0].Score))
		for _, x := range []*fit.Estimate{&w, &s} {
			x.Verdict, x.Rows, x.How, x.Advice = fit.Measured, e.log.rowsOf(rows, "shapes that only decode"), how, ""
		}
	}
	e.add(w)
	e.add(s)
}

// near says whether two shapes run the same kernels, so that their errors differ by
// noise alone.
func near(a, b *shape, ladder []latency.Rung) bool {
	rung := func(n int) int {
		i, _ := slices.BinarySearchFunc(ladder, n, func(r latency.Rung, n int) int { return cmp.Compare(r.Batch, n) })
		return i
	}
	if a.PrefillRequests != b.PrefillRequests {
		return false
	}
	if a.prefills() {
		return max(a.PrefillTokens-b.PrefillTokens, b.PrefillTokens-a.PrefillTokens) <= 3
	}
	return rung(a.DecodeRequests) == rung(b.DecodeRequests)
}

// leastSizes is how many differences tell the noise.
const leastSizes = 20

// noise writes noise_share: how steps of one shape differ from what the model makes
// of them, or how the errors of neighbouring shapes differ.
func (e *estimator) noise(list []shape, in []float64) {
	x := fit.Estimate{Path: "step.noise_share", Unit: "share", Value: e.base.NoiseShare, Verdict: fit.Prior, How: "the base file's",
		Advice: "add repeated steps of one shape"}
	sizes, how := e.repeats(list), "steps of one shape against their median"
	if len(sizes) < leastSizes {
		sizes, how = nil, "differences between the errors of neighbouring shapes of one or two steps"
		for i := 1; i < len(list); i++ {
			if list[i].Steps <= 2 && list[i-1].Steps <= 2 && near(&list[i-1], &list[i], e.Params.DecodeLadder) {
				sizes = append(sizes, math.Abs(in[i]-in[i-1])/math.Sqrt2)
			}
		}
	}
	if len(sizes) >= leastSizes {
		// The standard deviation of a normal distribution of these sizes.
		of := func(v []float64) float64 { return min(1.4826*median(v), 0.49) }
		x.Verdict, x.Advice, x.How = fit.Measured, "", how+", median absolute deviation; bootstrap over them"
		x.Rows = e.log.rowsOf(len(sizes), "differences")
		drawn := make([]float64, len(sizes))
		for range e.draws {
			for i := range drawn {
				drawn[i] = sizes[e.rng.IntN(len(sizes))]
			}
			x.Draws = append(x.Draws, of(drawn))
		}
		x.Value = of(sizes)
		e.Params.NoiseShare = x.Value
	}
	e.add(x)
}

// repeats is by how much single steps differ from the median of their shape, the
// cost of what context they differ by aside.
func (e *estimator) repeats(list []shape) (sizes []float64) {
	m, err := latency.New(e.Params)
	if err != nil {
		panic(err) // Fit has built it
	}
	for i := range list {
		s := &list[i]
		if len(s.members) < 3 {
			continue
		}
		ratios := make([]float64, len(s.members))
		for k, r := range s.members {
			ratios[k] = r.BusyMS
			if !s.prefills() {
				ratios[k] /= decodeMS(m, &r)
			}
		}
		middle := median(slices.Clone(ratios))
		for _, v := range ratios {
			sizes = append(sizes, math.Abs(v/middle-1))
		}
	}
	return sizes
}

// priors writes what is not in busy times.
func (e *estimator) priors() {
	const replay = "replay whole requests through the simulated replica: their times hold the host's share"
	p := &e.base
	for _, c := range []struct {
		name, unit string
		v          float64
		advice     string
	}{
		{"sustained_ms", "ms", p.SustainedMS, "add steps of 100 to 600 ms; where the slow-down ends shows only in many of them"},
		{"prefill_mixed_ms", "ms", p.PrefillMixedMS, replay},
		{"small_mixed_ms", "ms", p.SmallMixedMS, replay},
		{"host_ms", "ms per step", p.HostMS, replay},
		{"host_request_ms", "ms per request in the step", p.HostRequestMS, replay},
		{"cold_start_ms", "ms", p.ColdStartMS, replay},
		{"decode_compute_share", "share of time", p.DecodeComputeShare, "log steps at two power limits, or replay whole requests"},
	} {
		e.add(fit.Estimate{Path: "step." + c.name, Unit: c.unit, Value: c.v, Verdict: fit.Prior, How: "the base file's: not in busy times", Advice: c.advice})
	}
}

// order sorts estimates as fleet files have them; rungs keep their order.
func (e *estimator) order() {
	names := []string{
		"weights_ms", "dense_token_ms", "tile_tokens", "pair_ms", "mixed_decode_ms", "mixed_context_ms", "sustained_share", "sustained_ms",
		"eager_ms", "prefill_mixed_ms", "small_mixed_ms", "decode_ladder", "decode_wave", "decode_wave_share", "host_ms", "host_request_ms", "cold_start_ms",
		"decode_compute_share", "noise_share",
	}
	rank := func(x fit.Estimate) int {
		name, _, _ := strings.Cut(strings.TrimPrefix(x.Path, "step."), "[")
		return slices.Index(names, name)
	}
	slices.SortStableFunc(e.Estimates, func(a, b fit.Estimate) int { return cmp.Compare(rank(a), rank(b)) })
}

// remarks says what spans tell of waits, which are not fitted.
func (e *estimator) remarks(list []shape) {
	for _, k := range []struct {
		what string
		has  func(*shape) bool
	}{
		{"prefill alone", func(s *shape) bool { return s.prefills() && s.DecodeRequests == 0 }},
		{"prefill while others decode", func(s *shape) bool { return s.prefills() && s.DecodeRequests > 0 }},
		{"only decode", func(s *shape) bool { return !s.prefills() }},
	} {
		var waits []float64
		for i := range list {
			if k.has(&list[i]) && list[i].SpanMS > 0 {
				waits = append(waits, list[i].SpanMS-list[i].BusyMS)
			}
		}
		if len(waits) > 0 {
			most := slices.Max(waits)
			e.Remarks = append(e.Remarks, fmt.Sprintf(
				"steps that %s: the GPU waits for the host for %.2f ms at the median, %.2f at most (span less busy of %d shapes): a hint at cold_start_ms, not an estimate",
				k.what, median(waits), most, len(waits)))
		}
	}
	if !e.log.Pooled {
		e.Remarks = append(e.Remarks, "single steps of a log of our own: busy times hold the clock's ups and downs and the base file's prefill_mixed_ms and small_mixed_ms")
	}
}
