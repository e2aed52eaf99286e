package report

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A MeasuredCell is one point measured on real replicas, its repetitions
// already reduced by whoever measured it. A measure not given is NaN.
type MeasuredCell struct {
	Driver     string  // closed, open, or empty if the file does not say
	Load       float64 // users or requests/s; 0 if the file does not say
	WorkingSet float64
	Skew       float64
	Policy     string
	Parameters string // those the file names, k=v joined by commas; others are the policy's defaults

	Repetitions             int
	GoodputMedianRPS        float64
	GoodputMinRPS           float64
	GoodputMaxRPS           float64
	TTFTP50MS, TTFTP99MS    float64
	PrefixCacheHitRate      float64
	Requests                int // over all repetitions
	RecomputedPrefillTokens float64
}

// Goodput is the measured median and range in requests/s.
func (m MeasuredCell) Goodput() Spread {
	return Spread{Number(m.GoodputMedianRPS), Number(m.GoodputMinRPS), Number(m.GoodputMaxRPS), m.Repetitions}
}

func (m MeasuredCell) spec() string {
	if m.Parameters == "" {
		return m.Policy
	}
	return m.Policy + ":" + m.Parameters
}

// ReadMeasured reads a grid of measured cells: the columns working_set, skew,
// policy (a name, or name:k=v,…), repetitions, goodput_rps_median, _min and
// _max, ttft_p50_ms, ttft_p99_ms, prefix_cache_hit_rate, requests_total and
// recomputed_prefill_tokens_per_request, and, where the file has them, driver
// and load. Errors are those of ReadCells.
func ReadMeasured(path string) ([]MeasuredCell, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return DecodeMeasured(f, path)
}

// DecodeMeasured is ReadMeasured on an open file; name is what errors call it.
func DecodeMeasured(r io.Reader, name string) ([]MeasuredCell, error) {
	t := table{name: name}
	required := []string{"working_set", "skew", "policy", "repetitions", "goodput_rps_median", "goodput_rps_min",
		"goodput_rps_max", "ttft_p50_ms", "ttft_p99_ms", "prefix_cache_hit_rate", "requests_total",
		"recomputed_prefill_tokens_per_request"}
	if err := t.open(r, required); err != nil {
		return nil, err
	}
	var cells []MeasuredCell
	first := map[string]int{}
	for t.next() {
		m := t.measured()
		key := fmt.Sprint(m.Driver, m.Load, m.WorkingSet, m.Skew, m.spec())
		if row, twice := first[key]; twice {
			t.fault("policy", fmt.Sprintf("want every cell once, row %d is the same cell", row))
		} else {
			first[key] = t.row
		}
		cells = append(cells, m)
	}
	if err := t.err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(cells, compareMeasured)
	return cells, nil
}

func (t *table) measured() MeasuredCell {
	var m MeasuredCell
	sound := len(t.faults)
	number := func(column string, to *float64, parse func(*float64, string) error) {
		if err := parse(to, t.field(column)); err != nil {
			t.fault(column, err.Error())
		}
	}
	if t.has("driver") && t.field("driver") != "" {
		if err := parseDriver(&m.Driver, t.field("driver")); err != nil {
			t.fault("driver", err.Error()+", or nothing")
		}
	}
	if t.has("load") && t.field("load") != "" {
		number("load", &m.Load, parsePositive)
	}
	number("working_set", &m.WorkingSet, parsePositive)
	number("skew", &m.Skew, parseAtLeastZero)
	policy, parameters, _ := strings.Cut(t.field("policy"), ":")
	if err := parsePolicyName(&m.Policy, policy); err != nil {
		t.fault("policy", err.Error())
	}
	if err := parseParameters(&m.Parameters, parameters); err != nil {
		t.fault("policy", "after the ':' "+err.Error())
	}
	n, err := strconv.Atoi(t.field("repetitions"))
	if err != nil || n < 1 {
		t.fault("repetitions", "want a whole number of at least 1")
	}
	m.Repetitions = n
	number("goodput_rps_median", &m.GoodputMedianRPS, parsePositive)
	number("goodput_rps_min", &m.GoodputMinRPS, parseAtLeastZero)
	number("goodput_rps_max", &m.GoodputMaxRPS, parseAtLeastZero)
	ordered := m.GoodputMinRPS <= m.GoodputMedianRPS && m.GoodputMedianRPS <= m.GoodputMaxRPS
	if len(t.faults) == sound && !ordered {
		t.fault("goodput_rps_median", "want it from goodput_rps_min to goodput_rps_max")
	}
	number("ttft_p50_ms", &m.TTFTP50MS, parseMeasure)
	number("ttft_p99_ms", &m.TTFTP99MS, parseMeasure)
	number("prefix_cache_hit_rate", &m.PrefixCacheHitRate, parseShare)
	if err := parseCount(&m.Requests, t.field("requests_total")); err != nil {
		t.fault("requests_total", err.Error())
	}
	number("recomputed_prefill_tokens_per_request", &m.RecomputedPrefillTokens, parseMeasure)
	return m
}

func compareMeasured(a, b MeasuredCell) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Load, b.Load),
		cmp.Compare(a.WorkingSet, b.WorkingSet), cmp.Compare(a.Skew, b.Skew), cmp.Compare(a.spec(), b.spec()))
}

// stableSpread is the largest (max-min)/median of measured repetitions whose
// median is worth an error in percent.
const stableSpread = 0.30

// stable allows for the last bit of the division.
func (m MeasuredCell) stable() bool {
	return m.GoodputMaxRPS-m.GoodputMinRPS <= stableSpread*m.GoodputMedianRPS+1e-12
}
