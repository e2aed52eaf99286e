package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestReplayOfAClosedLoopIsToldApart(t *testing.T) {
	dir := t.TempDir()
	closed, open := filepath.Join(dir, "closed.arrows"), filepath.Join(dir, "open.arrows")
	succeed(t, "run", "--window", "20s", "--warmup", "0s", "--users", "1", "--out", closed)
	succeed(t, "run", "--window", "20s", "--warmup", "0s", "--rate", "1", "--out", open)
	const want = "warning: recorded in a closed loop of 1 user; it is replayed at the times it was sent, whatever the answers do"
	if _, stderr := succeed(t, "run", "--trace", closed); !strings.Contains(stderr, want) {
		t.Errorf("got %q, want %q", stderr, want)
	}
	if r := runAsJSON(t, "--trace", closed); !strings.Contains(want, strings.Join(r.Warnings, "\n")) || len(r.Warnings) != 1 {
		t.Errorf("--json: got warnings %q, want the same", r.Warnings)
	}
	if _, stderr := succeed(t, "run", "--trace", open); strings.Contains(stderr, "closed loop") {
		t.Errorf("an open loop: got %q, want no warning", stderr)
	}
}

const unnamedRows = `{"timestamp": 0, "input_length": 100, "output_length": 10, "hash_ids": [1]}
{"timestamp": 1000, "input_length": 100, "output_length": 10, "hash_ids": [1]}
`

func TestSessionPoliciesWithoutSessionsSaySo(t *testing.T) {
	trace := write(t, "m.jsonl", unnamedRows)
	for _, policy := range []string{"session_affinity", "bounded_session_affinity"} {
		r := runAsJSON(t, "--trace", trace, "--policy", policy)
		if all := strings.Join(r.Warnings, "\n"); !strings.Contains(all, policy+" places like round_robin") {
			t.Errorf("%s: got warnings %q, want that it places like round_robin", policy, all)
		}
	}
	r := runAsJSON(t, "--trace", trace, "--policy", "prefix_affinity")
	if all := strings.Join(r.Warnings, "\n"); strings.Contains(all, "round_robin") {
		t.Errorf("prefix_affinity: got warnings %q, want none about sessions", all)
	}
}

func TestUnknownSessionIsNamed(t *testing.T) {
	dir := t.TempDir()
	trace := filepath.Join(dir, "t.arrows")
	succeed(t, "trace", "generate", "--rate", "1", "--window", "20s", "--sessions", "3", "--out", trace)
	session := rowsOf(t, trace)[0].Session
	for _, args := range [][]string{{"run", "--trace", trace}, {"trace", "convert", trace, "--out", filepath.Join(dir, "x.arrows")}} {
		for _, more := range [][]string{{"--only-session", "nope"}, {"--only-session", session, "--only-session", "nope"}} {
			_, stderr, status := kvfleet(t, append(args, more...)...)
			if status != 1 || !strings.Contains(stderr, "--only-session nope: no such session") || strings.Contains(stderr, session+": no") {
				t.Errorf("%v %v: got exit status %d and %q, want 1 and that there is no session nope", args, more, status, stderr)
			}
		}
		succeed(t, append(args, "--only-session", session)...)
	}
}

func TestSaturationIsTold(t *testing.T) {
	slow := runAsJSON(t, "--rate", "40", "--window", "40s", "--warmup", "0s", "--policy", "round_robin")
	if all := strings.Join(slow.Warnings, "\n"); !strings.Contains(all, "saturated: the fleet fell behind; answers went on for ") {
		t.Errorf("40 req/s: got warnings %q, want that the fleet is saturated", all)
	}
	calm := runAsJSON(t, "--rate", "1", "--window", "60s", "--warmup", "0s")
	if all := strings.Join(calm.Warnings, "\n"); strings.Contains(all, "saturated") {
		t.Errorf("1 req/s: got warnings %q, want no saturation", all)
	}
	closed := runAsJSON(t, "--users", "300", "--window", "10s", "--warmup", "0s")
	if all := strings.Join(closed.Warnings, "\n"); strings.Contains(all, "saturated") {
		t.Errorf("a closed loop: got warnings %q, want no saturation", all)
	}
}

// The shares of the decision table are of all requests, the refused ones too.
func TestRefusedRequestsAreInTheDecisionTable(t *testing.T) {
	const header, large = "arrived_at,num_prefill_tokens,num_decode_tokens\n", "2,900000,10\n"
	const small = header + "0,100,10\n1,100,10\n"
	trace := write(t, "v.csv", small+strings.Repeat(large, 6))
	stdout, _ := succeed(t, "run", "--trace", trace)
	for _, want := range []string{"not placed", " 75.0%", "6 requests could not be served by any replica and were refused", "and 1 more (--json names all)"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("got\n%s\nwant %q in it", stdout, want)
		}
	}
	if r := runAsJSON(t, "--trace", trace); len(r.Rejections) != 6 {
		t.Errorf("--json: got %d refused requests named, want 6", len(r.Rejections))
	}
	single := write(t, "v.csv", small+large)
	if stdout, _ := succeed(t, "run", "--trace", single); !strings.Contains(stdout, "1 request could not be served by any replica and was refused") {
		t.Errorf("got\n%s\nwant 1 request that was refused", stdout)
	}
	none := write(t, "v.csv", header+large+large)
	if stdout, _, _ := kvfleet(t, "run", "--trace", none); strings.Contains(stdout, "n/a ms") || strings.Contains(stdout, "n/a req/s") {
		t.Errorf("got\n%s\nwant no unit on what is not known", stdout)
	}
}
