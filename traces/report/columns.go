package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A column is one field of cells.csv: its name, its text, and how the text is
// read back. set's error says what was expected.
type column struct {
	name string
	get  func(*Cell) string
	set  func(*Cell, string) error
}

func columns() []column {
	return []column{
		{"driver", func(c *Cell) string { return c.Driver }, func(c *Cell, s string) error { return parseDriver(&c.Driver, s) }},
		exactColumn("load", func(c *Cell) *float64 { return &c.Load }, parsePositive),
		exactColumn("working_set", func(c *Cell) *float64 { return &c.WorkingSet }, parsePositive),
		exactColumn("skew", func(c *Cell) *float64 { return &c.Skew }, parseAtLeastZero),
		{"policy", func(c *Cell) string { return c.Policy }, func(c *Cell, s string) error { return parsePolicyName(&c.Policy, s) }},
		{"parameters", func(c *Cell) string { return c.Parameters }, func(c *Cell, s string) error { return parseParameters(&c.Parameters, s) }},
		countColumn("repetition", func(c *Cell) *int { return &c.Repetition }),
		countColumn("requests", func(c *Cell) *int { return &c.Requests }),
		countColumn("success", func(c *Cell) *int { return &c.Success }),
		countColumn("slo_violation", func(c *Cell) *int { return &c.SLOViolation }),
		countColumn("failed", func(c *Cell) *int { return &c.Failed }),
		countColumn("dropped", func(c *Cell) *int { return &c.Dropped }),
		countColumn("cancelled", func(c *Cell) *int { return &c.Cancelled }),
		rounded("goodput_rps", 4, func(c *Cell) *float64 { return &c.GoodputRPS }, parseAtLeastZero),
		rounded("throughput_rps", 4, func(c *Cell) *float64 { return &c.ThroughputRPS }, parseAtLeastZero),
		rounded("ttft_p50_ms", 3, func(c *Cell) *float64 { return &c.TTFTP50MS }, parseMeasure),
		rounded("ttft_p99_ms", 3, func(c *Cell) *float64 { return &c.TTFTP99MS }, parseMeasure),
		rounded("itl_p50_ms", 3, func(c *Cell) *float64 { return &c.ITLP50MS }, parseMeasure),
		rounded("e2e_p50_ms", 3, func(c *Cell) *float64 { return &c.E2EP50MS }, parseMeasure),
		rounded("prefix_cache_hit_rate", 6, func(c *Cell) *float64 { return &c.PrefixCacheHitRate }, parseShare),
		rounded("recomputed_prefill_tokens_per_request", 3, func(c *Cell) *float64 { return &c.RecomputedPrefillTokens }, parseMeasure),
		rounded("busiest_replica_share", 6, func(c *Cell) *float64 { return &c.BusiestReplicaShare }, parseShare),
		rounded("spill_share", 6, func(c *Cell) *float64 { return &c.SpillShare }, parseShare),
		rounded("idle_before_evict_p90_s", 3, func(c *Cell) *float64 { return &c.IdleBeforeEvictP90Second }, parseMeasure),
	}
}

func countColumn(name string, field func(*Cell) *int) column {
	return column{name,
		func(c *Cell) string { return strconv.Itoa(*field(c)) },
		func(c *Cell, s string) error { return parseCount(field(c), s) }}
}

func exactColumn(name string, field func(*Cell) *float64, parse func(*float64, string) error) column {
	return column{name,
		func(c *Cell) string { return exact(*field(c)) },
		func(c *Cell, s string) error { return parse(field(c), s) }}
}

func rounded(name string, decimals int, field func(*Cell) *float64, parse func(*float64, string) error) column {
	return column{name,
		func(c *Cell) string {
			if math.IsNaN(*field(c)) {
				return ""
			}
			return strconv.FormatFloat(*field(c), 'f', decimals, 64)
		},
		func(c *Cell, s string) error { return parse(field(c), s) }}
}

func parseDriver(to *string, s string) error {
	if s != "closed" && s != "open" {
		return fmt.Errorf("want closed or open")
	}
	*to = s
	return nil
}

func parsePolicyName(to *string, s string) error {
	if !plain(s) {
		return fmt.Errorf("want a policy name of letters, digits, '_', '-' and '.'")
	}
	*to = s
	return nil
}

// parseParameters keeps the pairs sorted by key, so that equal sets are equal
// text.
func parseParameters(to *string, s string) error {
	if s == "" {
		*to = ""
		return nil
	}
	pairs := strings.Split(s, ",")
	slices.Sort(pairs)
	last := ""
	for _, p := range pairs {
		key, value, ok := strings.Cut(p, "=")
		if !ok || !plain(key) || !plain(value) {
			return fmt.Errorf("want k=v joined by commas, each of letters, digits, '_', '-', '+' and '.'")
		}
		if key == last {
			return fmt.Errorf("want every parameter once, %s is there twice", key)
		}
		last = key
	}
	*to = strings.Join(pairs, ",")
	return nil
}

func plain(s string) bool {
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune("_-+.", r) {
			return false
		}
	}
	return s != ""
}

func parseCount(to *int, s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return fmt.Errorf("want a whole number of at least 0")
	}
	*to = n
	return nil
}

func parseNumber(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v + 0, true // turns -0 into 0
}

func parsePositive(to *float64, s string) error {
	v, ok := parseNumber(s)
	if !ok || v <= 0 {
		return fmt.Errorf("want a number above 0")
	}
	*to = v
	return nil
}

func parseAtLeastZero(to *float64, s string) error {
	v, ok := parseNumber(s)
	if !ok || v < 0 {
		return fmt.Errorf("want a number of at least 0")
	}
	*to = v
	return nil
}

func parseMeasure(to *float64, s string) error {
	if s == "" {
		*to = math.NaN()
		return nil
	}
	if parseAtLeastZero(to, s) != nil {
		return fmt.Errorf("want a number of at least 0, or nothing")
	}
	return nil
}

func parseShare(to *float64, s string) error {
	if err := parseMeasure(to, s); err != nil || *to > 1 {
		return fmt.Errorf("want a number from 0 to 1, or nothing")
	}
	return nil
}
