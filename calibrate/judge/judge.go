package judge

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvfleet/calibrate/replay"
	"kvfleet/traces"
)

// A Comparison is what a simulation of a recording came to beside what was
// measured.
type Comparison struct {
	Name     string   `json:"name"`
	Requests int      `json:"requests"` // compared
	Missing  int      `json:"missing"`  // measured and not served in simulation
	Metrics  []Metric `json:"metrics"`
	// Throughput is output tokens per second from the first request sent to the
	// last answer's end.
	Throughput          float64 `json:"throughput_tokens_per_s"`
	SimulatedThroughput float64 `json:"simulated_throughput_tokens_per_s"`
	// HitRate is cached over prompt tokens of the requests that say so; NaN if none
	// does. CachedEqual is the share of them with the very same number.
	HitRate          Number `json:"hit_rate"`
	SimulatedHitRate Number `json:"simulated_hit_rate"`
	CachedEqual      Number `json:"cached_equal"`
	CachedRows       int    `json:"cached_rows"`
	// CachedGiven says that what was cached is the recording's, not simulated.
	CachedGiven bool `json:"cached_given"`
}

// A Metric is one time of the requests, ms, measured and simulated.
type Metric struct {
	Name string `json:"name"`
	N    int    `json:"n"`
	// MAPE is over the requests with a measured time of Least and more; NaN if there
	// are none.
	MAPE      float64 `json:"mape"`
	Measured  Figures `json:"measured_ms"`
	Simulated Figures `json:"simulated_ms"`
	// KS is the Kolmogorov-Smirnov distance of the two distributions, 0 to 1.
	KS float64 `json:"ks"`
	// Floor is the same between two runs of one workload, nil if there are none.
	Floor *Floor `json:"floor,omitempty"`
}

// A Floor is how far two runs of one workload are apart in a metric.
type Floor struct {
	MAPE float64 `json:"mape"`
	Mean float64 `json:"mean"` // second over first, less 1; NaN of nothing
	KS   float64 `json:"ks"`
}

// MarshalJSON writes what is not known as null.
func (m Metric) MarshalJSON() ([]byte, error) {
	type plain Metric
	return json.Marshal(struct {
		plain
		MAPE Number `json:"mape"`
	}{plain(m), Number(m.MAPE)})
}

// MarshalJSON writes what is not known as null.
func (f Floor) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		MAPE Number  `json:"mape"`
		Mean Number  `json:"mean"`
		KS   float64 `json:"ks"`
	}{Number(f.MAPE), Number(f.Mean), f.KS})
}

// Figures are a distribution's mean and percentiles.
type Figures struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// A Number is a figure that may not be known; JSON has it as null then.
type Number float64

// MarshalJSON writes NaN and the infinities as null.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return appendFloat(nil, float64(n)), nil
}

// Least is the shortest time whose relative error is given: a queue of some
// microseconds is none.
const Least = 100 * time.Microsecond

// The metrics' names.
const (
	TTFT  = "TTFT"
	TPOT  = "inter-token, mean of a request" // over its n-1 gaps
	ITL   = "inter-token, median of a request"
	E2E   = "end to end"
	Queue = "queue time"
)

// sample is one request's times, ns; None where not known.
type sample struct{ ttft, e2e, tpot, itl, queue int64 }

func measured(r *traces.Row) sample {
	s := sample{r.TTFT(), r.E2E(), traces.None, r.ITLP50, r.QueueTime}
	last := r.LastTokenAt
	if last == traces.None {
		last = r.EndedAt
	}
	switch {
	case r.ITLMean != traces.None:
		s.tpot = r.ITLMean
	case r.OutputTokens > 1 && last != traces.None && r.FirstTokenAt != traces.None:
		s.tpot = (last - r.FirstTokenAt) / (r.OutputTokens - 1)
	}
	return s
}

func simulated(o *replay.Outcome) sample {
	return sample{o.TTFT, o.E2E, o.ITLMean, o.ITLP50, o.Queue}
}

var metricsOf = []struct {
	name string
	of   func(s sample) int64
}{
	{TTFT, func(s sample) int64 { return s.ttft }},
	{TPOT, func(s sample) int64 { return s.tpot }},
	{ITL, func(s sample) int64 { return s.itl }},
	{E2E, func(s sample) int64 { return s.e2e }},
	{Queue, func(s sample) int64 { return s.queue }},
}

// Compare sets a simulation beside the recording. keep, if not nil, says which
// rows count.
func Compare(name string, rec *replay.Recording, out []replay.Outcome, keep func(i int) bool) *Comparison {
	c := &Comparison{Name: name}
	var a, b []sample
	var prompt, cached, simCached, equal float64
	var tokens, first, simFirst, last, simLast int64 = 0, math.MaxInt64, math.MaxInt64, math.MinInt64, math.MinInt64
	for i := range rec.Rows {
		r := &rec.Rows[i]
		if !rec.Judged[i] || keep != nil && !keep(i) {
			continue
		}
		if out[i].TTFT == traces.None {
			c.Missing++
			continue
		}
		c.Requests++
		a, b = append(a, measured(r)), append(b, simulated(&out[i]))
		first, simFirst = min(first, r.SentAt), min(simFirst, out[i].Sent)
		if r.OutputTokens > 0 && r.EndedAt != traces.None {
			tokens += r.OutputTokens
			last, simLast = max(last, r.EndedAt), max(simLast, out[i].Ended)
		}
		length := r.EnginePromptTokens
		if length == traces.None {
			length = r.PromptTokens
		}
		if r.CachedTokens != traces.None && out[i].Cached != traces.None && length != traces.None {
			c.CachedRows++
			prompt += float64(length)
			cached += float64(r.CachedTokens)
			simCached += float64(out[i].Cached)
			if r.CachedTokens == out[i].Cached {
				equal++
			}
		}
	}
	for _, m := range metricsOf {
		if metric, ok := compare(m.name, a, b, m.of); ok {
			c.Metrics = append(c.Metrics, metric)
		}
	}
	c.HitRate, c.SimulatedHitRate, c.CachedEqual = Number(cached/prompt), Number(simCached/prompt), Number(equal/float64(c.CachedRows))
	c.CachedGiven = c.CachedRows > 0 && !rec.Identified
	if span := float64(last-first) / 1e9; tokens > 0 && span > 0 {
		c.Throughput, c.SimulatedThroughput = float64(tokens)/span, float64(tokens)/(float64(simLast-simFirst)/1e9)
	}
	return c
}

