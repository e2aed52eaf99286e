package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// plainCells is a closed loop at 32 users of policies a, b, … over working sets
// and skews, the first policy ahead everywhere, with repetitions that differ by
// little.
func plainCells(workingSets, skews []float64, policies, repetitions int) []Cell {
	var cells []Cell
	for _, ws := range workingSets {
		for _, skew := range skews {
			for p := range policies {
				for rep := range repetitions {
					cells = append(cells, Cell{Driver: "closed", Load: 32, WorkingSet: ws, Skew: skew,
						Policy: string(rune('a' + p)), Repetition: rep + 1, Requests: 100, Success: 100,
						GoodputRPS: 30/float64(p+2) + 0.01*float64(rep)})
				}
			}
		}
	}
	return cells
}

// lineWith is the line of text that holds every one of parts.
func lineWith(t *testing.T, text string, parts ...string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			return line
		}
	}
	t.Fatalf("no line with %q in\n%s", parts, text)
	return ""
}

// An interrupted sweep has some policies only at its last point.
func TestIncompletePointIsNotWon(t *testing.T) {
	cells := plainCells([]float64{1, 3}, []float64{0}, 5, 3)
	cells = slices.DeleteFunc(cells, func(c Cell) bool { return c.WorkingSet == 3 && c.Policy < "d" })
	files, text := mapFiles(t, cells, MapOptions{})
	lineWith(t, text, "5 policies, 2 points, 1 incomplete")
	lineWith(t, text, "incomplete (no cell of a, b, c)")
	if n := strings.Count(text, "won\n"); n != 1 {
		t.Errorf("got %d points won, want only the complete one:\n%s", n, text)
	}
	svg := files["regime_map.svg"]
	for _, want := range []string{
		`>a: first at 1 of 1 complete point<`, `>incomplete<`, `>2 of 5 policies<`, `>ahead: d<`,
		`id="incomplete"`, `incomplete: not all policies simulated`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("the regime map lacks %s", want)
		}
	}
	if strings.Contains(svg, "d: first") || strings.Contains(svg, policyColour(3).String()) {
		t.Error("d has a colour in the regime map, though it won nothing")
	}
	g, err := NewGrid(cells, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := NewRegimeMap(g)
	if a, d := m.Wins("a"), m.Wins("d"); a != 1 || d != 0 {
		t.Errorf("got %d and %d wins, want 1 of a and none of d, which was ahead where a is missing", a, d)
	}
}

// A load that an interrupted sweep had just begun lacks policies altogether; the
// other loads tell which.
func TestIncompleteLoad(t *testing.T) {
	cells := plainCells([]float64{1}, []float64{0}, 3, 3)
	for _, c := range plainCells([]float64{1}, []float64{0}, 2, 3) {
		c.Load = 64
		cells = append(cells, c)
	}
	files, text := mapFiles(t, cells, MapOptions{})
	lineWith(t, text, "incomplete (no cell of c)")
	if svg := files["regime_map-closed-64.svg"]; !strings.Contains(svg, ">2 of 3 policies<") || strings.Contains(svg, "first at") {
		t.Error("the second load should have no winner")
	}
	if strings.Contains(files["regime_map-closed-32.svg"], "incomplete") {
		t.Error("the first load is complete")
	}
}

func TestCompleteMapHasNoMark(t *testing.T) {
	files, text := mapFiles(t, plainCells([]float64{1, 3}, []float64{0, 1}, 3, 3), MapOptions{})
	for name, data := range files {
		if strings.Contains(data, "incomplete") {
			t.Errorf("%s speaks of incomplete points", name)
		}
	}
	if strings.Contains(text, "incomplete") || strings.Count(text, "won\n") != 4 {
		t.Errorf("want four points won:\n%s", text)
	}
}

func TestOneRepetitionIsNoResult(t *testing.T) {
	files, text := mapFiles(t, plainCells([]float64{1, 3}, []float64{0}, 2, 1), MapOptions{})
	if n := strings.Count(text, "one repetition\n"); n != 4 {
		t.Errorf("got %d verdicts of one repetition, want 4:\n%s", n, text)
	}
	for _, word := range []string{"won", "ahead", "[", "within spread"} {
		if strings.Contains(text, word) {
			t.Errorf("the table holds %q:\n%s", word, text)
		}
	}
	for name, data := range files {
		if strings.HasSuffix(name, ".svg") && (strings.Contains(data, "…") || strings.Contains(data, "within spread") || strings.Contains(data, "whiskers")) {
			t.Errorf("%s shows or explains a range that is not there", name)
		}
	}
}

// Equal single repetitions do not overlap: there is no range.
func TestOneRepetitionEqual(t *testing.T) {
	d := difference(1, 0, NewSpread([]float64{5}), NewSpread([]float64{5}))
	if d.WithinSpread || d.verdict("ahead", "behind") != "one repetition" {
		t.Errorf("got %q, within spread %t, want one repetition", d.verdict("ahead", "behind"), d.WithinSpread)
	}
	d = difference(1, 0, NewSpread([]float64{4, 6}), NewSpread([]float64{5}))
	if got := d.verdict("ahead", "behind"); got != "within spread" {
		t.Errorf("one repetition inside the other's range: got %q, want within spread", got)
	}
	d = difference(1, 0, NewSpread([]float64{6, 7}), NewSpread([]float64{5}))
	if got := d.verdict("ahead", "behind"); got != "one repetition" || d.span("a", "b") != "" {
		t.Errorf("one repetition outside the other's range: got %q, want one repetition and no range", got)
	}
}

