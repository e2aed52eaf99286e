package steps

import (
	"context"
	"fmt"
	"slices"

	"kvfleet/calibrate/fit"
	"kvfleet/sim/latency"
)

// A decodeFit is the chosen ladder, fitted.
type decodeFit struct {
	*curve
	report  Ladder
	heldOut []float64 // relative errors by shape
	refused string    // why the cost per token of context is not fitted
}

// A judge holds decode shapes out.
type judge struct {
	list  []shape
	folds []int
	k     int
	given float64
	base  *latency.Model
}

// errors are the relative errors of shapes that are held out in turn.
func (j *judge) errors(sizes []int, tile int) []float64 {
	out := make([]float64, len(j.list))
	fit.Each(j.k, func(f int) {
		train := without(j.list, j.folds, f)
		if len(train) == 0 || len(train) == len(j.list) {
			return
		}
		c := fitCurve(train, sizes, tile, j.given, j.base)
		for i := range j.list {
			if j.folds[i] == f {
				out[i] = c.predict(&j.list[i])/j.list[i].BusyMS - 1
			}
		}
	})
	return out
}

// fitDecode chooses waves, a ladder and a curve by their error on shapes held out.
func fitDecode(ctx context.Context, list []shape, base latency.Params, tile int, folds []int, o *Options) (*decodeFit, error) {
	top := 0
	for i := range list {
		top = max(top, list[i].DecodeRequests)
	}
	d := &decodeFit{}
	if tile < mmaRows || tile > 128 {
		tile = 64
	}
	m, err := latency.New(base)
	if err != nil {
		return nil, err
	}
	j := &judge{list: inWaves(list, 0, 0), folds: folds, k: o.Folds, base: m}
	j.given, d.refused = contextGiven(j.list, base, m)
	rules := ladders(base.DecodeLadder, top)
	if d.refused == "" && !o.NoWaves {
		o.Progress("waves of decode attention")
		d.chooseWave(j, rules[0].sizes(top), tile)
	} else {
		d.report.Wave, d.report.WaveShare = base.DecodeWave, base.DecodeWaveShare
		j.list = inWaves(list, base.DecodeWave, base.DecodeWaveShare)
	}
	for _, rule := range rules {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o.Progress("decode ladder: " + rule.name)
		sizes := rule.sizes(top)
		d.report.Candidates = append(d.report.Candidates, candidate(rule.name, sizes, j.errors(sizes, tile)))
	}
	best := d.report.choose(len(list))
	sizes := rules[best].sizes(top)
	lines, tiled := j.errors(sizes, 0), j.errors(sizes, tile)
	d.report.Curves = []Candidate{candidate(curveLines, sizes, lines), candidate(curveTiles, sizes, tiled)}
	d.report.Curve, d.heldOut = curveTiles, tiled
	if d.report.Curves[0].Score <= d.report.Curves[1].Score {
		d.report.Curve, tile, d.heldOut = curveLines, 0, lines
	}
	top = max(top, base.DecodeLadder[len(base.DecodeLadder)-1].Batch)
	d.report.Sizes = rules[best].sizes(top)
	d.curve = fitCurve(j.list, d.report.Sizes, tile, j.given, j.base)
	return d, ctx.Err()
}

// The waves that are tried, requests, and the shares.
const (
	firstWave, lastWave, waveStep = 4, 48, 0.25
	someShare                     = 0.6
)

// chooseWave looks for the wave of the least error in sample and takes it if shapes
// held out bear it out. j's shapes then count whole waves.
func (d *decodeFit) chooseWave(j *judge, sizes []int, tile int) {
	plain := j.list
	d.report.Waves = []Candidate{candidate("none", sizes, j.errors(sizes, tile))}
	var waves []float64
	for w := float64(firstWave); 2*w < float64(sizes[len(sizes)-1]) && w <= lastWave; w += waveStep {
		waves = append(waves, w)
	}
	if len(waves) == 0 {
		return
	}
	best := func(waves, shares []float64) (wave, share float64) {
		scores := make([]float64, len(waves)*len(shares))
		fit.Each(len(scores), func(i int) {
			list := inWaves(plain, waves[i/len(shares)], shares[i%len(shares)])
			c := fitCurve(list, sizes, tile, j.given, j.base)
			errs := make([]float64, len(list))
			for i := range list {
				errs[i] = c.predict(&list[i])/list[i].BusyMS - 1
			}
			scores[i] = score(errs)
		})
		at := slices.Index(scores, slices.Min(scores))
		return waves[at/len(shares)], shares[at%len(shares)]
	}
	wave, _ := best(waves, []float64{someShare})
	wave, share := best([]float64{wave, wave - waveStep/2, wave + waveStep/2}, []float64{0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1})
	j.list = inWaves(plain, wave, share)
	c := candidate(fmt.Sprintf("%g requests a wave, share %g", wave, share), sizes, j.errors(sizes, tile))
	d.report.Waves = append(d.report.Waves, c)
	if nats(c.Score, d.report.Waves[0].Score, len(plain)) < found {
		j.list = plain
		return
	}
	d.report.Wave, d.report.WaveShare = wave, share
}

// contextGiven decides whether the log tells the cost per token of context; if not
// it returns the base file's and why.
func contextGiven(list []shape, base latency.Params, m *latency.Model) (given float64, why string) {
	var costs, each []float64
	for _, r := range base.DecodeLadder {
		costs = append(costs, r.ContextMS)
	}
	given = median(costs)
	top := 0
	for i := range list {
		each = append(each, float64(list[i].DecodeContext)/float64(list[i].DecodeRequests))
		top = max(top, list[i].DecodeRequests)
	}
	slices.Sort(each)
	if low, high := each[len(each)/20], each[len(each)-1-len(each)/20]; high < 1.5*low {
		return given, fmt.Sprintf("decode context and batch size never vary apart in this log (%.0f to %.0f tokens a request)", low, high)
	}
	sizes := ladders(base.DecodeLadder, top)[0].sizes(top)
	if v, sd := fitCurve(list, sizes, 0, 0, m).pooled(); !(v > 0 && sd < v/4) {
		return given, fmt.Sprintf("the cost of decode context is lost in the noise of this log (%.3g, give or take %.2g ms a token)", v, sd)
	}
	return 0, ""
}
