package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvfleet/calibrate/fit"
	"kvfleet/calibrate/replay"
	"kvfleet/traces"
	"kvfleet/traces/convert"
	"kvfleet/traces/seed"
)

// rows takes what single rows show, without a simulation.
func (r *run) rows() error {
	if len(r.Inputs.Traces) == 0 {
		return nil
	}
	r.o.Progress("rows", "tokens per byte, early stops, belief bounds")
	for _, take := range []func(*rand.Rand) []fit.Estimate{r.tokens, r.early, r.belief} {
		for _, e := range take(seed.Seed(r.o.Seed).Stream("calibrate/rows")) {
			if e.Verdict == fit.Measured {
				if err := r.base.SetNumber(e.Path, e.Value); err != nil {
					return err
				}
			}
			r.Estimates = append(r.Estimates, e)
		}
	}
	if n := r.base.Output.EarlyTokens; len(n) > 0 {
		slices.Sort(n)
	}
	return r.base.Validate()
}

// resample is the statistic over draws of the rows with replacement.
func resample[T any](rows []T, rng *rand.Rand, of func([]T) float64) []float64 {
	draws := make([]float64, 0, intervalDraws)
	sample := make([]T, len(rows))
	for range intervalDraws {
		for i := range sample {
			sample[i] = rows[rng.IntN(len(rows))]
		}
		if v := of(sample); !math.IsNaN(v) {
			draws = append(draws, v)
		}
	}
	return draws
}

// estimate is a measured number with its draws.
func estimate(path, unit string, value float64, draws []float64, rows, how string) fit.Estimate {
	e := fit.Estimate{Path: path, Unit: unit, Value: value, Draws: draws, Rows: rows, How: how}
	e.Low, e.High = fit.Interval(draws)
	return e
}

// A size is a prompt's bytes of text and tokens, and how many messages it has.
type size struct{ bytes, tokens, messages float64 }

// The JSON around a published request's text: so much for every request, for
// every turn before and for a system message.
const (
	framing       = 174
	framingTurn   = 63
	framingSystem = 31
)

// systemBytes are the lengths of the published prompts that open with a system
// message, by turn.
var systemBytes = []int64{2509, 4620, 6731, 8330}

// tokens estimates how many bytes of text a token has, from prompts whose bytes
// and tokens are both known, and how much the count varies from text to text.
func (r *run) tokens(rng *rand.Rand) []fit.Estimate {
	var all []size
	var name string
	kinds := map[size][]float64{}
	for _, rec := range r.fitted() {
		for i := range rec.Rows {
			row := &rec.Rows[i]
			if row.PromptBytes == traces.None || row.EnginePromptTokens == traces.None || row.Turn < 0 {
				continue
			}
			s := size{float64(row.PromptBytes), float64(row.EnginePromptTokens), float64(1 + 2*row.Turn)}
			if rec.Format == convert.KvrouteRows {
				s.bytes -= framing + framingTurn*float64(row.Turn)
				if slices.Contains(systemBytes, row.PromptBytes) {
					s.bytes -= framingSystem
					s.messages++
				}
			}
			all = append(all, s)
			kinds[size{s.bytes, 0, s.messages}] = append(kinds[size{s.bytes, 0, s.messages}], s.tokens)
			name = filepath.Base(rec.Path)
		}
	}
	t := &r.base.Tokenizer
	template := float64(t.HeaderTokens + t.TrailerTokens)
	bytes, tokens := make([]float64, len(all)), make([]float64, len(all))
	slope := func(rows []size) float64 {
		for i, s := range rows {
			// The template's tokens are the base's: with them a prompt is its text.
			bytes[i], tokens[i] = s.bytes, s.tokens-float64(t.StartTokens+t.HeaderTokens)-s.messages*template
		}
		sumB, sumT := 0.0, 0.0
		for i := range rows {
			sumB += bytes[i]
			sumT += tokens[i]
		}
		return sumB / sumT
	}
	if len(all) < 20 || len(kinds) < 2 {
		return nil
	}
	out := []fit.Estimate{estimate("tokenizer.bytes_per_token", "bytes", slope(all), resample(all, rng, slope),
		fmt.Sprintf("%d prompts of %s", len(all), name), "text bytes over tokens less those of the base's template")}
	rendered := func(rows []size) float64 {
		sumB, sumT := 0.0, 0.0
		for _, s := range rows {
			sumB += s.bytes
			sumT += s.tokens
		}
		return sumB / sumT
	}
	out = append(out, fit.Estimate{Path: "router.bytes_per_token", Unit: "bytes", Value: r.base.Router.BytesPerToken, Verdict: fit.Prior,
		How: fmt.Sprintf("kept from the base: the rows' text has %.4f bytes a token, template and all, but not how the router rendered it", rendered(all)), Advice: "capture with the router, whose rows have the rendered prompt's bytes"})
	return append(out, r.spread(kinds, rng, name)...)
}