// Where only some points were run once, the tile says it.
func TestOneRepetitionAtOnePoint(t *testing.T) {
	cells := plainCells([]float64{1, 3}, []float64{0}, 2, 3)
	cells = slices.DeleteFunc(cells, func(c Cell) bool { return c.WorkingSet == 3 && c.Repetition > 1 })
	files, text := mapFiles(t, cells, MapOptions{})
	lineWith(t, text, "   3     0", "one repetition")
	lineWith(t, text, "   1     0", "won")
	for _, name := range []string{"pressure_map.svg", "regime_map.svg"} {
		if strings.Count(files[name], ">one repetition<") != 1 || strings.Count(files[name], "…") != 1 {
			t.Errorf("%s: want one tile with a range and one that says one repetition", name)
		}
		if !strings.Contains(files[name], "within spread") {
			t.Errorf("%s does not explain hatching", name)
		}
	}
}

func TestOnePolicyHasCurvesOnly(t *testing.T) {
	dir := t.TempDir()
	paths, text, err := WriteMaps(dir, plainCells([]float64{1, 3}, []float64{0}, 1, 3), MapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "goodput_by_working_set.svg"), filepath.Join(dir, "goodput_by_working_set.json")}
	if !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
	lineWith(t, text, "1 policy, 2 points")
	lineWith(t, text, "A comparison needs two policies", "only a")
	data, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	var c GoodputCurves
	if err := json.Unmarshal(data, &c); err != nil || len(c.Panels) != 1 || len(c.Panels[0].Lines[0].Points) != 2 {
		t.Errorf("got %+v, %v, want one panel with one line of two points", c, err)
	}
}

var (
	rotated = regexp.MustCompile(`<text x="([\d.]+)" y="([\d.]+)" font-size="([\d.]+)"[^>]*rotate\(-90[^>]*>([^<]*)<`)
	upright = regexp.MustCompile(`<text x="([\d.]+)" y="([\d.]+)" font-size="([\d.]+)"([^>]*)>([^<]*)<`)
	sheet   = regexp.MustCompile(`viewBox="0 0 (\d+) (\d+)"`)
)

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Every text of a small map stays on the sheet, the skew axis' title beside its
// rows and at a size that can be read.
func TestSmallGridsFit(t *testing.T) {
	axis := []float64{0.25, 1, 3, 8}
	for _, n := range [][2]int{{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}, {4, 1}, {4, 3}} {
		for _, repetitions := range []int{1, 3} {
			files, _ := mapFiles(t, plainCells(axis[:n[0]], axis[:n[1]], 2, repetitions), MapOptions{})
			for _, name := range []string{"pressure_map.svg", "regime_map.svg"} {
				checkFits(t, strconv.Itoa(n[0])+"x"+strconv.Itoa(n[1])+" "+name, files[name])
			}
		}
	}
}

func checkFits(t *testing.T, name, svg string) {
	t.Helper()
	size := sheet.FindStringSubmatch(svg)
	width, height := number(t, size[1]), number(t, size[2])
	titles := rotated.FindAllStringSubmatch(svg, -1)
	if len(titles) == 0 {
		t.Errorf("%s: no title at the skew axis", name)
	}
	for _, m := range titles {
		y, half := number(t, m[2]), textWidth(m[4], number(t, m[3]))/2
		if y-half < 74 || y+half > height || number(t, m[3]) < 10.9 {
			t.Errorf("%s: %q at %s px stands from %.0f to %.0f, want it below the subtitle and not under 11 px", name, m[4], m[3], y-half, y+half)
		}
	}
	for _, m := range upright.FindAllStringSubmatch(svg, -1) {
		from, w := number(t, m[1]), textWidth(m[5], number(t, m[3]))
		switch {
		case strings.Contains(m[4], "rotate"):
			continue
		case strings.Contains(m[4], `"middle"`):
			from -= w / 2
		case strings.Contains(m[4], `"end"`):
			from -= w
		}
		if from < 0 || from+w > width || number(t, m[2]) > height {
			t.Errorf("%s: %q stands from %.0f to %.0f of %.0f", name, m[5], from, from+w, width)
		}
	}
}

// With one working set the policies share the panel instead of one another's
// place.
func TestSingleWorkingSetSpreadsPolicies(t *testing.T) {
	for _, policies := range []int{1, 2, 5, 12} {
		g, err := NewGrid(plainCells([]float64{1}, []float64{0}, policies, 3), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := NewGoodputCurves(g).axes()
		for i := range policies {
			x := p.across(1) + p.aside(i)
			if x < 20 || x > panelW-20 {
				t.Errorf("%d policies: number %d at %.0f, want it inside the panel of %.0f", policies, i, x, panelW)
			}
			if i > 0 && p.aside(i)-p.aside(i-1) < 12 {
				t.Errorf("%d policies: number %d covers the one before", policies, i)
			}
		}
	}
}
