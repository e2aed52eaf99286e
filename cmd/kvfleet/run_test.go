package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvfleet/traces"
	"kvfleet/traces/report"
)

const samples = "../../../shared/data/traces"

func sample(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(samples, name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the sample traces are not here")
	}
	return path
}

// runJSON is what run --json prints.
type runJSON struct {
	Summary    map[string]any
	Rejected   int
	Rejections []rejection
	Warnings   []string
}

func runAsJSON(t *testing.T, args ...string) runJSON {
	t.Helper()
	stdout, _ := succeed(t, append([]string{"run", "--json"}, args...)...)
	var r runJSON
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("run --json: %v in\n%s", err, stdout)
	}
	return r
}

func TestRunIsTheCellThatASweepSimulates(t *testing.T) {
	dir := t.TempDir()
	succeed(t, tiny(dir)...)
	cells, err := report.ReadCells(filepath.Join(dir, "cells.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		r := runAsJSON(t, "--window", "20s", "--warmup", "5s", "--working-set", number(c.WorkingSet), "--skew", "1", "--users", "8",
			"--policy", c.Policy, "--repetition", number(float64(c.Repetition)))
		for name, want := range map[string]float64{
			"requests": float64(c.Requests), "goodput_rps": c.GoodputRPS, "ttft_p99_ms": c.TTFTP99MS,
			"recomputed_prefill_tokens_per_request": c.RecomputedPrefillTokens,
		} {
			if got := r.Summary[name].(float64); math.Abs(got-want) > 0.005*math.Abs(want)+0.01 {
				t.Errorf("%s %s: got %v by run, want %v as by sweep", c.Policy, name, got, want)
			}
		}
	}
}

func TestRunKeepsWhatItIsAskedTo(t *testing.T) {
	dir := t.TempDir()
	out, decisions, steps := filepath.Join(dir, "r.arrows"), filepath.Join(dir, "d.jsonl"), filepath.Join(dir, "s.arrows")
	if err := os.WriteFile(out, []byte("what was here"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--window", "20s", "--warmup", "5s", "--users", "8", "--out", out, "--decisions", decisions, "--steps", steps}
	first, _ := succeed(t, args...)
	rows := read(t, out)
	again, _ := succeed(t, args...)
	if first != again || read(t, out) != rows {
		t.Error("the same run twice: output differs")
	}
	for _, want := range []string{"goodput", "TTFT", "hit rate", "PREFIX_AFFINITY", "replica-0", "evictions", "engines", "TTFT P50"} {
		if !strings.Contains(first, want) {
			t.Errorf("the summary lacks %q:\n%s", want, first)
		}
	}
	stdout, _ := succeed(t, "trace", "check", out)
	n := strings.Count(read(t, decisions), "\n")
	if want := grouped(int64(n)) + " rows, 0 findings\n"; stdout != want {
		t.Errorf("trace check: got %q, want %q, a row for each decision", stdout, want)
	}
	r, err := traces.OpenSteps(steps)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var decodes int64
	for row, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		decodes += row.DecodeRequests
	}
	if decodes == 0 {
		t.Error("the step log has no decode")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRunWithFaultsReroutes(t *testing.T) {
	faults := write(t, "faults.yaml", "faults:\n  - {at: 5s, replica: replica-0, kind: kill}\n  - {at: 8s, replica: replica-0, kind: restart}\n")
	r := runAsJSON(t, "--window", "20s", "--warmup", "0s", "--users", "16", "--faults", faults)
	if r.Summary["rerouted"].(float64)+r.Summary["dropped"].(float64) == 0 {
		t.Errorf("a replica was killed: got %v, want something dropped or rerouted", r.Summary)
	}
}

func TestRunScalesTheFleet(t *testing.T) {
	stdout, _ := succeed(t, "run", "--window", "10s", "--warmup", "0s", "--users", "40", "--replicas", "20", "--sessions", "50")
	for _, want := range []string{"20 replicas, 2,519,040 KV tokens", "sessions=50", "BUSIEST 15 AND LEAST BUSY OF 20"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("run --replicas 20: got\n%s\nwant %q in it", stdout, want)
		}
	}
}

func TestRunThatCompletesNothingFails(t *testing.T) {
	trace := sample(t, "mooncake_arxiv_fragment_56rows.jsonl")
	stdout, stderr, status := kvfleet(t, "run", "--trace", trace, "--max-model-len", "16")
	if status != 1 || !strings.Contains(stderr, "completed") {
		t.Errorf("got exit status %d and %q, want 1 and that nothing completed", status, stderr)
	}
	if !strings.Contains(stdout, "56 requests could not be served") {
		t.Errorf("got\n%s\nwant the 56 refused requests counted", stdout)
	}
}

func TestRunReplaysPublicTraces(t *testing.T) {
	for _, c := range []struct {
		args    []string
		warning string
	}{
		{[]string{"--trace", sample(t, "mooncake_fast25_conversation_first3000.jsonl"), "--limit", "100", "--spread-bin", "3s", "--max-model-len", "60000"}, "tokens of prompt"},
		{[]string{"--trace", sample(t, "azure_llm_2023_conv_first3000.csv"), "--limit", "200", "--rate-scale", "2"}, "every prompt counts as distinct"},
		{[]string{"--trace", sample(t, "weka_claude_code"), "--stagger", "10s", "--limit", "60", "--max-model-len", "131072"}, "could not be served"},
		{[]string{"--trace", sample(t, "vidur_arxiv_summarization_lengths_first3000.csv"), "--rate", "2", "--limit", "50"}, "every prompt counts as distinct"},
	} {
		r := runAsJSON(t, c.args...)
		rows := 100.0
		for i, a := range c.args {
			if a == "--limit" {
				if err := json.Unmarshal([]byte(c.args[i+1]), &rows); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := r.Summary["requests"].(float64); got != rows {
			t.Errorf("%v: got %v requests with the refused ones, want %v", c.args, got, rows)
		}
		if r.Rejected != len(r.Rejections) {
			t.Errorf("%v: got %d refused and %d named, want all", c.args, r.Rejected, len(r.Rejections))
		}
		all := strings.Join(r.Warnings, "\n")
		for _, x := range r.Rejections {
			all += "\n" + x.Reason
		}
		if !strings.Contains(all, c.warning) {
			t.Errorf("%v: got warnings %q, want %q among them", c.args, all, c.warning)
		}
	}
}