// spread estimates how much the tokens of equally long texts vary.
func (r *run) spread(kinds map[size][]float64, rng *rand.Rand, name string) []fit.Estimate {
	reference := float64(r.base.Tokenizer.SpreadBytes)
	if reference <= 0 {
		return nil
	}
	var z []float64 // squared deviations as of a text of the reference size
	for k, tokens := range kinds {
		if len(tokens) < 5 {
			continue
		}
		mean := stat.Mean(tokens, nil)
		n := float64(len(tokens))
		for _, v := range tokens {
			d := (v - mean) / mean * math.Sqrt(k.bytes/reference)
			z = append(z, d*d*n/(n-1))
		}
	}
	if len(z) < 20 {
		return nil
	}
	slices.Sort(z)
	root := func(v []float64) float64 { return math.Sqrt(stat.Mean(v, nil)) }
	return []fit.Estimate{estimate("tokenizer.spread_share", "share", root(z), resample(z, rng, root),
		fmt.Sprintf("%d prompts of %s", len(z), name), "deviation of the token counts of equally long texts")}
}

// early estimates which share of the answers stops before max_tokens, and where.
func (r *run) early(rng *rand.Rand) []fit.Estimate {
	type answer struct{ stopped bool }
	var all []answer
	var lengths []int
	most := int64(r.base.Output.EarlyOf)
	names := ""
	for _, rec := range r.fitted() {
		n := 0
		for i := range rec.Rows {
			row := &rec.Rows[i]
			limit := row.MaxTokens
			if limit == traces.None && rec.Format.Kvroute() {
				limit = most // the published runs' cap, which their rows do not state
			}
			if limit == traces.None || limit != most || row.Outcome != traces.Success || row.OutputTokens < 1 || row.OutputTokens > limit {
				continue
			}
			all = append(all, answer{row.OutputTokens < limit})
			if row.OutputTokens < limit {
				lengths = append(lengths, int(row.OutputTokens))
			}
			n++
		}
		if n > 0 {
			names += fmt.Sprintf(", %d of %s", n, filepath.Base(rec.Path))
		}
	}
	if len(all) < 50 || len(lengths) < 5 || len(r.base.Output.EarlyShares) != 1 {
		return nil
	}
	share := func(rows []answer) float64 {
		n := 0.0
		for _, a := range rows {
			if a.stopped {
				n++
			}
		}
		return n / float64(len(rows))
	}
	slices.Sort(lengths)
	r.base.Output.EarlyTokens = lengths
	return []fit.Estimate{estimate("output.early_shares[0]", "share of answers", share(all), resample(all, rng, share),
		names[2:]+" answers", fmt.Sprintf("answers shorter than %d tokens; their %d lengths are output.early_tokens", most, len(lengths)))}
}

// An idle is a prefix that was computed before, how long ago that was, and
// whether it was still cached.
type idle struct {
	gap  float64 // s
	lost bool
}

