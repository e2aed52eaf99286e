package requests

import (
	"context"
	"math"
	"slices"

	"kvfleet/calibrate/replay"
	"kvfleet/sim"
	"kvfleet/traces"
	"kvfleet/traces/seed"
)

// expected is the relative error that a metric of one request is good for before
// any fit: two runs of one workload differ by about that. They are replaced by
// what the first fit leaves.
const (
	expectedTTFT   = 0.07
	expectedDecode = 0.01
)

// A target is one measured time: of one row, or the mean of some. A closed loop
// of several users is chaotic: who waits for whom is another matter in every run,
// and only means say something.
type target struct {
	trace, row int
	rows       []int // whose mean it is; nil is row alone
	metric     metric
	measured   float64 // ns
	origin     int64   // of a progress
	block      int     // rows that stand or fall together
	group      int     // rows that the same constants move alike
	regime     regime
}

// A regime is rows of one trace and metric that the model is right or wrong about
// together, and that scatter alike: prompts that had as much to compute.
type regime struct {
	trace, work int
	metric      metric
}

type metric uint8

const (
	metricTTFT metric = iota
	metricDecode
	metricITL
	metricMeanTTFT // of blockRows requests in a row
	metricMeanDecode
	metricProgress // of a closed loop: when the rows had ended on average, since the start
	metrics
)

// problem is the search's view of the traces.
type problem struct {
	base    *sim.Fleet
	knobs   []knob
	traces  []Trace
	targets []target
	scale   map[regime]float64
	seed    seed.Seed
	start   []float64 // of the search; nil is the base's
	rounds  int       // of the search; 0 is fit's own
	starts  [][]float64
	polish  int
}

// mostlyLate is the share of late rows from which leaving them out would leave
// too little: the load that ran beside them is guessed instead.
const mostlyLate = 0.2

// blockRows is how many rows in a row of time stand or fall together in the
// bootstrap: a queue's error lasts.
const blockRows = 20

func newProblem(base *sim.Fleet, knobs []knob, all []Trace, s seed.Seed) *problem {
	p := &problem{base: base, knobs: knobs, traces: all, seed: s, scale: map[regime]float64{}}
	block := 0
	for t, trace := range all {
		if trace.Closed && trace.Users() > 1 {
			block = p.means(t, block, trace.Rows[len(trace.Rows)-1].SentAt, true) + 1
			continue
		}
		served := trace.Served()
		if trace.Late() > mostlyLate {
			served = math.MaxInt64 // how the load went on is part of the search
		}
		p.means(t, block, served, false)
		n := 0
		for i := range trace.Rows {
			r := &trace.Rows[i]
			if !trace.Judged[i] || r.EndedAt == traces.None {
				continue
			}
			if n++; n > blockRows {
				n = 1
				block++
			}
			add := func(m metric, v int64) {
				if v > 0 {
					p.targets = append(p.targets, target{trace: t, row: i, metric: m, measured: float64(v), block: block})
				}
			}
			add(metricTTFT, r.TTFT())
			if r.EndedAt == traces.None || r.EndedAt > served || r.OutputTokens < 2 {
				continue // what ran beside it later may not be in the trace
			}
			add(metricDecode, r.EndedAt-r.FirstTokenAt)
			if r.ITLP50 != traces.None {
				add(metricITL, r.ITLP50)
			}
		}
		block++
	}
	p.group()
	for i := range p.targets {
		t := &p.targets[i]
		p.scale[t.regime] = expectedDecode
		if t.metric == metricTTFT || t.metric == metricMeanTTFT {
			p.scale[t.regime] = expectedTTFT
		}
	}
	return p
}

// means adds the mean times of every blockRows requests in a row that ended by the
// time served; of a closed loop, with its quietest gaps. It returns the last
// block's number.
func (p *problem) means(t, block int, served int64, closed bool) int {
	trace := &p.traces[t]
	var rows []int
	flush := func() {
		ttft, decode, whole := 0.0, 0.0, 0
		for _, i := range rows {
			r := &trace.Rows[i]
			ttft += float64(r.TTFT()) / float64(len(rows))
			decode += float64(r.EndedAt-r.FirstTokenAt) / float64(len(rows))
			if r.EndedAt <= served && r.OutputTokens > 1 {
				whole++
			}
		}
		add := func(m metric, v float64) {
			p.targets = append(p.targets, target{trace: t, row: rows[0], rows: rows, metric: m, measured: v, block: block, origin: trace.Rows[0].SentAt})
		}
		add(metricMeanTTFT, ttft)
		if whole == len(rows) {
			add(metricMeanDecode, decode)
		}
		if closed {
			end := 0.0
			for _, i := range rows {
				end += float64(trace.Rows[i].EndedAt-trace.Rows[0].SentAt) / float64(len(rows))
			}
			add(metricProgress, end)
			if quiet := quietGap(rows, func(i int) float64 { return float64(trace.Rows[i].ITLP50) }); quiet > 0 {
				add(metricITL, quiet)
			}
		}
		block++
		rows = nil
	}
	for i := range trace.Rows {
		r := &trace.Rows[i]
		if !trace.Judged[i] || r.EndedAt == traces.None || closed && (r.EndedAt > served || r.OutputTokens < 2) {
			continue
		}
		if rows = append(rows, i); len(rows) == blockRows {
			flush()
		}
	}
	if len(rows) > blockRows/2 {
		flush()
	}
	return block
}

