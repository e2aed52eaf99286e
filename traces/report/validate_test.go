package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

func readTestMeasured(t testing.TB) []MeasuredCell {
	t.Helper()
	m, err := ReadMeasured("testdata/measured.csv")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func validated(t testing.TB) Validation {
	t.Helper()
	v, err := Validate(readTestCells(t), readTestMeasured(t))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The expected numbers were worked out by hand from the two files in testdata.
func TestValidationArithmetic(t *testing.T) {
	v := validated(t)
	s := v.Summary
	for _, c := range []struct {
		what      string
		got, want Number
	}{
		// Absolute goodput errors of the stable cells: 0, 1/114, .1, .1, .125, .22.
		{"goodput median", s.GoodputStable.Median, 0.1},
		{"goodput p90", s.GoodputStable.P90, 0.1725},
		{"goodput worst", s.GoodputStable.Worst, 0.22},
		{"goodput worst of all", s.Goodput.Worst, 0.525},
		// Hit rates: 0 five times, .005, .01, .01.
		{"hit rate median", s.HitRate.Median, 0},
		{"hit rate worst", s.HitRate.Worst, 0.01},
		// TTFT p50: 0 five times, .1, .1, .2.
		{"TTFT p50 p90", s.TTFTP50.P90, 0.13},
		{"TTFT p50 p90, stable", s.TTFTP50Stable.P90, 0.15},
		// TTFT p99: 0 six times, .2, .25.
		{"TTFT p99 p90", s.TTFTP99.P90, 0.215},
		{"recomputed worst", s.Recomputed.Worst, 0.1},
	} {
		if math.Abs(float64(c.got-c.want)) > 1e-9 {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	if s.Cells != 8 || s.Stable != 6 || s.Inside != 4 || s.Overlapping != 4 || s.UnstableApart != 1 {
		t.Errorf("got %+v, want 8 cells, 6 stable, 4 inside, 4 overlapping, 1 unstable apart", s)
	}
	if e := v.Cells[0].GoodputError; math.Abs(float64(e)+0.1) > 1e-12 {
		t.Errorf("9 against 10: got %v, want -0.1", e)
	}
}

func TestStableIsAtMostThirtyPercent(t *testing.T) {
	at := MeasuredCell{GoodputMedianRPS: 10, GoodputMinRPS: 8.2, GoodputMaxRPS: 11.2}
	over := MeasuredCell{GoodputMedianRPS: 10, GoodputMinRPS: 8.2, GoodputMaxRPS: 11.201}
	if !at.stable() || over.stable() {
		t.Errorf("got %v at 30%% and %v over it, want true and false", at.stable(), over.stable())
	}
}

func TestWinners(t *testing.T) {
	v := validated(t)
	if len(v.Winners) != 3 {
		t.Fatalf("got %d decided points, want 3", len(v.Winners))
	}
	if w := v.Winners[0]; !w.Right || w.Measured != "prefix_affinity:spill_factor=1.5" || w.RunnerUp != "prefix_affinity:spill_factor=0" {
		t.Errorf("got %+v", w)
	}
	if w := v.Winners[2]; w.Right || w.Simulated != "session_affinity" || w.WorkingSet != 8 {
		t.Errorf("got %+v, want the simulated winner wrong at working set 8", w)
	}
}

func TestUndecidedPointIsNoVerdict(t *testing.T) {
	measured := readTestMeasured(t)
	for i := range measured {
		if measured[i].WorkingSet == 8 && measured[i].Policy == "session_affinity" {
			measured[i].GoodputMaxRPS = 28 // reaches the winner's worst
		}
	}
	v, err := Validate(readTestCells(t), measured)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Winners) != 2 {
		t.Errorf("got %d decided points, want 2", len(v.Winners))
	}
}

func TestFrozenPoint(t *testing.T) {
	v := validated(t)
	if len(v.Frozen) != 1 {
		t.Fatalf("got %d frozen points, want 1", len(v.Frozen))
	}
	f := v.Frozen[0]
	for _, c := range []struct {
		what      string
		got, want Number
	}{
		{"error", f.GoodputError, 0},
		{"simulated lead", f.Simulated.Median, 15.0/9 - 1},
		{"measured lead", f.Measured.Median, 15.0/8 - 1},
		{"measured low", f.Measured.Min, 14.8/9.5 - 1},
		{"measured high", f.Measured.Max, 15.2/7.5 - 1},
	} {
		if math.Abs(float64(c.got-c.want)) > 1e-12 {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	if !f.Within {
		t.Error("got outside, want +66.7% within +55.8..+102.7%")
	}
}

func TestUnmatchedCellsAreListed(t *testing.T) {
	v := validated(t)
	if len(v.NotSimulated) != 1 || v.NotSimulated[0].String() != "working set 8, skew 1.4, least_outstanding" {
		t.Errorf("not simulated: got %v", v.NotSimulated)
	}
	if len(v.NotMeasured) != 6 || v.NotMeasured[0].String() != "working set 1, skew 0, round_robin" {
		t.Errorf("not measured: got %v", v.NotMeasured)
	}
}

func TestPlainNameAmongVariants(t *testing.T) {
	cells, measured := readTestCells(t), readTestMeasured(t)
	plainOnly := slices.DeleteFunc(slices.Clone(measured), func(m MeasuredCell) bool { return m.Parameters != "" })
	if _, err := Validate(cells, plainOnly); err == nil || !strings.Contains(err.Error(), "policy prefix_affinity is ambiguous") {
		t.Errorf("got %v, want the ambiguity told", err)
	}
	m := Matcher{Defaults: testOptions().Defaults}
	v, err := m.Validate(cells, plainOnly)
	if err != nil {
		t.Fatal(err)
	}
	if c := v.Cells[0]; c.Policy != "prefix_affinity" || c.GoodputError != 0 {
		t.Errorf("got %s with error %v, want the default variant with 0", c.Policy, c.GoodputError)
	}

	// Known defaults: a sweep of another variant alone is not the plain policy.
	odd := slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return strings.HasPrefix(c.Parameters, "spill_factor=1.5") })
	v, err = m.Validate(odd, measured)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Cells {
		if c.Policy == "prefix_affinity" && c.measuredAs == "prefix_affinity" {
			t.Errorf("%s: spill_factor=0 was taken for the default", c.CellName)
		}
	}
}

func TestSeveralLoads(t *testing.T) {
	cells, measured := readTestCells(t), readTestMeasured(t)
	more := slices.Clone(cells)
	for i := range more {
		more[i].Load = 16
	}
	both := append(more, cells...)
	if _, err := Validate(both, measured); err == nil || !strings.Contains(err.Error(), "want columns driver and load") {
		t.Errorf("got %v, want the missing columns named", err)
	}
	for i := range measured {
		measured[i].Driver, measured[i].Load = "closed", 32
	}
	v, err := Validate(both, measured)
	if err != nil {
		t.Fatal(err)
	}
	// All 14 points of the other load, and the 6 as before.
	if len(v.Cells) != 8 || len(v.NotMeasured) != 6+14 {
		t.Errorf("got %d cells and %d not measured, want 8 and 20", len(v.Cells), len(v.NotMeasured))
	}
	for i := range measured {
		measured[i].Load = 64
	}
	if _, err := Validate(both, measured); err == nil || !strings.Contains(err.Error(), "none of the 9 measured cells was simulated") {
		t.Errorf("got %v, want that nothing matched", err)
	}
}

func TestLimits(t *testing.T) {
	v := validated(t)
	if got := (Limits{}).Check(v); got != nil {
		t.Errorf("no limits: got %v", got)
	}
	generous := Limits{MaxMedianError: 0.11, MaxP90Error: 0.18, MaxHitRateMedian: 0.001, MaxHitRateWorst: 0.011, MaxTTFTP50: 0.1, MaxTTFTP99: 0.1}
	if got := generous.Check(v); got != nil {
		t.Errorf("generous limits: got %v", got)
	}
	tie := append([]ValidationCell(nil), v.Cells[:2]...)
	for i := range tie {
		tie[i].CellName = v.Cells[0].CellName
		tie[i].Policy = [...]string{"a", "b"}[i]
		tie[i].Measured = Spread{Median: Number(2 - i), Min: Number(2 - i), Max: Number(2 - i)}
		tie[i].Simulated = Spread{Median: 5, Min: 5, Max: 5}
	}
	if w := judgeWinners(tie); len(w) != 1 || w[0].Right || w[0].Simulated != "tie" {
		t.Errorf("a simulated tie: got %+v, want no winner and not right", w)
	}
	v.Frozen = []FrozenPoint{{GoodputError: -0.016, Within: true}}
	if got := (Limits{MaxFrozenError: 0.02}).Check(v); got != nil {
		t.Errorf("frozen point: got %v", got)
	}
	far, apart := v, v
	far.Frozen = []FrozenPoint{{GoodputError: -0.03, Within: true}}
	apart.Frozen = []FrozenPoint{{Simulated: Lead{Median: 0.2}, Measured: Lead{Min: 0.4, Max: 0.8}}}
	none := v
	none.Frozen = nil
	for _, c := range []struct {
		v    Validation
		want string
	}{
		{far, "frozen point: prefix_affinity's goodput error is -0.03000, limit 0.02"},
		{apart, "frozen point: the simulated lead over session_affinity is 0.200, measured [0.400..0.800]"},
		{none, "frozen point: not among the cells"},
	} {
		if got := (Limits{MaxFrozenError: 0.02}).Check(c.v); len(got) != 1 || got[0].Error() != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
	for _, c := range []struct {
		limits Limits
		want   string
	}{
		{Limits{MaxWorstError: 0.05}, "worst goodput error over stable cells is 0.22000, limit 0.05"},
		{Limits{MaxMedianError: 0.025}, "median goodput error over stable cells is 0.10000, limit 0.025"},
		{Limits{MaxP90Error: 0.09}, "90th percentile of goodput error over stable cells is 0.17250, limit 0.09"},
		{Limits{MaxHitRateWorst: 0.005}, "worst hit rate error is 0.01000, limit 0.005"},
		{Limits{RequireWinners: true}, "working set 8, skew 1.4: the simulated winner is session_affinity, the measured one prefix_affinity:spill_factor=1.5"},
		{Limits{RequireOverlap: true}, "working set 8, skew 1.4, session_affinity: simulated goodput [30.00..31.00] and measured [14.00..21.00] do not overlap"},
	} {
		got := c.limits.Check(v)
		if len(got) != 1 || got[0].Error() != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}

func TestLimitOnTheUnknownIsBroken(t *testing.T) {
	cells := readTestCells(t)
	for i := range cells {
		cells[i].TTFTP50MS = math.NaN()
	}
	v, err := Validate(cells, readTestMeasured(t))
	if err != nil {
		t.Fatal(err)
	}
	got := Limits{MaxTTFTP50: 0.08}.Check(v)
	if len(got) != 1 || got[0].Error() != "median TTFT p50 error: unknown in 8 of 8 cells" {
		t.Errorf("got %v", got)
	}
	if got := (Limits{MaxMedianError: 1, RequireWinners: true}).Check(Validation{}); len(got) != 2 {
		t.Errorf("nothing to judge: got %v, want two faults", got)
	}
}

func TestValidationIsGoldenAndOrderless(t *testing.T) {
	render := func(v Validation) (table, rows, object []byte) {
		var c, j bytes.Buffer
		if err := v.WriteCSV(&c); err != nil {
			t.Fatal(err)
		}
		if err := v.WriteJSON(&j); err != nil {
			t.Fatal(err)
		}
		return []byte(v.Table()), c.Bytes(), j.Bytes()
	}
	table, rows, object := render(validated(t))
	checkGolden(t, "validation.txt", table)
	checkGolden(t, "validation.csv", rows)
	checkGolden(t, "validation.json", object)

	cells, measured := readTestCells(t), readTestMeasured(t)
	slices.Reverse(cells)
	slices.Reverse(measured)
	v, err := Validate(cells, measured)
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := render(v); !bytes.Equal(a, table) || !bytes.Equal(b, rows) || !bytes.Equal(c, object) {
		t.Error("the order of the rows changed the validation")
	}
}

const measuredHeader = "working_set,skew,policy,repetitions,goodput_rps_median,goodput_rps_min,goodput_rps_max,ttft_p50_ms,ttft_p99_ms,prefix_cache_hit_rate,requests_total,recomputed_prefill_tokens_per_request"

func TestReadMeasured(t *testing.T) {
	text := "driver,load," + measuredHeader + "\nopen,6,1,0,\"prefix_affinity:spill_factor=0,a=1\",3,2,1,3,,,0.5,10,\n,,2,0,round_robin,1,2,2,2,5,6,,10,\n"
	cells, err := DecodeMeasured(strings.NewReader(text), "grid.csv")
	if err != nil {
		t.Fatal(err)
	}
	if c := cells[1]; c.Driver != "open" || c.Load != 6 || c.spec() != "prefix_affinity:a=1,spill_factor=0" || !math.IsNaN(c.TTFTP50MS) {
		t.Errorf("got %+v", c)
	}
	if c := cells[0]; c.Driver != "" || c.Load != 0 || c.TTFTP99MS != 6 || !math.IsNaN(c.PrefixCacheHitRate) {
		t.Errorf("got %+v", c)
	}
}

func TestMeasuredFaults(t *testing.T) {
	for row, want := range map[string]string{
		"0,0,a,3,2,1,3,1,1,0.5,9,1":                            `grid.csv: row 1 (line 2), field working_set: got "0", want a number above 0`,
		"1,0,a:b,3,2,1,3,1,1,0.5,9,1":                          `field policy: got "a:b", after the ':' want k=v`,
		"1,0,a,0,2,1,3,1,1,0.5,9,1":                            `field repetitions: got "0", want a whole number of at least 1`,
		"1,0,a,3,4,1,3,1,1,0.5,9,1":                            `field goodput_rps_median: got "4", want it from goodput_rps_min to goodput_rps_max`,
		"1,0,a,3,2,1,3,1,1,50,9,1":                             `field prefix_cache_hit_rate: got "50", want a number from 0 to 1, or nothing`,
		"1,0,a,3,2,1,3,1,1,0.5,many,1":                         `field requests_total: got "many", want a whole number of at least 0`,
		"1,0,a,3,2,1,3,1,1,0.5,9":                              "row 1 (line 2): 11 fields, want 12",
		"1,0,a,3,2,1,3,1,1,0.5,9,1\n1,0,a,3,2,1,3,1,1,0.5,9,1": "row 2 (line 3), field policy: got \"a\", want every cell once, row 1 is the same cell",
	} {
		_, err := DecodeMeasured(strings.NewReader(measuredHeader+"\n"+row+"\n"), "grid.csv")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s", err, want)
		}
	}
}

func FuzzReadMeasured(f *testing.F) {
	f.Add(measuredHeader + "\n1,0,a:b=1,3,2,1,3,1,1,0.5,9,1\n")
	f.Add("driver,load," + measuredHeader + "\nopen,6,1,0,a,3,2,1,3,,,0.5,10,\n")
	f.Fuzz(func(t *testing.T, text string) {
		cells, err := DecodeMeasured(strings.NewReader(text), "fuzz")
		if err != nil {
			return
		}
		for _, c := range cells {
			if !c.Goodput().Holds(Number(c.GoodputMedianRPS)) {
				t.Errorf("accepted a median outside its range: %+v", c)
			}
		}
	})
}

func BenchmarkMapsAndValidation(b *testing.B) {
	cells, measured := readTestCells(b), readTestMeasured(b)
	for b.Loop() {
		m, err := newMaps(cells, variants(cells, testOptions().Defaults), testOptions())
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range m.figures() {
			f.SVG()
		}
		if _, err := Validate(cells, measured); err != nil {
			b.Fatal(err)
		}
	}
}
