package report

import (
	"fmt"
	"strings"
)

// A textTable lines up columns for a terminal: text to the left, numbers to the
// right, two blanks between.
type textTable struct {
	left []bool // by column
	rows [][]string
}

// newTextTable starts with the heads; a head that begins with "<" is a text
// column.
func newTextTable(heads ...string) *textTable {
	t := &textTable{}
	row := make([]string, len(heads))
	for i, h := range heads {
		text, left := strings.CutPrefix(h, "<")
		row[i], t.left = text, append(t.left, left)
	}
	t.rows = append(t.rows, row)
	return t
}

func (t *textTable) add(fields ...string) { t.rows = append(t.rows, fields) }

func (t *textTable) String() string {
	width := make([]int, len(t.left))
	for _, row := range t.rows {
		for i, f := range row {
			width[i] = max(width[i], len([]rune(f)))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, f := range row {
			pad := strings.Repeat(" ", width[i]-len([]rune(f)))
			if t.left[i] {
				line.WriteString(f + pad)
			} else {
				line.WriteString(pad + f)
			}
			line.WriteString("  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

func (m maps) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", m.curves.subtitle(), m.size())
	b.WriteString("Goodput (requests/s within the SLO)\n" + m.pointTable(2, func(p Point) float64 { return float64(p.Goodput.Median) }) + "\n")
	b.WriteString("Prefix-cache hit rate\n" + m.pointTable(3, func(p Point) float64 { return float64(p.HitRate.Median) }) + "\n")
	if !m.alone() {
		b.WriteString("Redundant prefill (prompt tokens recomputed per request above the policy that recomputed fewest)\n" + m.pointTable(1, m.grid.Redundant) + "\n")
	}
	if m.alone() {
		fmt.Fprintf(&b, "A comparison needs two policies, and here is only %s: no pressure map and no regime map\n", m.grid.Policies[0])
	} else {
		fmt.Fprintf(&b, "Goodput of %s against %s\n%s\n", m.pressure.Policy, m.pressure.Baseline, m.pressure.Table())
		b.WriteString("Winner of each point, and its lead over the runner-up\n" + m.regime.Table())
		if text := m.regime.drawnText(); text != "" {
			b.WriteString("\n" + text)
		}
	}
	var doubtful []string
	for _, p := range m.grid.Points {
		if p.Doubt != "" {
			doubtful = append(doubtful, fmt.Sprintf("  working set %s, skew %s, %s: %s",
				exact(p.WorkingSet), exact(p.Skew), p.Policy, p.Doubt))
		}
	}
	if doubtful != nil {
		b.WriteString("\nRead with care\n" + strings.Join(doubtful, "\n") + "\n")
	}
	return b.String()
}

// size is how many policies and points there are, and how many of the points
// lack a policy.
func (m maps) size() string {
	points := len(m.regime.Points)
	s := count(len(m.grid.Policies), "policy", "policies") + ", " + count(points, "point", "points")
	if n := points - m.regime.complete(); n > 0 && !m.alone() {
		s += fmt.Sprintf(", %d incomplete", n)
	}
	return s
}

func count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// pointTable is a figure of every policy at every point.
func (m maps) pointTable(decimals int, figure func(Point) float64) string {
	t := newTextTable(append([]string{"working set", "skew"}, m.grid.Policies...)...)
	for _, ws := range m.grid.WorkingSets {
		for _, skew := range m.grid.Skews {
			row := []string{exact(ws), exact(skew)}
			for _, label := range m.grid.Policies {
				p, ok := m.grid.at(ws, skew, label)
				if !ok {
					row = append(row, "no cell")
					continue
				}
				row = append(row, fixed(Number(figure(p)), decimals))
			}
			t.add(row...)
		}
	}
	return t.String()
}

// Table is the map as text, one line a point.
func (m PressureMap) Table() string {
	t := newTextTable("working set", "skew", "policy req/s", "<range", "baseline req/s", "<range",
		"difference", "<range", "req/s", "<range", "<verdict")
	for _, d := range m.Points {
		verdict := d.verdict("ahead", "behind")
		if !d.Shown() {
			verdict = "no cell of " + strings.Join(d.Missing, ", ")
		}
		t.add(exact(float64(d.WorkingSet)), exact(float64(d.Skew)),
			fixed(d.Policy.Median, 2), d.Policy.span(2), fixed(d.Baseline.Median, 2), d.Baseline.span(2),
			percent(d.Ratio), d.span(percent(d.RatioMin), percent(d.RatioMax)),
			signed(d.RPS, 2), d.span(signed(d.RPSMin, 2), signed(d.RPSMax, 2)), verdict)
	}
	return t.String()
}

// Table is the map as text, one line a point.
func (m RegimeMap) Table() string {
	t := newTextTable("working set", "skew", "<winner", "req/s", "<range", "<runner-up", "req/s", "<range", "lead", "<range", "<verdict")
	for _, r := range m.Points {
		verdict := r.Lead.verdict("won", "")
		switch {
		case r.Winner == "":
			verdict = "no cell"
		case r.Incomplete():
			verdict = "incomplete (no cell of " + strings.Join(r.Missing, ", ") + ")"
		case r.RunnerUp == "":
			verdict = "alone"
		}
		t.add(exact(float64(r.WorkingSet)), exact(float64(r.Skew)),
			r.Winner, fixed(r.Lead.Policy.Median, 2), r.Lead.Policy.span(2),
			r.RunnerUp, fixed(r.Lead.Baseline.Median, 2), r.Lead.Baseline.span(2),
			percent(r.Lead.Ratio), r.Lead.span(percent(r.Lead.RatioMin), percent(r.Lead.RatioMax)), verdict)
	}
	return t.String()
}

func (d Difference) verdict(above, below string) string {
	switch {
	case d.Policy.Median == 0 && d.Baseline.Median == 0:
		return "no goodput"
	case d.WithinSpread:
		return "within spread"
	case d.OneRepetition():
		return "one repetition"
	case d.RPS > 0:
		return above
	default:
		return below
	}
}

// span is the range of a difference, or nothing where a side was run once.
func (d Difference) span(low, high string) string {
	if d.OneRepetition() {
		return ""
	}
	return span(low, high)
}

// span is "[low..high]" of the repetitions, or nothing for fewer than two.
func (s Spread) span(decimals int) string {
	if s.Repetitions < 2 {
		return ""
	}
	return span(fixed(s.Min, decimals), fixed(s.Max, decimals))
}

func span(low, high string) string {
	if low == "n/a" && high == "n/a" {
		return ""
	}
	return "[" + low + ".." + high + "]"
}
