package report

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestQuantileIsType7(t *testing.T) {
	v := []float64{1, 2, 3, 4}
	for _, c := range []struct{ q, want float64 }{{0, 1}, {0.5, 2.5}, {0.9, 3.7}, {1, 4}} {
		if got := Quantile(v, c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("quantile %v: got %v, want %v", c.q, got, c.want)
		}
	}
	if got := Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of nothing: got %v, want NaN", got)
	}
}

func TestSpread(t *testing.T) {
	s := NewSpread([]float64{5, math.NaN(), 1, 3, 2})
	if s != (Spread{2.5, 1, 5, 4}) {
		t.Errorf("got %+v, want median 2.5 of 1..5 over 4", s)
	}
	touching := Spread{6, 5, 7, 3}
	if !s.Overlaps(touching) || !touching.Overlaps(s) {
		t.Error("ranges that share an end overlap")
	}
	if s.Overlaps(Spread{6, 5.1, 7, 3}) || s.Overlaps(NewSpread(nil)) {
		t.Error("ranges apart, or one of nothing, do not overlap")
	}
}

func TestDifference(t *testing.T) {
	d := difference(1, 0, Spread{12, 11, 13, 3}, Spread{8, 5, 10, 3})
	for _, c := range []struct {
		what      string
		got, want Number
	}{
		{"ratio", d.Ratio, 0.5}, {"low", d.RatioMin, 0.1}, {"high", d.RatioMax, 1.6},
		{"rps", d.RPS, 4}, {"rps low", d.RPSMin, 1}, {"rps high", d.RPSMax, 8},
	} {
		if math.Abs(float64(c.got-c.want)) > 1e-12 {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	if d.WithinSpread {
		t.Error("got within spread, want 11..13 apart from 5..10")
	}
	if d := difference(1, 0, Spread{1, 1, 1, 1}, Spread{}); d.Ratio.known() {
		t.Errorf("against 0: got %v, want unknown", d.Ratio)
	}
}

func TestLabelsKeepOnlyWhatDiffers(t *testing.T) {
	cells := []Cell{
		{Policy: "prefix_affinity", Parameters: "spill_factor=0,ttl=10m"},
		{Policy: "prefix_affinity", Parameters: "spill_factor=1.5,ttl=10m"},
		{Policy: "power_of_two", Parameters: "d=2"},
	}
	got := labels(variants(cells, nil))
	if want := "power_of_two, prefix_affinity:spill_factor=0, prefix_affinity:spill_factor=1.5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got = labels(variants(cells, Defaults{"prefix_affinity": "spill_factor=1.50,ttl=10m"}))
	if want := "power_of_two, prefix_affinity, prefix_affinity:spill_factor=0"; got != want {
		t.Errorf("with defaults: got %s, want %s", got, want)
	}
}

func TestFindVariant(t *testing.T) {
	defaults := Defaults{"prefix_affinity": "spill_factor=1.5,ttl=10m"}
	all := []variant{
		{"prefix_affinity", "spill_factor=0,ttl=10m", "prefix_affinity:spill_factor=0"},
		{"prefix_affinity", "spill_factor=1.5,ttl=10m", "prefix_affinity:spill_factor=1.5"},
		{"power_of_two", "d=2", "power_of_two"},
	}
	for _, c := range []struct {
		spec     string
		defaults Defaults
		want     string
	}{
		{"power_of_two", nil, "power_of_two"},
		{"power_of_two:d=2.0", nil, "power_of_two"},
		{"prefix_affinity:ttl=10m,spill_factor=0", nil, "prefix_affinity:spill_factor=0"},
		{"prefix_affinity", defaults, "prefix_affinity:spill_factor=1.5"},
	} {
		got, err := find(all, c.spec, c.defaults)
		if err != nil || got.label != c.want {
			t.Errorf("%s: got %q, %v, want %s", c.spec, got.label, err, c.want)
		}
	}
	for spec, want := range map[string]string{
		"prefix_affinity": "ambiguous here, want one of prefix_affinity:spill_factor=0, prefix_affinity:spill_factor=1.5",
		"least":           "policy least is not in the sweep, which has prefix_affinity:spill_factor=0,",
	} {
		if _, err := find(all, spec, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s", spec, err, want)
		}
	}
}

func TestGridRefusesAMixture(t *testing.T) {
	cells := readTestCells(t)
	other := slices.Clone(cells)
	for i := range other {
		other[i].Driver, other[i].Load = "open", 6
	}
	_, err := NewGrid(append(other, cells...), nil)
	if want := "cannot mix closed loop, 32 users and open loop, 6 req/s"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want …%s", err, want)
	}
}

func TestDefaultPair(t *testing.T) {
	pair := func(drop string) string {
		cells := slices.DeleteFunc(readTestCells(t), func(c Cell) bool { return c.Policy == drop })
		g, err := NewGrid(cells, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, b, err := DefaultPair(g)
		if err != nil {
			t.Fatal(err)
		}
		return a + " against " + b
	}
	if got, want := pair(""), "prefix_affinity:spill_factor=1.5 against session_affinity"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := pair("session_affinity"), "prefix_affinity:spill_factor=1.5 against prefix_affinity:spill_factor=0"; got != want {
		t.Errorf("without session_affinity: got %s, want %s", got, want)
	}
}

func TestDoubt(t *testing.T) {
	g, err := NewGrid(readTestCells(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := g.at(1, 1.4, "session_affinity")
	if want := "1.2% of a repetition's requests failed or were dropped"; p.Doubt != want {
		t.Errorf("got %q, want %q", p.Doubt, want)
	}
	if p, _ := g.at(1, 0, "session_affinity"); p.Doubt != "" {
		t.Errorf("got %q, want no doubt", p.Doubt)
	}
}

func TestRatioScale(t *testing.T) {
	s := newRatioScale([]Number{0.9, -0.6, unknown(), -1})
	if s.limit != 3 {
		t.Errorf("limit: got %v, want 3, which holds 1/2.5", s.limit)
	}
	if a, b := s.position(1), s.position(-0.5); math.Abs(a+b) > 1e-12 || a <= 0 {
		t.Errorf("twice and half: got %v and %v, want opposites", a, b)
	}
	if got := s.position(-1); got != -1 {
		t.Errorf("nothing left: got %v, want -1", got)
	}
}

func TestFormat(t *testing.T) {
	for got, want := range map[string]string{
		percent(0.662):     "+66%",
		percent(-0.0681):   "-6.8%",
		percent(0.0996):    "+10%",
		percent(0.0999):    "+10%",
		percent(-0.0001):   "0.0%",
		percent(unknown()): "n/a",
		signed(-0.001, 2):  "0.00",
		fixed(2.5, 0):      "3",
		exact(0.25):        "0.25",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Redundant prefill is measured from the policy that computed least at the same
// point, and only from it.
func TestRedundant(t *testing.T) {
	at := func(skew, recomputed float64) Point {
		return Point{WorkingSet: 1, Skew: skew, Recomputed: Spread{Median: Number(recomputed)}}
	}
	g := Grid{Points: []Point{at(0, math.NaN()), at(0, 700), at(0, 500), at(1, 10)}}
	var got []float64
	for _, p := range g.Points {
		got = append(got, g.Redundant(p))
	}
	if !math.IsNaN(got[0]) || got[1] != 200 || got[2] != 0 || got[3] != 0 {
		t.Errorf("got %v, want NaN, 200, 0, 0", got)
	}
}
