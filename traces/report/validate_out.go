package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteJSON writes everything the validation holds.
func (v Validation) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// WriteCSV writes one row per compared cell: both sides and the errors, an
// unknown one empty.
func (v Validation) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(strings.Split("driver,load,working_set,skew,policy,stable,inside,overlap,"+
		"simulated_goodput_rps_median,simulated_goodput_rps_min,simulated_goodput_rps_max,"+
		"measured_goodput_rps_median,measured_goodput_rps_min,measured_goodput_rps_max,goodput_error,"+
		"simulated_prefix_cache_hit_rate,measured_prefix_cache_hit_rate,prefix_cache_hit_rate_error,"+
		"simulated_ttft_p50_ms,measured_ttft_p50_ms,ttft_p50_error,"+
		"simulated_ttft_p99_ms,measured_ttft_p99_ms,ttft_p99_error,"+
		"simulated_recomputed_prefill_tokens_per_request,measured_recomputed_prefill_tokens_per_request,recomputed_prefill_error", ",")); err != nil {
		return err
	}
	for _, c := range v.Cells {
		row := []string{c.Driver, exact(float64(c.Load)), exact(float64(c.WorkingSet)), exact(float64(c.Skew)), c.Policy,
			strconv.FormatBool(c.Stable), strconv.FormatBool(c.Inside), strconv.FormatBool(c.Overlap)}
		for _, s := range []Spread{c.Simulated, c.Measured} {
			row = append(row, field(s.Median, 4), field(s.Min, 4), field(s.Max, 4))
		}
		row = append(row, field(c.GoodputError, 6))
		for _, p := range []Pair{c.HitRate, c.TTFTP50, c.TTFTP99, c.Recomputed} {
			row = append(row, field(p.Simulated, 6), field(p.Measured, 6), field(p.Error, 6))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// field is a CSV field: a Number with decimals, or nothing.
func field(n Number, decimals int) string {
	if !n.known() {
		return ""
	}
	return fixed(n, decimals)
}

// Table is the validation as text: a line a cell, then the sums.
func (v Validation) Table() string {
	var b strings.Builder
	load := ""
	t := validationTable()
	flush := func() {
		if load != "" {
			fmt.Fprintf(&b, "%s\n%s\n", load, t)
		}
	}
	for _, c := range v.Cells {
		if name := LoadName(c.Driver, float64(c.Load)); name != load {
			flush()
			load, t = name, validationTable()
		}
		t.add(c.row()...)
	}
	flush()
	v.Summary.write(&b)
	v.writeWinners(&b)
	for _, f := range v.Frozen {
		fmt.Fprintf(&b, "Frozen point (working set 1, skew 0; %s): prefix_affinity %s; its lead over session_affinity %s simulated, %s %s measured: %s\n",
			LoadName(f.Driver, float64(f.Load)), tenths(f.GoodputError), tenths(f.Simulated.Median), tenths(f.Measured.Median),
			span(tenths(f.Measured.Min), tenths(f.Measured.Max)), choose(f.Within, "within", "outside"))
	}
	writeUnmatched(&b, "Measured but not simulated", v.NotSimulated)
	writeUnmatched(&b, "Simulated but not measured", v.NotMeasured)
	return b.String()
}

func validationTable() *textTable {
	return newTextTable("working set", "skew", "<policy", "simulated", "<range", "measured", "<range", "error", "<verdict",
		"hit rate", "measured", "error", "TTFT p50", "error", "TTFT p99", "error", "recomputed", "error")
}

func (c ValidationCell) row() []string {
	verdict := choose(c.Inside, "inside", "outside")
	if !c.Stable {
		verdict = choose(c.Overlap, "unstable, ranges overlap", "unstable, ranges apart")
	}
	return []string{exact(float64(c.WorkingSet)), exact(float64(c.Skew)), c.Policy,
		fixed(c.Simulated.Median, 2), c.Simulated.span(2), fixed(c.Measured.Median, 2), c.Measured.span(2), tenths(c.GoodputError), verdict,
		fixed(c.HitRate.Simulated, 4), fixed(c.HitRate.Measured, 4), signed(c.HitRate.Error, 4),
		fixed(c.TTFTP50.Simulated, 1), tenths(c.TTFTP50.Error), fixed(c.TTFTP99.Simulated, 1), tenths(c.TTFTP99.Error),
		fixed(c.Recomputed.Simulated, 1), tenths(c.Recomputed.Error)}
}

func (s Summary) write(b *strings.Builder) {
	unstable := s.Cells - s.Stable
	fmt.Fprintf(b, "%d cells compared: %d with the simulated median inside the measured range, %d with overlapping ranges\n", s.Cells, s.Inside, s.Overlapping)
	fmt.Fprintf(b, "%d stable (measured repetitions within 30%% of their median), %d judged by overlap alone: %d of those overlap\n\n",
		s.Stable, unstable, unstable-s.UnstableApart)
	t := newTextTable("<absolute error", "cells", "unknown", "median", "p90", "worst")
	add := func(name string, st Statistic, show func(Number) string) {
		t.add(name, strconv.Itoa(st.Cells), strconv.Itoa(st.Unknown), show(st.Median), show(st.P90), show(st.Worst))
	}
	size := func(n Number) string {
		if !n.known() {
			return "n/a"
		}
		return fixed(100*n, 2) + "%"
	}
	add("goodput, stable cells", s.GoodputStable, size)
	add("goodput, all cells", s.Goodput, size)
	add("prefix cache hit rate, all cells", s.HitRate, func(n Number) string { return fixed(n, 4) })
	add("TTFT p50, all cells", s.TTFTP50, size)
	add("TTFT p50, stable cells", s.TTFTP50Stable, size)
	add("TTFT p99, all cells", s.TTFTP99, size)
	add("TTFT p99, stable cells", s.TTFTP99Stable, size)
	add("recomputed prefill, all cells", s.Recomputed, size)
	b.WriteString(t.String() + "\n")
}

func (v Validation) writeWinners(b *strings.Builder) {
	right := 0
	for _, w := range v.Winners {
		if w.Right {
			right++
		}
	}
	fmt.Fprintf(b, "Winner right at %d of %d points whose measured winner is decided\n", right, len(v.Winners))
	for _, w := range v.Winners {
		if !w.Right {
			fmt.Fprintf(b, "  wrong at working set %s, skew %s: simulated %s, measured %s\n",
				exact(float64(w.WorkingSet)), exact(float64(w.Skew)), w.Simulated, w.Measured)
		}
	}
}

// writeUnmatched lists cells without a counterpart, a line for each load and
// policy.
func writeUnmatched(b *strings.Builder, title string, names []CellName) {
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(b, "%s (%d), each as (working set, skew)\n", title, len(names))
	var order []string
	points := map[string][]string{}
	for _, n := range names {
		who := n.Policy
		if n.Driver != "" && n.Load.known() {
			who = LoadName(n.Driver, float64(n.Load)) + ", " + who
		}
		if points[who] == nil {
			order = append(order, who)
		}
		points[who] = append(points[who], fmt.Sprintf("(%s, %s)", exact(float64(n.WorkingSet)), exact(float64(n.Skew))))
	}
	for _, who := range order {
		fmt.Fprintf(b, "  %s: %s\n", who, strings.Join(points[who], " "))
	}
}

// tenths is a ratio in percent with one decimal and a sign.
func tenths(n Number) string {
	if !n.known() {
		return "n/a"
	}
	return signed(100*n, 1) + "%"
}

func choose(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}
