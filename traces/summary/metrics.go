package summary

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// A Metric is one figure of a Summary under its column name. Decimals is how
// many digits follow the point in tables; counts have 0.
type Metric struct {
	Name     string
	Value    float64
	Decimals int
}

// Metrics lists a summary's figures in the order of cells.csv. Names carry their
// unit and are a contract.
func (s *Summary) Metrics() []Metric {
	n := func(name string, v int64) Metric { return Metric{name, float64(v), 0} }
	return []Metric{
		n("requests", s.Requests), n("success", s.Success), n("slo_violation", s.SLOViolation),
		n("failed", s.Failed), n("dropped", s.Dropped), n("cancelled", s.Cancelled),
		{"goodput_rps", s.GoodputRPS, 4}, {"throughput_rps", s.ThroughputRPS, 4},
		{"ttft_p50_ms", s.TTFTP50, 3}, {"ttft_p90_ms", s.TTFTP90, 3}, {"ttft_p99_ms", s.TTFTP99, 3},
		{"itl_p50_ms", s.ITLP50, 3}, {"itl_p99_ms", s.ITLP99, 3},
		{"e2e_p50_ms", s.E2EP50, 3}, {"e2e_p99_ms", s.E2EP99, 3},
		{"prefix_cache_hit_rate", s.HitRate, 5},
		{"recomputed_prefill_tokens_per_request", s.RecomputedPerRequest, 2},
		{"busiest_replica_share", s.BusiestShare, 5}, {"spill_share", s.SpillShare, 5},
		{"idle_before_evict_p90_s", s.IdleBeforeEvictP90, 3},
		{"attainment", s.Attainment, 5}, {"output_tokens_per_s", s.OutputTokensPS, 2},
		{"over_predicted_tokens_per_request", s.OverPredicted, 2},
		{"under_predicted_tokens_per_request", s.UnderPredicted, 2},
		{"honoured_share", s.HonouredShare, 5},
		n("rerouted", s.Rerouted), n("reroutes", s.Reroutes), n("unfinished", s.Unfinished),
		{"max_schedule_lag_ms", s.MaxScheduleLag, 3}, {"counted_s", s.Counted.Seconds(), 3},
	}
}

// Text writes the metric's value for a CSV field: empty when it is not known.
func (m Metric) Text() string {
	if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
		return ""
	}
	return strconv.FormatFloat(m.Value, 'f', m.Decimals, 64)
}

// MarshalJSON writes the metrics under their column names, then slo, placement
// and decisions. What is not known is null. Equal summaries give equal bytes.
func (s Summary) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, m := range s.Metrics() {
		text := m.Text()
		if text == "" {
			text = "null"
		}
		b.WriteString(strconv.Quote(m.Name) + ":" + text + ",")
	}
	rest, err := json.Marshal(struct {
		SLO       string      `json:"slo"`
		Placement []Placement `json:"placement"`
		Decisions []Decision  `json:"decisions"`
	}{s.SLO.String(), s.Placement, s.Decisions})
	if err != nil {
		return nil, err
	}
	b.Write(rest[1:])
	return b.Bytes(), nil
}
