package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvfleet/traces"
)

func stepsOf(t *testing.T) (path string, n int) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "steps.arrows")
	succeed(t, "run", "--window", "5s", "--warmup", "0s", "--users", "8", "--steps", path)
	r, err := traces.OpenSteps(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return path, n
}

func TestStepLogIsLookedAtAndExported(t *testing.T) {
	path, n := stepsOf(t)
	stdout, _ := succeed(t, "trace", "info", path)
	for _, want := range []string{"step log", grouped(int64(n)), "replica-4", "DECODED TOKENS", "fleet"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("info: got\n%s\nwant %q in it", stdout, want)
		}
	}
	stdout, _ = succeed(t, "trace", "head", path, "-n", "2")
	var first map[string]any
	if err := json.Unmarshal([]byte(strings.SplitN(stdout, "\n", 2)[0]), &first); err != nil || len(first) != len(traces.StepColumns()) {
		t.Errorf("head: got %q, %v, want an object of all columns", stdout, err)
	}
	if lines := strings.Count(stdout, "\n"); lines != 2 {
		t.Errorf("head -n 2: got %d lines, want 2", lines)
	}
	file := filepath.Join(t.TempDir(), "steps.csv")
	_, stderr := succeed(t, "trace", "export", path, "--csv", "--out", file)
	records, err := csv.NewReader(strings.NewReader(read(t, file))).ReadAll()
	if err != nil || len(records) != n+1 || records[0][0] != "start" || !strings.Contains(stderr, grouped(int64(n))+" rows") {
		t.Errorf("export --csv: got %d records, %v and %q, want a header and %d steps", len(records), err, stderr, n)
	}
	stdout, _ = succeed(t, "trace", "export", path, "--jsonl")
	if lines := strings.Count(stdout, "\n"); lines != n {
		t.Errorf("export --jsonl: got %d lines, want %d", lines, n)
	}
}

// A step log that was cut short gives its whole batches, and says where it ends.
func TestTruncatedStepLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "steps.arrows")
	w, err := traces.CreateSteps(path, traces.Meta{}, traces.Options{BatchRows: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 70 {
		if err := w.Write(&traces.StepRow{Start: int64(i), Duration: 1, Replica: `a"b`, Preemptions: traces.None}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	shorten(t, path)
	for _, form := range []string{"--csv", "--jsonl"} {
		stdout, stderr, status := kvfleet(t, "trace", "export", path, form)
		if status != 1 || !strings.Contains(stderr, path) || !strings.Contains(stderr, "truncated after row") || strings.Count(stdout, "\n") < 10 {
			t.Errorf("export %s: got exit status %d, %d lines and %q, want 1, whole batches and where it was cut", form, status, strings.Count(stdout, "\n"), stderr)
		}
		if strings.Contains(stdout, "-9223372036854775808") {
			t.Errorf("export %s: what is not known was written as a number", form)
		}
	}
}

func TestStepLogIsRefusedWhereRowsAreWanted(t *testing.T) {
	path, _ := stepsOf(t)
	for _, args := range [][]string{
		{"trace", "check", path}, {"trace", "convert", path, "--out", path + "2.arrows"}, {"run", "--trace", path},
	} {
		if _, stderr, status := kvfleet(t, args...); status != 1 || !strings.Contains(stderr, "is a step log") {
			t.Errorf("%v: got exit status %d and %q, want 1 and that it is a step log", args, status, stderr)
		}
	}
	if _, stderr, status := kvfleet(t, "trace", "export", path, "--parquet"); status != 1 || !strings.Contains(stderr, "CSV or JSON lines") {
		t.Errorf("export --parquet: got exit status %d and %q, want 1 and what there is instead", status, stderr)
	}
}

func TestStepColumnsAreDocumented(t *testing.T) {
	help, _ := succeed(t, "trace", "export", "--help")
	for _, c := range traces.StepColumns() {
		if !strings.Contains(help, "\n  "+c.Name+" ") {
			t.Errorf("trace export --help: column %s is not documented", c.Name)
		}
	}
}

// A full disk under standard output or a file must not pass for a whole export.
func TestStepsExportTellsOfAFullDisk(t *testing.T) {
	steps := func(yield func(traces.StepRow, error) bool) {
		for yield(traces.StepRow{Replica: "a"}, nil) {
		}
	}
	if _, err := stepsCSV(steps, full{}); err == nil {
		t.Error("CSV: a full disk went unnoticed")
	}
	if _, err := stepsJSONL(steps, full{}); err == nil {
		t.Error("JSON lines: a full disk went unnoticed")
	}
	var b bytes.Buffer
	if n, err := stepsJSONL(first(steps, 1), &b); n != 1 || err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("got %d, %v, %q, want one JSON object", n, err, b.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }
