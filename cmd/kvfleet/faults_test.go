package main

import (
	"strings"
	"testing"
	"time"

	"kvfleet/sim"
)

func TestFaultFileIsReadStrictly(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"faults:\n  - {at: soon, replica: replica-0, kind: kill}\n", `line 2: at: got "soon", want a duration such as 90s`},
		{"faults:\n  - at: 1s\n    replica: [replica-0]\n    kind: kill\n", "line 3: replica: got a list, want the name of a replica"},
		{"faults:\n  - {at: 60, replica: replica-0, kind: kill}\n", `line 2: at: got "60", want a duration such as 90s`},
		{"faults:\n  - {at: 1s, replica: replica-0, kind: slow, factor: much}\n", `line 2: factor: got "much", want a number`},
		{"faults:\n  - {at: 1s, replica: replica-0, kind: slow, factor: 2, for: }\n", "line 2: for: got nothing, want a duration such as 90s"},
		{"faults:\n  - {at: 1s, at: 2s, replica: replica-0, kind: kill}\n", "line 2: at is there twice"},
		{"faults:\n  - {at: 1s, what: kill}\n", `line 2: unknown key "what", want one of at, replica, kind, for, factor`},
		{"faults:\n  - kill\n", "line 2: got no fault, want one such as {at: 90s"},
		{"fault:\n  - {at: 1s}\n", `line 1: unknown key "fault", want faults`},
		{"faults: []\n", "want a list named faults with at least one entry"},
		{"faults: {at: 1s}\n", "want a list named faults with at least one entry"},
		{"", "want a list named faults with at least one entry"},
		{"faults: [\n", "did not find expected node content"},
		{"faults:\n  - {at: 1s, replica: replica-0, kind: kill}\n---\nfaults: []\n", "more than one document, want one"},
	} {
		path := write(t, "faults.yaml", c.text)
		_, stderr, status := kvfleet(t, "run", "--faults", path)
		if status != 2 || !strings.Contains(stderr, path+": ") || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: got exit status %d and\n%swant 2 and %q", c.text, status, stderr, c.want)
		}
		for _, leak := range []string{"time.Duration", "float64", "sim.Fault", "unmarshal", "struct"} {
			if strings.Contains(stderr, leak) {
				t.Errorf("%q: got\n%swant nothing of Go in it, such as %s", c.text, stderr, leak)
			}
		}
	}
	both := write(t, "faults.yaml", "faults:\n  - {at: soon, kind: 3, factor: x}\n  - {for: ever}\n")
	_, stderr, _ := kvfleet(t, "run", "--faults", both)
	for _, want := range []string{"line 2: at:", "line 2: factor:", "line 3: for:"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("several faults: got\n%swant %q among them", stderr, want)
		}
	}
}

// What the help shows is a fault file that can be run, with every kind in it.
func TestFaultFileOfTheHelp(t *testing.T) {
	help, _ := succeed(t, "run", "--help")
	_, rest, found := strings.Cut(help, "  faults:\n")
	text, _, closed := strings.Cut(rest, "\n\n")
	if !found || !closed {
		t.Fatalf("run --help: got\n%s\nwant a fault file in it", help)
	}
	path := write(t, "faults.yaml", "  faults:\n"+text+"\n")
	r := runAsJSON(t, "--window", "210s", "--users", "8", "--faults", path, "--policy", "exact_residency")
	if len(r.Warnings) > 0 {
		t.Errorf("the faults of the help: got warnings %q, want none: each of them does something", r.Warnings)
	}
	for _, kind := range []string{"kill", "restart", "drain", "restore", "slow", "event_gap"} {
		if !strings.Contains(text, "kind: "+kind) {
			t.Errorf("run --help: no example of %s", kind)
		}
	}
}

func TestFaultsThatDoNothingAreNamed(t *testing.T) {
	at := func(s int, replica, kind string) sim.Fault {
		return sim.Fault{At: time.Duration(s) * time.Second, Replica: replica, Kind: kind}
	}
	for _, c := range []struct {
		faults []sim.Fault
		events bool
		want   string // of the only warning; empty: none
	}{
		{[]sim.Fault{at(1, "a", "kill"), at(2, "a", "restart"), at(3, "a", "kill")}, true, ""},
		{[]sim.Fault{at(2, "a", "restart"), at(1, "a", "kill")}, true, ""}, // in order of time
		{[]sim.Fault{at(1, "a", "kill"), at(2, "a", "kill")}, true, "fault kill of a at 2s: the replica is dead"},
		{[]sim.Fault{at(1, "a", "restart")}, true, "fault restart of a at 1s: the replica runs or starts by then"},
		{[]sim.Fault{at(1, "b", "kill"), at(2, "a", "restart")}, true, "fault restart of a at 2s"},
		{[]sim.Fault{at(1, "a", "drain"), at(2, "a", "restore"), at(3, "a", "restore")}, true, "fault restore of a at 3s: the replica is not drained"},
		{[]sim.Fault{at(1, "a", "drain"), at(2, "a", "drain")}, true, "fault drain of a at 2s: the replica is drained"},
		{[]sim.Fault{at(1, "a", "event_gap")}, true, ""},
		{[]sim.Fault{at(1, "a", "event_gap")}, false, "the policy reads no KV events"},
		{[]sim.Fault{at(9, "a", "kill")}, true, ""},
		{[]sim.Fault{at(10, "a", "kill")}, true, "it comes after the window's end (10s)"},
	} {
		got := idleFaults(c.faults, 10*time.Second, "the window's end", c.events)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%v: got %q, want %q", c.faults, got, c.want)
		}
	}
	path := write(t, "faults.yaml", "faults:\n  - {at: 40s, replica: replica-0, kind: kill}\n")
	r := runAsJSON(t, "--window", "20s", "--warmup", "0s", "--users", "8", "--faults", path)
	if all := strings.Join(r.Warnings, "\n"); !strings.Contains(all, "after the window's end (20s)") {
		t.Errorf("a fault after the window: got warnings %q, want it named", all)
	}
}
