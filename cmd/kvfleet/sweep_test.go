package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/sim"
	"kvfleet/traces/report"
)

// tiny is a sweep of eight cells.
func tiny(dir string, more ...string) []string {
	return append([]string{"sweep", "--out", dir, "--window", "20s", "--warmup", "5s", "--working-set", "0.25,1", "--skew", "1",
		"--users", "8", "--repetitions", "2", "--policy", "round_robin", "--policy", "prefix_affinity"}, more...)
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func record(t *testing.T, dir string) sweepRecord {
	t.Helper()
	r, found, err := readSweepRecord(filepath.Join(dir, sweepFile))
	if err != nil || !found {
		t.Fatalf("sweep.json of %s: found %v, %v", dir, found, err)
	}
	return r
}

func TestSweepIsTheSameWhateverTheWorkersAndResumes(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	succeed(t, tiny(one, "--workers", "1")...)
	succeed(t, tiny(two, "--workers", "2")...)
	cells := read(t, one, "cells.csv")
	if got := read(t, two, "cells.csv"); got != cells {
		t.Errorf("cells with 2 workers: got\n%s\nwant, as with 1,\n%s", got, cells)
	}
	first := record(t, one)
	if first.CellsSimulated != 8 || first.CellsTotal != 8 || first.CellsFinished != 8 || first.RequestsSimulated == 0 {
		t.Errorf("sweep.json: got %+v, want 8 cells simulated of 8 and some requests", first.timing)
	}
	_, stderr := succeed(t, tiny(one, "--workers", "1")...)
	if !strings.Contains(stderr, "nothing was left to simulate") {
		t.Errorf("the same sweep again: got %q, want it to say that nothing was left", stderr)
	}
	if got := record(t, one); got.timing != first.timing {
		t.Errorf("sweep.json after a run that simulated nothing: got %+v, want the first run's %+v", got.timing, first.timing)
	}
	if got := read(t, one, "cells.csv"); got != cells {
		t.Error("cells.csv changed although nothing was simulated")
	}
}

func TestSweepRefusesAnotherSweepsDirectory(t *testing.T) {
	dir := t.TempDir()
	succeed(t, tiny(dir)...)
	cells, about := read(t, dir, "cells.csv"), read(t, dir, sweepFile)
	_, stderr, status := kvfleet(t, tiny(dir, "--seed", "2")...)
	if status != 1 || !strings.Contains(stderr, "holds another sweep") {
		t.Errorf("another seed in the same directory: got exit status %d and %q, want 1 and a refusal", status, stderr)
	}
	if read(t, dir, "cells.csv") != cells || read(t, dir, sweepFile) != about {
		t.Error("a refused sweep changed the directory")
	}
}

func TestInterruptedSweepGoesOn(t *testing.T) {
	whole, broken := t.TempDir(), t.TempDir()
	succeed(t, tiny(whole, "--workers", "1")...)

	// The interruption comes once the first finished cell is on disk.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if info, err := os.Stat(filepath.Join(broken, "cells.part.csv")); err == nil && info.Size() > 0 {
				cancel()
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	var out, talk bytes.Buffer
	status := execute(ctx, tiny(broken, "--workers", "1"), &out, &talk)
	if status == 0 {
		t.Skip("the sweep was over before it could be interrupted")
	}
	if status != 1 || !strings.Contains(talk.String(), "the same command goes on from there") {
		t.Fatalf("interrupted: got exit status %d and %q, want 1 and how to go on", status, talk.String())
	}
	r := record(t, broken)
	if !r.Interrupted || r.CellsFinished == 0 || r.CellsFinished == r.CellsTotal {
		t.Errorf("sweep.json of an interrupted sweep: got %d of %d cells, interrupted %v", r.CellsFinished, r.CellsTotal, r.Interrupted)
	}
	succeed(t, tiny(broken, "--workers", "2")...)
	if got, want := read(t, broken, "cells.csv"), read(t, whole, "cells.csv"); got != want {
		t.Errorf("cells after going on: got\n%s\nwant\n%s", got, want)
	}
	again := record(t, broken)
	if again.CellsSimulated+r.CellsSimulated != 8 || len(again.Previous) != 1 || again.Previous[0] != r.timing {
		t.Errorf("sweep.json after going on: got %+v, want the other cells, and %+v as the run before", again, r.timing)
	}
}

func TestGridFileGivesTheSameAsFlags(t *testing.T) {
	flags, file, mixed := t.TempDir(), t.TempDir(), t.TempDir()
	succeed(t, tiny(flags)...)
	grid := write(t, "grid.yaml", `working_set: [0.25, 1]
skew: 1
users: [8]
repetitions: 2
window: 20s
warmup: 5s
policy: [round_robin, prefix_affinity]
`)
	succeed(t, "sweep", "--grid", grid, "--out", file)
	want := read(t, flags, "cells.csv")
	if got := read(t, file, "cells.csv"); got != want {
		t.Errorf("cells by grid file: got\n%s\nwant, as by flags,\n%s", got, want)
	}
	other := write(t, "grid.yaml", strings.ReplaceAll(read(t, grid), "users: [8]", "rate: [3]\nthink: 2s\narrivals: poisson"))
	succeed(t, "sweep", "--grid", other, "--users", "8", "--out", mixed)
	if got := read(t, mixed, "cells.csv"); got != want {
		t.Errorf("cells with --users over a grid file's rate: got\n%s\nwant\n%s", got, want)
	}
}

func TestOpenLoopSweepSaysSo(t *testing.T) {
	dir := t.TempDir()
	_, stderr := succeed(t, "sweep", "--out", dir, "--window", "30s", "--warmup", "5s", "--working-set", "1", "--skew", "0", "--rate", "2,4",
		"--repetitions", "1", "--policy", "round_robin", "--arrivals", "gamma", "--shape", "0.5")
	if !strings.Contains(stderr, "not a whole number of visits of 20s") {
		t.Errorf("a window of 30s: got %q, want a warning that visits are cut", stderr)
	}
	cells, err := report.ReadCells(filepath.Join(dir, "cells.csv"))
	if err != nil || len(cells) != 2 || cells[0].Driver != "open" || cells[0].Load != 2 || cells[1].Load != 4 {
		t.Errorf("cells: got %+v, %v, want two open-loop ones at 2 and 4 req/s", cells, err)
	}
	if a := record(t, dir).Axes; a.Arrivals != "gamma" || a.Shape != 0.5 || a.ThinkS != 5 || a.Users != nil {
		t.Errorf("sweep.json axes: got %+v, want gamma arrivals of shape 0.5, 5 s of think time, no users", a)
	}
}

func TestMapDrawsTheSameBytesAndValidateJudges(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	succeed(t, tiny(dir)...)
	table, _ := succeed(t, "map", dir)
	again, _ := succeed(t, "map", dir, "--out", other)
	if !strings.Contains(table, "round_robin") || table != again {
		t.Errorf("map: got\n%s\nthen\n%s\nwant the same table twice", table, again)
	}
	for _, name := range []string{"pressure_map.svg", "pressure_map.json", "regime_map.svg", "goodput_by_working_set.json"} {
		if read(t, dir, name) != read(t, other, name) {
			t.Errorf("%s: differs from run to run", name)
		}
	}
	measured := write(t, "measured.csv", `working_set,skew,policy,repetitions,goodput_rps_median,goodput_rps_min,goodput_rps_max,ttft_p50_ms,ttft_p99_ms,prefix_cache_hit_rate,requests_total,recomputed_prefill_tokens_per_request
1,1,round_robin,3,1.000,0.900,1.050,500,3000,0.5,1000,1000
1,1,prefix_affinity,3,2.000,1.900,2.050,500,3000,0.5,1000,1000
`)
	_, stderr, status := kvfleet(t, "map", dir, "--policy", "nope")
	if status != 2 || !strings.Contains(stderr, "the sweep has prefix_affinity, round_robin") {
		t.Errorf("map --policy nope: got exit status %d and %q, want 2 and the policies of the sweep", status, stderr)
	}
	_, stderr, status = kvfleet(t, "map", dir, "--policy", "nope", "--baseline", "round_robin")
	if status != 1 || !strings.Contains(stderr, "policy nope is not in the sweep, which has prefix_affinity, round_robin") {
		t.Errorf("map --policy nope --baseline: got exit status %d and %q, want 1 and the policies of the sweep", status, stderr)
	}
	table, stderr = succeed(t, "validate", dir, "--measured", measured)
	const differs = "warning: the sweep has a window of 20s and a warm-up of 5s, the measured cells have 5m0s and 50s"
	if !strings.Contains(stderr, differs) || strings.Contains(stderr, "is of fleet") {
		t.Errorf("validate: got %q on stderr, want %q and nothing about the fleet", stderr, differs)
	}
	if !strings.Contains(table, "2 cells compared") {
		t.Errorf("validate: got\n%s\nwant 2 cells compared", table)
	}
	csv := filepath.Join(other, "v.csv")
	stdout, stderr, status := kvfleet(t, "validate", dir, "--measured", measured, "--json", "--csv", csv, "--max-median-error", "0.01", "--max-ttft-p50", "0.0001")
	if status != 1 || !strings.Contains(stderr, "median goodput error") || !strings.Contains(stderr, "median TTFT p50 error") || !strings.Contains(stderr, "2 limits broken") {
		t.Errorf("validate with limits: got exit status %d and %q, want 1 and both broken limits", status, stderr)
	}
	if !json.Valid([]byte(stdout)) {
		t.Errorf("validate --json: got %q, want JSON", stdout)
	}
	if lines := strings.Count(read(t, csv), "\n"); lines != 3 {
		t.Errorf("validate --csv: got %d lines, want a header and 2 cells", lines)
	}
}

func TestIncomparableSweepsAreNamed(t *testing.T) {
	r := sweepRecord{WindowS: 300, WarmupS: 50}
	r.Fleet.Name = measuredFleet
	r.Axes.Users = []int{measuredUsers}
	measured := []report.MeasuredCell{{}}
	if got := incomparable(&r, measured); len(got) > 0 {
		t.Errorf("like the measured cells: got %q, want nothing", got)
	}
	r.WarmupS, r.Fleet.Name = 40, "rtx3090x6"
	r.Axes.Users, r.Axes.Rates = nil, []float64{2}
	got := strings.Join(incomparable(&r, measured), "\n")
	for _, want := range []string{"closed loop, 32 users", "open loop, 2 ", "a warm-up of 40s", "5m0s and 50s", "fleet rtx3090x6", "rtx3090x5"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if got := incomparable(&r, []report.MeasuredCell{{Driver: sim.DriverOpen, Load: 2}}); strings.Contains(strings.Join(got, "\n"), "loop") {
		t.Errorf("a measured file that says its load: got %q", got)
	}
	if got := incomparable(&sweepRecord{}, measured); len(got) > 0 {
		t.Errorf("a sweep that says nothing: got %q, want nothing", got)
	}
	r.CellsTotal, r.CellsFinished = 9, 7
	if got := r.unfinished(); len(got) != 1 || !strings.Contains(got[0], "7 of its 9 cells") {
		t.Errorf("got %q, want how much is missing", got)
	}
	r.CellsFinished = 9
	if got := r.unfinished(); got != nil {
		t.Errorf("finished: got %q", got)
	}
}

// A fleet file whose cache was edited and whose belief bound was not is told of,
// unless the choice brings its own bound or has none.
func TestStaleBeliefIsTold(t *testing.T) {
	f, err := loadFleet(defaultFleet)
	if err != nil {
		t.Fatal(err)
	}
	told := func(text string) bool {
		c, err := policies.ParseChoice(text)
		if err != nil {
			t.Fatal(err)
		}
		return f.staleBelief(c) != ""
	}
	if told("prefix_affinity") {
		t.Error("the published fleet's bound goes with its cache")
	}
	f.Engine.Blocks *= 4
	if !told("prefix_affinity") || told("prefix_affinity:belief_blocks=65244") || told("round_robin") {
		t.Error("four times the cache: want it told of the fleet's own bound alone")
	}
}