func compare(name string, a, b []sample, of func(sample) int64) (Metric, bool) {
	var x, y []float64
	sum, ratios := 0.0, 0.0
	for i := range a {
		p, q := of(a[i]), of(b[i])
		if p == traces.None || q == traces.None {
			continue
		}
		x, y = append(x, float64(p)/1e6), append(y, float64(q)/1e6)
		if p >= int64(Least) {
			sum += math.Abs(float64(q)/float64(p) - 1)
			ratios++
		}
	}
	if len(x) == 0 {
		return Metric{}, false
	}
	m := Metric{Name: name, N: len(x), MAPE: sum / ratios}
	slices.Sort(x)
	slices.Sort(y)
	m.Measured, m.Simulated = figures(x), figures(y)
	m.KS = stat.KolmogorovSmirnov(x, nil, y, nil)
	return m, true
}

// figures are of sorted values. Percentiles are observed ones, as everywhere in
// the project.
func figures(v []float64) Figures {
	at := func(share float64) float64 { return stat.Quantile(share, stat.Empirical, v, nil) }
	return Figures{Mean: stat.Mean(v, nil), P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}

// Metric returns a metric by name, nil if it was not compared.
func (c *Comparison) Metric(name string) *Metric {
	for i := range c.Metrics {
		if c.Metrics[i].Name == name {
			return &c.Metrics[i]
		}
	}
	return nil
}

// MeanError is mean(simulated)/mean(measured) - 1; NaN below Least, as Error.
func (m *Metric) MeanError() float64 { return Error(m.Simulated.Mean, m.Measured.Mean) }

// Error is the relative error of a simulated time, ms; NaN if the measured one is
// shorter than Least.
func Error(simulated, measured float64) float64 {
	if measured < Least.Seconds()*1e3 {
		return math.NaN()
	}
	return simulated/measured - 1
}

// AddFloor compares a repeat of the recording with it, request by request in
// order of being due, and notes how far they are apart. It says whether the two
// are runs of one workload.
func (c *Comparison) AddFloor(rec, repeat *replay.Recording) bool {
	if !SameWorkload(rec, repeat) {
		return false
	}
	var a, b []sample
	for i, j := range pairs(rec, repeat) {
		if rec.Judged[i] && repeat.Judged[j] {
			a, b = append(a, measured(&rec.Rows[i])), append(b, measured(&repeat.Rows[j]))
		}
	}
	for k := range c.Metrics {
		for _, m := range metricsOf {
			if f, ok := compare(m.name, a, b, m.of); ok && m.name == c.Metrics[k].Name {
				c.Metrics[k].Floor = &Floor{MAPE: f.MAPE, Mean: f.MeanError(), KS: f.KS}
			}
		}
	}
	return true
}

// order is the rows in order of being due, where that is known.
func order(r *replay.Recording) []int {
	at := make([]int, len(r.Rows))
	for i := range at {
		at[i] = i
	}
	due := func(i int) int64 {
		if d := r.Rows[i].ScheduledAt; d != traces.None {
			return d
		}
		return r.Rows[i].SentAt
	}
	slices.SortStableFunc(at, func(i, j int) int {
		switch x, y := due(i), due(j); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return at
}

// pairs maps each row to the repeat's.
func pairs(a, b *replay.Recording) map[int]int {
	m := make(map[int]int, len(a.Rows))
	x, y := order(a), order(b)
	for k := range x {
		m[x[k]] = y[k]
	}
	return m
}

// SameWorkload says whether two recordings are runs of one workload: as many
// requests, due at the same times within a millisecond, with prompts and answers
// of the same lengths in all but one of a hundred.
func SameWorkload(a, b *replay.Recording) bool {
	if a == b || len(a.Rows) != len(b.Rows) || a.Closed || b.Closed {
		return false
	}
	x, y := order(a), order(b)
	origin := func(r *replay.Recording, at []int) int64 { return r.Rows[at[0]].ScheduledAt }
	if a.Rows[0].ScheduledAt == traces.None || b.Rows[0].ScheduledAt == traces.None {
		return false
	}
	differ := 0
	for k := range x {
		p, q := &a.Rows[x[k]], &b.Rows[y[k]]
		if d := (p.ScheduledAt - origin(a, x)) - (q.ScheduledAt - origin(b, y)); d > 1e6 || d < -1e6 {
			return false
		}
		if p.EnginePromptTokens != q.EnginePromptTokens || p.OutputTokens != q.OutputTokens {
			differ++
		}
	}
	return differ*100 <= len(x)
}
