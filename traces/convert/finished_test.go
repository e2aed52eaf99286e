package convert

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kvfleet/traces"
)

// fixture is a file of testdata, whose rows are made up.
func fixture(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// measured are real files that lie beside the repository.
func measured(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob("../../../shared/data/" + pattern)
	if err != nil || len(paths) == 0 {
		t.Skipf("no measurements at shared/data/%s", pattern)
	}
	return paths
}

// wantRow compares all of a row with one that states only what set does; block
// ids are left out.
func wantRow(t *testing.T, got traces.Row, set func(*traces.Row)) {
	t.Helper()
	want := traces.NewRow()
	set(&want)
	got.Blocks = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFinishedFormatsAreRecognised(t *testing.T) {
	for name, want := range map[string]Format{"blis.csv": Blis, "llmservingsim.jsonl": LLMServingSim, "vllm-cpu.csv": VLLMCPU} {
		if !want.finished() || !strings.HasPrefix(name, want.String()+".") {
			t.Errorf("%s: format %s, finished %v", name, want, want.finished())
		}
		rows, tr := all(t, file(t, "x", fixture(t, name)), Options{})
		if tr.Format != want || len(rows) < 3 {
			t.Errorf("%s: got %d rows in %s form, want %s", name, len(rows), tr.Format, want)
		}
		if report := traces.Check(slicesSource(rows)); report.Faults != 0 {
			t.Errorf("%s: check: %v", name, report.Findings)
		}
		if len(tr.Meta.Evidence) == 0 || !strings.Contains(tr.Meta.Evidence[0], "finished rows") {
			t.Errorf("%s: got evidence %q, want it to say that the rows have run", name, tr.Meta.Evidence)
		}
		for _, o := range []Options{{RateScale: 2}, {SpreadBin: time.Second}} {
			if _, err := Open(tr.Path, o); err == nil || !strings.Contains(err.Error(), "are finished") {
				t.Errorf("%s, %+v: got %v, want it refused", name, o, err)
			}
		}
	}
	if _, err := Open("testdata/llmservingsim.jsonl", Options{Sessions: []string{"s"}}); err == nil || !strings.Contains(err.Error(), "no sessions") {
		t.Errorf("got %v, want no sessions to choose from", err)
	}
}

// The files as measured contradict themselves nowhere, and nothing of them is
// left out.
func TestMeasuredFilesAreWhole(t *testing.T) {
	for _, c := range []struct {
		pattern string
		format  Format
	}{
		{"residency-vllm/*/trace.csv", Blis}, {"llmservingsim-vllm/*/requests.jsonl", LLMServingSim}, {"vllm-cpu/*.csv", VLLMCPU},
	} {
		t.Run(c.format.String(), func(t *testing.T) {
			for _, path := range measured(t, c.pattern) {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				lines := strings.Count(strings.TrimSpace(string(text)), "\n") + 1
				if c.format != LLMServingSim {
					lines-- // the header
				}
				rows, tr := all(t, path, Options{})
				if tr.Format != c.format || len(rows) != lines {
					t.Errorf("%s: got %d rows in %s form, want %d", path, len(rows), tr.Format, lines)
				}
				if report := traces.Check(slicesSource(rows)); report.Faults != 0 {
					t.Errorf("%s: check: %v", path, report.Findings)
				}
				if r := tr.Report(); r.Shifted != 0 || r.Skipped != 0 || r.BeforeStart != 0 {
					t.Errorf("%s: got %+v, want nothing shifted or skipped", path, r)
				}
			}
		})
	}
}
