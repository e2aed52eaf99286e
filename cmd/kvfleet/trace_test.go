package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"kvfleet/traces"
)

func rowsOf(t *testing.T, path string) []traces.Row {
	t.Helper()
	r, err := traces.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var rows []traces.Row
	for row, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// What generate writes is what an open-loop run sends.
func TestGenerateIsWhatAnOpenLoopRunSends(t *testing.T) {
	dir := t.TempDir()
	planned, run := filepath.Join(dir, "plan.arrows"), filepath.Join(dir, "run.arrows")
	for _, arrivals := range [][]string{{"--think", "3s"}, {"--arrivals", "poisson"}, {"--arrivals", "gamma", "--shape", "0.5", "--seed", "7"}} {
		common := append([]string{"--rate", "4", "--window", "40s", "--working-set", "0.5", "--skew", "1"}, arrivals...)
		succeed(t, append([]string{"trace", "generate", "--out", planned}, common...)...)
		succeed(t, append([]string{"run", "--out", run, "--warmup", "0s"}, common...)...)
		want := rowsOf(t, run)
		sort.SliceStable(want, func(i, j int) bool { return want[i].ScheduledAt < want[j].ScheduledAt })
		got := rowsOf(t, planned)
		if len(got) != len(want) || len(got) == 0 {
			t.Fatalf("%v: got %d rows planned, want the %d sent", arrivals, len(got), len(want))
		}
		early := false
		text := func(r *traces.Row, answer int64) string {
			return fmt.Sprint(r.ScheduledAt, r.Session, r.Turn, r.VirtualUser, r.Epoch, r.PromptBytes, r.PromptTokens, answer, r.SystemPrompt, r.Branch, len(r.Blocks))
		}
		for i := range got {
			early = early || want[i].OutputTokens < want[i].MaxTokens
			if got, want := text(&got[i], got[i].MaxTokens), text(&want[i], want[i].OutputTokens); got != want {
				t.Fatalf("%v: row %d: got %s, want %s", arrivals, i+1, got, want)
			}
		}
		if !early {
			t.Errorf("%v: no answer stopped early, so the lengths show nothing", arrivals)
		}
		succeed(t, "trace", "check", planned)
		r := runAsJSON(t, "--trace", planned)
		if n := int(r.Summary["success"].(float64)); n != len(got) {
			t.Errorf("%v: replay: got %d answers, want %d", arrivals, n, len(got))
		}
	}
}

func TestConvertInfoHeadExport(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "m.arrows")
	_, stderr := succeed(t, "trace", "convert", sample(t, "mooncake_arxiv_fragment_56rows.jsonl"), "--out", out, "--rate-scale", "2")
	if !strings.Contains(stderr, "56 rows of mooncake") {
		t.Errorf("convert: got %q, want 56 rows of mooncake", stderr)
	}
	stdout, _ := succeed(t, "trace", "info", out)
	for _, want := range []string{"56 pending", "rate_scale=2", "no sessions in the source"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("info: got\n%s\nwant %q in it", stdout, want)
		}
	}
	stdout, _ = succeed(t, "trace", "head", out, "-n", "3")
	if n := strings.Count(stdout, "\n"); n != 3 || !strings.HasPrefix(stdout, `{"request_id"`) {
		t.Errorf("head -n 3: got %d lines beginning %.40q, want 3 JSON objects", n, stdout)
	}
	for _, form := range []string{"--csv", "--jsonl", "--parquet"} {
		stdout, _ := succeed(t, "trace", "export", out, form)
		file := filepath.Join(dir, "file"+form)
		succeed(t, "trace", "export", out, form, "--out", file)
		if read(t, file) != stdout || stdout == "" {
			t.Errorf("export %s: file and standard output differ", form)
		}
	}
}

// cut is a trace of 70 rows in batches of 10, without its end.
func cut(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cut.arrows")
	w, err := traces.Create(path, traces.Meta{}, traces.Options{BatchRows: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 70 {
		r := traces.NewRow()
		r.RequestID, r.ScheduledAt, r.PromptTokens, r.MaxTokens = fmt.Sprint("r", i), int64(i)*1e9, 100, 10
		if err := w.Write(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	shorten(t, path)
	return path
}

// shorten takes the last quarter off a file.
func shorten(t *testing.T, path string) {
	t.Helper()
	text := read(t, path)
	if err := os.WriteFile(path, []byte(text[:len(text)*3/4]), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTruncatedTraceGivesWhatIsWhole(t *testing.T) {
	path := cut(t)
	dir := t.TempDir()
	stdout, stderr, status := kvfleet(t, "trace", "export", path, "--csv")
	rows := strings.Count(stdout, "\n") - 1
	if status != 1 || !strings.Contains(stderr, fmt.Sprintf("truncated after row %d", rows)) || rows < 10 || rows%10 != 0 {
		t.Errorf("export: got %d rows, exit status %d and %q, want whole batches, 1 and where it was cut", rows, status, stderr)
	}
	file := filepath.Join(dir, "cut.csv")
	if _, _, status := kvfleet(t, "trace", "export", path, "--csv", "--out", file); status != 1 || read(t, file) != stdout {
		t.Errorf("export --out: got exit status %d, want 1 and the same rows", status)
	}
	saved := filepath.Join(dir, "saved.arrows")
	_, stderr, status = kvfleet(t, "trace", "convert", path, "--out", saved)
	if got := len(rowsOf(t, saved)); status != 1 || got != rows {
		t.Errorf("convert: got exit status %d and %d rows, want 1 and %d\n%s", status, got, rows, stderr)
	}
	succeed(t, "trace", "check", saved)
	for _, args := range [][]string{{"trace", "info", path}, {"trace", "check", path}, {"run", "--trace", path}, {"trace", "head", path, "-n", "60"}} {
		if _, stderr, status := kvfleet(t, args...); status != 1 || !strings.Contains(stderr, "truncated after row") {
			t.Errorf("%v: got exit status %d and %q, want 1 and where it was cut", args, status, stderr)
		}
	}
}

func TestCheckFindsContradictions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.arrows")
	w, err := traces.Create(path, traces.Meta{}, traces.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := traces.NewRow()
	r.RequestID, r.SentAt, r.FirstTokenAt, r.Outcome = "x", 10, 5, traces.Success
	if err := w.Write(&r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := kvfleet(t, "trace", "check", path)
	if status != 1 || !strings.Contains(stdout, "row 1 (x)") || !strings.Contains(stderr, "finding") {
		t.Errorf("check: got exit status %d, %q and %q, want 1 and what is wrong with row 1", status, stdout, stderr)
	}
}

func TestMalformedRowIsNamed(t *testing.T) {
	path := write(t, "m.jsonl", `{"timestamp": 0, "input_length": 100, "output_length": 10, "hash_ids": [1]}
{"timestamp": 0, "input_length": -5, "output_length": 10, "hash_ids": [1]}
`)
	_, stderr, status := kvfleet(t, "run", "--trace", path)
	if status != 1 || !strings.Contains(stderr, path+": line 2: field input_length: want") {
		t.Errorf("got exit status %d and %q, want 1 and file, row and field", status, stderr)
	}
	r := runAsJSON(t, "--trace", path, "--max-errors", "-1")
	if !strings.Contains(strings.Join(r.Warnings, "\n"), "skipped as unreadable") {
		t.Errorf("with --max-errors -1: got warnings %q, want the skipped row counted", r.Warnings)
	}
}
