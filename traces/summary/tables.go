package summary

import (
	"encoding/json"
	"math"
	"slices"
	"sort"
	"strings"

	"kvfleet/traces"
)

// A Placement is what one replica was given, over the counted rows.
type Placement struct {
	Replica        string  `json:"replica"`
	Requests       int64   `json:"requests"`
	Share          float64 `json:"share"` // of the requests placed on any replica
	Success        int64   `json:"success"`
	PromptTokens   int64   `json:"prompt_tokens"` // of rows whose cached tokens are known
	CachedTokens   int64   `json:"cached_tokens"`
	OverPredicted  int64   `json:"over_predicted_tokens"`
	UnderPredicted int64   `json:"under_predicted_tokens"`
	TTFTP50        float64 `json:"-"` // ms, of its answered requests; NaN for none
}

// MarshalJSON adds ttft_p50_ms, null for none.
func (p Placement) MarshalJSON() ([]byte, error) {
	type plain Placement
	var ttft *float64
	if !math.IsNaN(p.TTFTP50) {
		ms := math.Round(p.TTFTP50*1e3) / 1e3
		ttft = &ms
	}
	return json.Marshal(struct {
		plain
		TTFTP50 *float64 `json:"ttft_p50_ms"`
	}{plain(p), ttft})
}

// A placement is a Placement being made.
type placement struct {
	Placement
	ttft []float32 // ms
}

// placements finds a replica's Placement by name; listed replicas come first.
type placements struct {
	rows   []*placement
	listed int
	index  map[string]*placement
}

func newPlacements(names []string) placements {
	t := placements{listed: len(names), index: make(map[string]*placement, len(names))}
	for _, name := range names {
		t.of(name)
	}
	return t
}

func (t *placements) of(name string) *placement {
	if p := t.index[name]; p != nil {
		return p
	}
	p := &placement{Placement: Placement{Replica: strings.Clone(name)}}
	t.index[p.Replica] = p
	t.rows = append(t.rows, p)
	return p
}

func (t *placements) list(placed int64) []Placement {
	all := make([]Placement, len(t.rows))
	for i, p := range t.rows {
		all[i] = p.Placement
		slices.Sort(p.ttft)
		all[i].TTFTP50 = traces.Quantile(p.ttft, 0.5)
		if placed > 0 {
			all[i].Share = float64(p.Requests) / float64(placed)
		}
	}
	rest := all[t.listed:]
	sort.Slice(rest, func(i, j int) bool { return rest[i].Replica < rest[j].Replica })
	return all
}

// A Decision is how often a reason was given.
type Decision struct {
	Reason   string  `json:"reason"`
	Requests int64   `json:"requests"`
	Share    float64 `json:"share"` // of all decisions
}

// tally counts reasons. There are under twenty, met in long runs of the same
// few, so a short list searched from the front beats a map.
type tally struct {
	rows  []Decision
	spill []bool
}

// add counts a reason and reports whether it is a spill.
func (t *tally) add(reason string) bool {
	for i := range t.rows {
		if t.rows[i].Reason == reason {
			t.rows[i].Requests++
			return t.spill[i]
		}
	}
	spill := strings.HasPrefix(reason, "SPILL_")
	t.rows = append(t.rows, Decision{Reason: strings.Clone(reason), Requests: 1})
	t.spill = append(t.spill, spill)
	return spill
}

func (t *tally) list(decisions int64) []Decision {
	all := append([]Decision(nil), t.rows...)
	sort.Slice(all, func(i, j int) bool { return all[i].Reason < all[j].Reason })
	for i := range all {
		all[i].Share = float64(all[i].Requests) / float64(decisions)
	}
	return all
}