// fleet is the base with the knobs at x.
func (p *problem) fleet(x []float64) *sim.Fleet {
	f := p.base.Copy()
	for j, k := range p.knobs {
		k.set(f, x[j])
	}
	f.Step.NoiseShare = 0 // common random numbers are none at all
	return f
}

// simulate runs every trace; nil if the fleet cannot.
func (p *problem) simulate(x []float64) [][]replay.Outcome {
	f := p.fleet(x)
	if f.Validate() != nil {
		return nil
	}
	all := make([][]replay.Outcome, len(p.traces))
	for t := range p.traces {
		out, err := p.traces[t].Simulate(context.Background(), f, p.traces[t].Policy, p.seed)
		if err != nil {
			return nil
		}
		all[t] = out
	}
	return all
}

// missed is the residual of a request that was measured and not served in
// simulation: far off.
const missed = 5.0

// residuals are relative errors in units of their scale.
func (p *problem) residuals(x []float64) []float64 {
	all := p.simulate(x)
	if all == nil {
		return nil
	}
	r := make([]float64, len(p.targets))
	for k := range p.targets {
		t := &p.targets[k]
		r[k] = t.error(all[t.trace]) / p.scale[t.regime]
	}
	return r
}

// error is the logarithm of simulated over measured, which a queue twice as long
// and one half as long are equally far from.
func (t *target) error(out []replay.Outcome) float64 {
	v := t.of(&out[t.row])
	if t.rows != nil && t.metric == metricITL {
		v = quietGap(t.rows, func(i int) float64 { return t.of(&out[i]) })
	} else if t.rows != nil {
		v = 0
		for _, i := range t.rows {
			v += max(0, t.of(&out[i])) / float64(len(t.rows))
		}
	}
	if v <= 0 {
		return missed
	}
	return math.Log(v / t.measured)
}

// quietGap is the lowest decile of the requests' median gaps: of those that
// mostly ran beside answers and not beside prompts. 0 if that is not known.
func quietGap(rows []int, gap func(i int) float64) float64 {
	var all []float64
	for _, i := range rows {
		if g := gap(i); g > 0 {
			all = append(all, g)
		}
	}
	if len(all) < len(rows)/2 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/10]
}

// of is the target's time of one simulated request, ns; 0 or less if there is
// none.
func (t *target) of(o *replay.Outcome) float64 {
	switch {
	case o.TTFT == traces.None:
		return 0
	case t.metric == metricTTFT, t.metric == metricMeanTTFT:
		return float64(o.TTFT)
	case t.metric == metricProgress:
		return float64(o.Ended - t.origin)
	case t.metric == metricDecode, t.metric == metricMeanDecode:
		return float64(o.E2E - o.TTFT)
	}
	return float64(o.ITLP50)
}

// rescale sets each regime's scale to the spread of its errors about the median of
// each group: what the rows scatter by, whatever the model gets wrong of them all.
func (p *problem) rescale(r []float64) {
	type key struct {
		regime
		group int
	}
	by := map[key][]float64{}
	for k := range p.targets {
		t := &p.targets[k]
		g := key{t.regime, t.group}
		by[g] = append(by[g], r[k]*p.scale[t.regime])
	}
	spread, all := map[regime][]float64{}, map[regime][]float64{}
	for g, e := range by {
		all[g.regime] = append(all[g.regime], e...)
		if len(e) >= leastGroup {
			spread[g.regime] = append(spread[g.regime], aboutMedian(e)...)
		}
	}
	scale := map[regime]float64{}
	for g, e := range all {
		d := spread[g]
		if len(d) < len(e)/2 {
			d = aboutMedian(e)
		}
		slices.Sort(d)
		scale[g] = min(max(1.4826*d[len(d)/2], leastSpread), mostSpread)
	}
	p.scale = scale
}

// leastGroup is how many rows a group has whose scatter about its own median says
// something: that of one or two is next to none.
const leastGroup = 3

// aboutMedian is how far each value is from their median.
func aboutMedian(values []float64) []float64 {
	slices.Sort(values)
	middle := values[len(values)/2]
	d := make([]float64, len(values))
	for i, v := range values {
		d[i] = math.Abs(v - middle)
	}
	return d
}

// mostRows is how many rows of one regime count in full. The model's form is off
// by a share of what the rows scatter by, and that error all of them have in
// common, however many they are: n rows weigh as 1/(1/n + 1/mostRows).
const mostRows = 25

func (p *problem) weights() []float64 {
	n := map[regime]float64{}
	for i := range p.targets {
		n[p.targets[i].regime]++
	}
	w := make([]float64, len(p.targets))
	for i := range p.targets {
		w[i] = 1 / (1 + n[p.targets[i].regime]/mostRows)
	}
	return w
}

// leastSpread and mostSpread bound what a metric is taken to be good for: below
// the first, the model's own form is what is off; above the second, the base is.
const (
	leastSpread = 0.01
	mostSpread  = 0.3
)
