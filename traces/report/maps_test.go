package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from the golden file; run with -update and look at the difference\n%s", name, got)
	}
}

func testOptions() MapOptions {
	return MapOptions{Fleet: "rtx3090x5", Defaults: Defaults{"prefix_affinity": "spill_factor=1.5,ttl=10m"}}
}

// mapFiles writes the maps into a new folder and returns what is in it.
func mapFiles(t *testing.T, cells []Cell, opts MapOptions) (files map[string]string, text string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	paths, text, err := WriteMaps(dir, cells, opts)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(p)] = string(data)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(paths) {
		t.Errorf("got %d files, want only the %d named", len(entries), len(paths))
	}
	return files, text
}

func TestMapsAreGolden(t *testing.T) {
	files, text := mapFiles(t, readTestCells(t), testOptions())
	if len(files) != 6 {
		t.Fatalf("got %d files, want 3 SVG and 3 JSON", len(files))
	}
	for name, data := range files {
		checkGolden(t, name, []byte(data))
	}
	checkGolden(t, "maps.txt", []byte(text))
}

func TestMapsDoNotDependOnRowOrder(t *testing.T) {
	cells := readTestCells(t)
	want, wantText := mapFiles(t, cells, testOptions())
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		rng.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
		got, text := mapFiles(t, cells, testOptions())
		if text != wantText {
			t.Error("the table changed with the order of the rows")
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%s changed with the order of the rows", name)
			}
		}
	}
}

func TestFiguresAreWellFormed(t *testing.T) {
	files, _ := mapFiles(t, readTestCells(t), testOptions())
	for name, data := range files {
		if strings.HasSuffix(name, ".json") {
			if !json.Valid([]byte(data)) {
				t.Errorf("%s is not JSON", name)
			}
			continue
		}
		d := xml.NewDecoder(strings.NewReader(data))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
		if strings.Contains(data, "NaN") || strings.Contains(data, "Inf") {
			t.Errorf("%s holds a coordinate that is no number", name)
		}
	}
}

func TestSeveralLoadsGetTheirOwnFiles(t *testing.T) {
	cells := readTestCells(t)
	more := slices.Clone(cells)
	for i := range more {
		more[i].Driver, more[i].Load = "open", 6.5
	}
	files, text := mapFiles(t, append(cells, more...), testOptions())
	for _, name := range []string{"pressure_map-closed-32.svg", "pressure_map-open-6.5.json", "goodput_by_working_set-open-6.5.svg"} {
		if files[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if len(files) != 12 || !strings.Contains(text, "open loop, 6.5 req/s") {
		t.Errorf("got %d files and\n%s", len(files), text)
	}
}

func TestChosenPair(t *testing.T) {
	opts := testOptions()
	opts.Policy, opts.Baseline = "prefix_affinity:spill_factor=0", "prefix_affinity"
	files, _ := mapFiles(t, readTestCells(t), opts)
	var m PressureMap
	if err := json.Unmarshal([]byte(files["pressure_map.json"]), &m); err != nil {
		t.Fatal(err)
	}
	if m.Policy != "prefix_affinity:spill_factor=0" || m.Baseline != "prefix_affinity" {
		t.Errorf("got %s against %s", m.Policy, m.Baseline)
	}
	if got := m.Points[0].Ratio; got != -0.4 {
		t.Errorf("9 against 15: got %v, want -0.4", got)
	}
}

func TestMapsRefuse(t *testing.T) {
	cells := readTestCells(t)
	alone := slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return c.Policy != "round_robin" })
	for _, c := range []struct {
		cells []Cell
		opts  MapOptions
		want  string
	}{
		{nil, MapOptions{}, "no cells to draw"},
		{alone, MapOptions{Policy: "round_robin", Baseline: "least"}, "closed loop, 32 users: policy least is not in the sweep"},
		{cells, MapOptions{Policy: "round_robin"}, "needs both a policy and a baseline"},
		{cells, MapOptions{Policy: "round_robin", Baseline: "round_robin"}, "both are round_robin"},
		{cells, MapOptions{Policy: "nobody", Baseline: "prefix_affinity"}, "policy prefix_affinity is ambiguous"},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		_, _, err := WriteMaps(dir, c.cells, c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want …%s", err, c.want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a refused map left a folder", c.want)
		}
	}
}

// One repetition, one point, a goodput of zero: still a figure, no NaN in it.
func TestPoorestSweep(t *testing.T) {
	cells := []Cell{
		{Driver: "open", Load: 1, WorkingSet: 1, Policy: "a", Requests: 5, Success: 5},
		{Driver: "open", Load: 1, WorkingSet: 1, Policy: "b", Requests: 5, Success: 5, GoodputRPS: 2},
	}
	files, text := mapFiles(t, cells, MapOptions{})
	for name, data := range files {
		if strings.Contains(data, "NaN") {
			t.Errorf("%s holds NaN", name)
		}
	}
	if !strings.Contains(text, "n/a") || !strings.Contains(files["pressure_map.svg"], "a has none") {
		t.Errorf("a ratio to nothing should be n/a:\n%s", text)
	}
}
