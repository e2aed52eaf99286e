package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvfleet/traces/report"
)

// drawnFleet is the default fleet as a calibration might leave it: by two of four
// draws, a policy that waits for tokens waits longer than the service level allows.
func drawnFleet(t *testing.T, values string) string {
	t.Helper()
	f, err := loadFleet(defaultFleet)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(f.text), "\ndraws:\n") // its own go
	if values != "" {
		text += "\ndraws:\n  paths: [router.tokenize_ms]\n  values: " + values
	}
	return write(t, "drawn.yaml", text+"\n")
}

// sampled is a sweep of two policies at two points, and as many draws.
func sampled(fleet, dir string, more ...string) []string {
	return append([]string{"sweep", "--out", dir, "--fleet", fleet, "--window", "20s", "--warmup", "5s", "--working-set", "1", "--skew", "0,1",
		"--users", "8", "--repetitions", "2", "--policy", "round_robin", "--policy", "exact_residency"}, more...)
}

func TestSweepUnderDrawsMarksWhatDependsOnThem(t *testing.T) {
	fleet := drawnFleet(t, "[[26], [3000], [26], [3000]]")
	one, two, plain := t.TempDir(), t.TempDir(), t.TempDir()
	_, stderr := succeed(t, sampled(fleet, one, "--fleet-samples", "4", "--workers", "1")...)
	if !strings.Contains(stderr, "32 cells under 4 draws of the fleet's constants in ") {
		t.Errorf("got %q, want how many cells under draws", stderr)
	}
	succeed(t, sampled(fleet, two, "--fleet-samples", "4", "--workers", "2")...)
	succeed(t, sampled(fleet, plain)...)
	for _, name := range []string{"samples.csv", "cells.csv", "plan.json"} {
		if read(t, one, name) != read(t, two, name) {
			t.Errorf("%s depends on the workers", name)
		}
	}
	if read(t, one, "cells.csv") != read(t, plain, "cells.csv") {
		t.Error("the fleet's own cells depend on --fleet-samples")
	}
	if r := record(t, one); r.FleetSamples != 4 || r.CellsTotal != 8 || r.CellsFinished != 8 || r.SamplesTotal != 32 || r.SamplesFinished != 32 || r.CellsSimulated != 40 {
		t.Errorf("sweep.json: got %+v", r)
	}
	table, _ := succeed(t, "map", one)
	if !strings.Contains(table, "2 points of 2 depend on the calibration: ") || !strings.Contains(table, "working set 1, skew 0: exact_residency beaten in 50%; exact_residency wins 50%, round_robin wins 50%\n") {
		t.Errorf("map: got\n%s\nwant both points told of", table)
	}
	var m report.RegimeMap
	if err := json.Unmarshal([]byte(read(t, one, "regime_map.json")), &m); err != nil || m.Draws != 4 || !m.Points[0].Drawn.Depends {
		t.Errorf("regime_map.json: got %+v, %v", m, err)
	}
	table, _ = succeed(t, "map", plain)
	if strings.Contains(table, "calibration") || strings.Contains(read(t, plain, "regime_map.svg"), "calibration") || strings.Contains(read(t, plain, "sweep.json"), "samples") ||
		strings.Contains(read(t, plain, "plan.json"), "samples") {
		t.Error("a sweep without draws speaks of them")
	}
	_, stderr, status := kvfleet(t, sampled(fleet, one, "--fleet-samples", "3")...)
	if status != 1 || !strings.Contains(stderr, "in fleet_samples: the directory holds another sweep") {
		t.Errorf("fewer draws in the same directory: got exit status %d and %q", status, stderr)
	}
}

func TestSweepUnderEqualDrawsMarksNothing(t *testing.T) {
	f, err := loadFleet(defaultFleet)
	if err != nil {
		t.Fatal(err)
	}
	own, err := json.Marshal([]float64{f.Router.TokenizeMS})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	succeed(t, sampled(drawnFleet(t, "["+string(own)+", "+string(own)+"]"), dir, "--fleet-samples", "2")...)
	_, cells, _ := strings.Cut(read(t, dir, "cells.csv"), "\n")
	want := ""
	for _, draw := range []string{"1,", "2,"} {
		for line := range strings.Lines(cells) {
			want += draw + line
		}
	}
	if _, got, _ := strings.Cut(read(t, dir, "samples.csv"), "\n"); got != want {
		t.Errorf("samples: got\n%s\nwant the cells twice\n%s", got, want)
	}
	if table, _ := succeed(t, "map", dir); !strings.Contains(table, "0 points of 2 depend on the calibration: ") {
		t.Errorf("map: got\n%s\nwant no point told of", table)
	}
	// Cells under draws that are missing are told of.
	if err := os.Remove(filepath.Join(dir, "samples.csv")); err != nil {
		t.Fatal(err)
	}
	r := record(t, dir)
	r.SamplesFinished = 0
	if err := r.write(filepath.Join(dir, sweepFile)); err != nil {
		t.Fatal(err)
	}
	if table, stderr := succeed(t, "map", dir); strings.Contains(table, "calibration") || !strings.Contains(stderr, "0 of the 16 cells under draws") {
		t.Errorf("map without samples.csv: got %q and\n%s", stderr, table)
	}
}

func TestFleetWithoutDrawsIsRefused(t *testing.T) {
	_, stderr, status := kvfleet(t, sampled(drawnFleet(t, ""), t.TempDir(), "--fleet-samples", "32")...)
	if want := "--fleet-samples: fleet rtx3090x5 has 0 draws, want 32: kvfleet calibrate writes them"; status != 2 || !strings.Contains(stderr, want) {
		t.Errorf("got exit status %d and %q, want 2 and %q", status, stderr, want)
	}
}
