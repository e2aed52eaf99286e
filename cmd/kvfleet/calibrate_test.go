package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvfleet/sim"
)

// captured simulates a short run and keeps its rows: a trace as any other.
func captured(t *testing.T, fleet string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "captured.arrows")
	succeed(t, "run", "--fleet", fleet, "--policy", "least_outstanding", "--working-set", "1", "--rate", "4", "--window", "60s", "--warmup", "0s", "--out", path)
	return path
}

// A calibration writes a fleet file that validate, fleets and sweep take, a report,
// and never over what is there.
func TestCalibrateAndValidate(t *testing.T) {
	if testing.Short() {
		t.Skip("a whole calibration, slow under the race detector; calibrate/fit holds what is concurrent of it")
	}
	trace := captured(t, "rtx3090x5")
	dir := t.TempDir()
	out, reports := filepath.Join(dir, "fleet.yaml"), filepath.Join(dir, "report")
	table, stderr := succeed(t, "calibrate", "--base", "rtx3090x5", "--trace", trace, "--out", out, "--report", reports, "--name", "mine", "--draws", "4", "--folds", "2")
	for _, want := range []string{"numbers measured", "step.dense_token_ms", "fitted: captured.arrows", "held out: captured.arrows, 2 parts of its time"} {
		if !strings.Contains(table, want) {
			t.Errorf("got\n%s\nwant %q in it", table, want)
		}
	}
	if !strings.Contains(stderr, "wrote "+out) || !strings.Contains(stderr, "report.html") {
		t.Errorf("got %q, want the files named", stderr)
	}
	f, err := sim.LoadFleet(out)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "mine" || f.Draws == nil || len(f.Draws.Values) != 4 {
		t.Errorf("got fleet %s with draws %v, want mine with 4", f.Name, f.Draws)
	}
	if _, err := os.Stat(filepath.Join(reports, "report.html")); err != nil {
		t.Error(err)
	}
	if _, stderr, status := kvfleet(t, "calibrate", "--base", "rtx3090x5", "--trace", trace, "--out", out); status != 2 || !strings.Contains(stderr, "--force") {
		t.Errorf("over an existing file: got status %d and %q", status, stderr)
	}

	lines := filepath.Join(dir, "requests.csv")
	table, _ = succeed(t, "validate", "--fleet", out, "--trace", trace, "--out", lines, "--max-ttft-mape", "0.2", "--max-e2e-mape", "0.1", "--min-cached-equal", "0.9")
	if !strings.Contains(table, "TTFT") || !strings.Contains(table, "hit rate: measured") {
		t.Errorf("got\n%s\nwant the table", table)
	}
	file, err := os.Open(lines)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(records[0], ","), "request_id,sent_ms,ttft_ms,e2e_ms,simulated_ttft_ms,simulated_e2e_ms,output_tokens,cached_tokens,simulated_cached_tokens"; got != want {
		t.Errorf("got columns %s, want %s", got, want)
	}
	if len(records) < 200 {
		t.Errorf("got %d lines, want one a request", len(records))
	}
	_, stderr, status := kvfleet(t, "validate", "--fleet", "h100x1", "--trace", trace, "--max-ttft-mape", "0.0001")
	if status != 1 || !strings.Contains(stderr, "TTFT MAPE") && !strings.Contains(stderr, "does not have") {
		t.Errorf("a broken limit: got status %d and %q", status, stderr)
	}
}

// Every mistake of a command line is told at once.
func TestCalibrateMistakes(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.csv")
	for _, c := range []struct {
		args   string
		status int
		want   []string
	}{
		{"calibrate", 2, []string{"--base: missing", "--out: missing", "want at least one of"}},
		{"calibrate --base nothing --out x.yaml --steps " + missing, 2, []string{"--base: fleet \"nothing\""}},
		{"calibrate --base h100x1 --out x.yaml --steps " + missing + " --hold " + missing, 2, []string{"--hold: means nothing without --trace"}},
		{"calibrate --base h100x1 --out x.yaml --gpus 1 --steps " + missing, 2, []string{"--gpus: means nothing without --thermal"}},
		{"calibrate --base rtx3090x5 --out x.yaml --gpus 1,2 --thermal " + missing, 2, []string{"--gpus: got 2 numbers, the base has 5 cards"}},
		{"calibrate --base h100x1 --out x.yaml --trace " + missing, 1, []string{"none.csv"}},
		{"calibrate --base h100x1 --out " + missing + "/x.yaml --steps " + missing, 2, []string{"is no directory"}},
		{"calibrate --base h100x1 --out x.yaml --settings " + missing, 1, []string{"none.csv"}},
		{"validate --trace " + missing + " --measured x.csv", 2, []string{"--measured: means nothing with --trace"}},
		{"validate out --trace " + missing, 2, []string{"out: means nothing with --trace"}},
		{"validate out --after 3s", 2, []string{"--after: means nothing without --trace"}},
		{"validate", 2, []string{"want a sweep's directory, or --trace"}},
		{"validate --trace " + missing, 1, []string{"none.csv"}},
		{"validate --fleet nothing --trace " + missing + " --policy nothing", 2, []string{"--fleet", "--policy"}},
	} {
		_, stderr, status := kvfleet(t, strings.Fields(c.args)...)
		if status != c.status {
			t.Errorf("%s: got status %d and %q, want %d", c.args, status, stderr, c.status)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: got %q, want %q in it", c.args, stderr, want)
			}
		}
	}
	if _, err := os.Stat("x.yaml"); err == nil {
		t.Error("a mistake wrote x.yaml")
	}
}
