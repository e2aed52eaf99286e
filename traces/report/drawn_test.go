package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// drawnCells is the cells under so many draws, as change leaves them.
func drawnCells(cells []Cell, draws int, change func(*Sample)) []Sample {
	var samples []Sample
	for k := range draws {
		for _, c := range cells {
			s := Sample{k + 1, c}
			change(&s)
			samples = append(samples, s)
		}
	}
	return samples
}

// regimeOf is the regime map that a folder's files hold.
func regimeOf(t *testing.T, files map[string]string) RegimeMap {
	t.Helper()
	var m RegimeMap
	if err := json.Unmarshal([]byte(files["regime_map.json"]), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Policy b takes the first point from a in a third of the draws and ties in one; at
// the second point it does so in 1 of 20, which is sure enough.
func TestPointsThatDependOnTheCalibrationAreMarked(t *testing.T) {
	cells := plainCells([]float64{1, 3}, []float64{0}, 2, 3)
	samples := drawnCells(cells, 20, func(s *Sample) {
		switch {
		case s.Policy != "b":
		case s.WorkingSet == 1 && s.Draw <= 7 || s.WorkingSet == 3 && s.Draw == 20:
			s.GoodputRPS += 10
		case s.WorkingSet == 1 && s.Draw == 8:
			s.GoodputRPS += 5 // as a
		}
	})
	files, text := mapFiles(t, cells, MapOptions{Samples: samples})
	m := regimeOf(t, files)
	d, sure := m.Points[0].Drawn, m.Points[1].Drawn
	if m.Draws != 20 || !d.Depends || d.Draws != 20 || d.Beaten != 0.35 || d.NoWinner != 0.05 ||
		!slices.Equal(d.Wins, []Share{{"a", 0.6}, {"b", 0.35}}) {
		t.Errorf("the first point: got %+v, want a 60%%, b 35%%, a tie", d)
	}
	if sure.Depends || sure.Beaten != 0.05 {
		t.Errorf("the second point: got %+v, want it sure", sure)
	}
	lineWith(t, text, "1 point of 2 depends on the calibration: its first policy is beaten under more than 5% of 20 draws\n")
	lineWith(t, text, "  working set 1, skew 0: a beaten in 35%; a wins 60%, b wins 35%, nobody 5%\n")
	svg := files["regime_map.svg"]
	if strings.Count(svg, "beaten in 35% of draws") != 1 || strings.Count(svg, "of draws<") != 1 || strings.Count(svg, "h16a6") != 1 ||
		!strings.Contains(svg, "depends on the calibration: beaten in over 5% of 20 draws") {
		t.Errorf("want one point marked, and why:\n%s", svg)
	}
	// The other figures are of the fleet alone, and so is the rest of this one.
	plain, plainText := mapFiles(t, cells, MapOptions{})
	for _, name := range []string{"pressure_map.svg", "pressure_map.json", "goodput_by_working_set.json"} {
		if files[name] != plain[name] {
			t.Errorf("%s differs with draws", name)
		}
	}
	if !strings.HasPrefix(text, plainText) {
		t.Error("the table differs with draws before it speaks of them")
	}
	slices.Reverse(samples)
	if again, _ := mapFiles(t, cells, MapOptions{Samples: samples}); again["regime_map.json"] != files["regime_map.json"] {
		t.Error("the map changed with the order of the samples")
	}
}

// Draws that are all like the fleet mark nothing, not even what is within spread.
func TestEqualDrawsMarkNothing(t *testing.T) {
	cells := readTestCells(t)
	for i := range cells {
		if cells[i].Policy == "round_robin" && cells[i].WorkingSet == 1 {
			cells[i].GoodputRPS = 30.5 // within the best one's spread
		}
	}
	opts := testOptions()
	opts.Samples = drawnCells(cells, 3, func(*Sample) {})
	files, text := mapFiles(t, cells, opts)
	lineWith(t, text, "0 points of 2 depend on the calibration: no first policy is beaten under more than 5% of 3 draws")
	if svg := files["regime_map.svg"]; !strings.Contains(svg, "no point depends on the calibration") || strings.Contains(svg, "h16a6") {
		t.Errorf("want nothing marked and that said:\n%s", svg)
	}
	tied := 0
	for _, r := range regimeOf(t, files).Points {
		if r.Incomplete() != (r.Drawn == nil) {
			t.Errorf("%+v: want exactly what is complete judged", r)
		}
		if r.Drawn != nil && r.Drawn.NoWinner == 1 {
			tied++
		}
	}
	if tied != 1 {
		t.Errorf("got %d points without a winner under every draw, want 1", tied)
	}
}

// A winner that all draws contradict depends on the calibration, however much
// they agree.
func TestDrawsThatAgreeAgainstTheFleet(t *testing.T) {
	cells := plainCells([]float64{1}, []float64{0}, 2, 1)
	samples := drawnCells(cells, 2, func(s *Sample) {
		if s.Policy == "b" {
			s.GoodputRPS += 10
		}
	})
	files, text := mapFiles(t, cells, MapOptions{Samples: samples})
	if d := regimeOf(t, files).Points[0].Drawn; !d.Depends || d.Beaten != 1 || d.Wins[0] != (Share{"b", 1}) {
		t.Errorf("got %+v, want it marked", d)
	}
	lineWith(t, text, "1 point of 1 depends", "with one repetition chance counts as well")
}

// Draws that are no result speak against nobody, and neither does another's win that
// the first policy is within the spread of.
func TestTiesAgreeWithTheFirst(t *testing.T) {
	cells := plainCells([]float64{1}, []float64{0}, 3, 3)
	samples := drawnCells(cells, 3, func(s *Sample) {
		switch {
		case s.Draw == 1 && s.Policy == "b":
			s.GoodputRPS += 5 // as a
		case s.Draw == 2 && s.Policy == "c":
			s.GoodputRPS += 10 // the best, and a far behind once reaches it
		case s.Draw == 2 && s.Policy == "a" && s.Repetition == 3:
			s.GoodputRPS += 5
		case s.Draw == 2 && s.Policy == "b":
			s.GoodputRPS += 5.5 // the runner-up
		}
	})
	files, _ := mapFiles(t, cells, MapOptions{Samples: samples})
	d := regimeOf(t, files).Points[0].Drawn
	if d.Depends || d.Beaten != 0 || len(d.Wins) != 2 || d.Wins[0].Policy != "a" || d.Wins[1].Policy != "c" || d.NoWinner != Number(0.333333) {
		t.Errorf("got %+v, want a and c to win once each and a never beaten", d)
	}
}

// A draw that an interrupted sweep did not finish is not judged where it lacks a
// policy; draws of another load are another map's.
func TestUnfinishedDraws(t *testing.T) {
	cells := plainCells([]float64{1, 3}, []float64{0}, 2, 3)
	samples := drawnCells(cells, 2, func(s *Sample) {
		if s.WorkingSet == 1 && s.Policy == "b" && s.Draw == 1 {
			s.GoodputRPS += 10
		}
	})
	samples = slices.DeleteFunc(samples, func(s Sample) bool { return s.Draw == 2 && (s.WorkingSet == 3 || s.Policy == "b") })
	other := samples[0]
	other.Load = 64
	files, text := mapFiles(t, cells, MapOptions{Samples: append(samples, other)})
	m := regimeOf(t, files)
	if a, b := m.Points[0].Drawn, m.Points[1].Drawn; m.Draws != 2 || a.Draws != 1 || b.Draws != 1 {
		t.Errorf("got %d draws, %+v, %+v", m.Draws, a, b)
	}
	lineWith(t, text, "working set 1, skew 0: a beaten in 100%; b wins 100% (of 1)")
}

func TestSamplesReadBack(t *testing.T) {
	samples := drawnCells(readTestCells(t), 11, func(*Sample) {})
	slices.Reverse(samples)
	var text, again bytes.Buffer
	err := WriteSamples(&text, samples)
	back, errRead := DecodeSamples(bytes.NewReader(text.Bytes()), "samples.csv")
	if err := errors.Join(err, errRead, WriteSamples(&again, back)); err != nil || again.String() != text.String() {
		t.Errorf("not the same bytes again (%v)", err)
	}
	if len(back) != len(samples) || back[0].Draw != 1 || back[len(back)-1].Draw != 11 {
		t.Errorf("got %d samples, from draw %d to %d", len(back), back[0].Draw, back[len(back)-1].Draw)
	}
	lines := strings.SplitAfter(text.String(), "\n")
	for _, c := range []struct{ text, want string }{
		{lines[0] + "0" + lines[1][1:], "row 1 (line 2), field draw: got \"0\", want the number of a draw, from 1 on"},
		{lines[0] + lines[1] + lines[1], "row 1 is the same cell"},
		{strings.TrimPrefix(lines[0], "draw,") + lines[1][2:], "missing draw"},
	} {
		if _, err := DecodeSamples(strings.NewReader(c.text), "samples.csv"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want …%s", err, c.want)
		}
	}
}
