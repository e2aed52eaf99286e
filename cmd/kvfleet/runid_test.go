package main

import (
	"path/filepath"
	"strings"
	"testing"

	"kvfleet/traces"
)

// Runs that differ in anything that moves a row have names of their own, and say
// what it was; equal runs have equal names.
func TestRunsHaveNamesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	faults := write(t, "faults.yaml", "faults:\n  - {at: 5s, replica: replica-0, kind: slow, factor: 2}\n")
	names := map[string]string{}
	for i, c := range []struct{ key, value, args string }{
		{"window", "20s", "--users 2 --window 20s --warmup 1s"},
		{"window", "21s", "--users 2 --window 21s --warmup 1s"},
		{"warmup", "2s", "--users 2 --window 20s --warmup 2s"},
		{"faults", "5s slow replica-0 factor 2", "--users 2 --window 20s --warmup 1s --faults " + faults},
		{"arrival_process", "even", "--rate 1 --window 20s --warmup 1s"},
		{"arrival_process", "poisson", "--rate 1 --window 20s --warmup 1s --arrivals poisson"},
		{"think", "2s", "--rate 1 --window 20s --warmup 1s --think 2s"},
	} {
		name := func(file string) string {
			out := filepath.Join(dir, file)
			succeed(t, strings.Fields("run --policy round_robin --out "+out+" "+c.args)...)
			r, err := traces.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			found := ""
			for _, kv := range r.Meta().Extra {
				if kv.Key == c.key {
					found = kv.Value
				}
			}
			if found != c.value {
				t.Errorf("%s: %s is %q, want %q", c.args, c.key, found, c.value)
			}
			return r.Meta().RunID
		}
		a, b := name("a"+string(rune('0'+i))+".arrows"), name("b"+string(rune('0'+i))+".arrows")
		if a != b {
			t.Errorf("%s: the same run is %s and %s", c.args, a, b)
		}
		if other, taken := names[a]; taken {
			t.Errorf("%s and %s are both %s", c.args, other, a)
		}
		names[a] = c.args
	}
}

// A part of a run is not that run, a whole copy is; and a remark is told once.
func TestConversionsOfARun(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	succeed(t, strings.Fields("run --policy round_robin --users 4 --window 10s --warmup 1s --out "+file("run.arrows"))...)
	succeed(t, "trace", "convert", file("run.arrows"), "--out", file("copy.arrows"))
	succeed(t, "trace", "convert", file("copy.arrows"), "--out", file("again.arrows"))
	succeed(t, "trace", "convert", file("run.arrows"), "--limit", "5", "--out", file("part.arrows"))
	meta := func(name string) traces.Meta {
		r, err := traces.Open(file(name))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return r.Meta()
	}
	run, copied, again, part := meta("run.arrows"), meta("copy.arrows"), meta("again.arrows"), meta("part.arrows")
	if run.RunID == "" || copied.RunID != run.RunID || part.RunID != "" {
		t.Errorf("the run is %q, its copy %q, a part of it %q", run.RunID, copied.RunID, part.RunID)
	}
	// Replays are named by what they replay.
	for _, source := range []string{"run", "copy", "part"} {
		succeed(t, "run", "--policy", "round_robin", "--trace", file(source+".arrows"), "--out", file("of-"+source+".arrows"))
	}
	if a, b, c := meta("of-run.arrows"), meta("of-copy.arrows"), meta("of-part.arrows"); a.RunID != b.RunID || a.RunID == c.RunID || a.RunID == run.RunID {
		t.Errorf("replays are %q, %q of a copy, %q of a part; the run is %q", a.RunID, b.RunID, c.RunID, run.RunID)
	}
	if len(copied.Evidence) != len(again.Evidence) {
		t.Errorf("copied once: %q, twice: %q", copied.Evidence, again.Evidence)
	}
}