// belief estimates the bounds of a router's belief: how long evicted blocks had
// lain idle, from what was found cached of prompts whose identity is known.
func (r *run) belief(rng *rand.Rand) []fit.Estimate {
	out := []fit.Estimate{}
	fits := float64(r.base.KVTokens()) * r.base.Router.BytesPerToken / 64
	if len(r.settings) > 0 {
		r.base.Router.BeliefBlocks = max(1, int(fits))
		out = append(out, fit.Estimate{Path: "router.belief_blocks", Unit: "64-byte blocks", Value: float64(r.base.Router.BeliefBlocks),
			Verdict: fit.Stated, Rows: filepath.Base(r.Inputs.Settings), How: "KV tokens of the fleet times bytes per token over 64"})
	}
	var all []idle
	names := ""
	for _, rec := range r.fitted() {
		n := len(all)
		all = append(all, idles(rec, r.base.Engine.BlockSize)...)
		if len(all) > n {
			names += fmt.Sprintf(", %d of %s", len(all)-n, filepath.Base(rec.Path))
		}
	}
	lost := 0
	for _, x := range all {
		if x.lost {
			lost++
		}
	}
	if lost < 10 {
		return append(out, fit.Estimate{Path: "router.belief_ttl", Unit: "s", Value: r.base.Router.BeliefTTL.Seconds(), Verdict: fit.Prior,
			How: "kept from the base: " + fmt.Sprintf("%d of %d prompts that were seen before had lost their prefix, too few to tell", lost, len(all)), Advice: "add a run over a working set larger than the cache, whose prompts' identity is known, or read the engines' idle-before-evict metric"})
	}
	ttl := func(rows []idle) float64 { return ageAtLoss(rows, 0.9) }
	e := estimate("router.belief_ttl", "s", ttl(all), resample(all, rng, ttl), names[2:]+" prompts seen before",
		fmt.Sprintf("the idle time by which 90%% of prefixes are lost (monotone regression of loss on idle time; %d of %d were lost)", lost, len(all)))
	e.Value = math.Max(e.Value, time.Millisecond.Seconds())
	return append(out, e)
}

// idles finds, for every prompt of known identity whose beginning was sent before,
// how long ago and whether its last shared block was still cached.
func idles(rec *replay.Recording, block int) []idle {
	type touch struct{ at int64 }
	last := map[uint64]touch{}
	var out []idle
	for i := range rec.Rows {
		row := &rec.Rows[i]
		if len(row.Blocks) == 0 || row.CachedTokens == traces.None || row.BlockSize <= 0 {
			continue
		}
		shared, at := 0, int64(0)
		for k, id := range row.Blocks {
			t, ok := last[id]
			if !ok {
				break
			}
			shared, at = (k+1)*int(row.BlockSize), t.at
		}
		whole := min(shared/block, (int(row.EnginePromptTokens)-1)/block) * block
		if whole > 0 && row.SentAt > at {
			out = append(out, idle{float64(row.SentAt-at) / 1e9, row.CachedTokens < int64(whole)})
		}
		for _, id := range row.Blocks {
			last[id] = touch{row.SentAt}
		}
	}
	return out
}

// ageAtLoss is the idle time by which so large a share is lost: where a rising
// step function fitted to the losses (pool adjacent violators) crosses the share;
// the longest idle time seen if it never does.
func ageAtLoss(rows []idle, share float64) float64 {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b idle) int {
		switch {
		case a.gap < b.gap:
			return -1
		case a.gap > b.gap:
			return 1
		}
		return 0
	})
	type pool struct{ sum, n, from float64 }
	var pools []pool
	for _, x := range sorted {
		p := pool{n: 1, from: x.gap}
		if x.lost {
			p.sum = 1
		}
		for len(pools) > 0 && pools[len(pools)-1].sum/pools[len(pools)-1].n >= p.sum/p.n {
			q := pools[len(pools)-1]
			p = pool{p.sum + q.sum, p.n + q.n, q.from}
			pools = pools[:len(pools)-1]
		}
		pools = append(pools, p)
	}
	for _, p := range pools {
		if p.sum/p.n >= share {
			return p.from
		}
	}
	return sorted[len(sorted)-1].gap
}
