package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// kvfleet runs a command line and returns what it wrote and its exit status.
func kvfleet(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, talk bytes.Buffer
	status = execute(context.Background(), args, &out, &talk)
	return out.String(), talk.String(), status
}

// succeed runs a command line that must not fail.
func succeed(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, status := kvfleet(t, args...)
	if status != 0 {
		t.Fatalf("kvfleet %s: got exit status %d, want 0\n%s", strings.Join(args, " "), status, stderr)
	}
	return stdout, stderr
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestHelpAndCatalogsAreAsWritten(t *testing.T) {
	for name, args := range map[string][]string{
		"help.txt":         {"--help"},
		"policies.txt":     {"policies"},
		"version_help.txt": {"version", "--help"},
		"trace_help.txt":   {"trace", "--help"},
		"fleets_help.txt":  {"fleets", "--help"},
		"map_help.txt":     {"map", "--help"},
		"validate.txt":     {"validate", "--help"},
		"run_help.txt":     {"run", "--help"},
	} {
		stdout, stderr := succeed(t, args...)
		if stderr != "" {
			t.Errorf("%s: got %q on stderr, want nothing", name, stderr)
		}
		golden(t, name, stdout)
	}
}

func TestFleetsNamesEveryFleetAndShowsItsFile(t *testing.T) {
	stdout, _ := succeed(t, "fleets")
	if !strings.Contains(stdout, "rtx3090x5") || !strings.Contains(stdout, "629,760") {
		t.Errorf("fleets: got\n%s\nwant rtx3090x5 with its 629,760 KV tokens", stdout)
	}
	file, err := os.ReadFile("../../sim/fleets/rtx3090x5.yaml")
	if err != nil {
		t.Fatal(err)
	}
	stdout, _ = succeed(t, "fleets", "show", "rtx3090x5")
	if stdout != string(file) {
		t.Error("fleets show rtx3090x5: not the file word for word")
	}
}

func TestVersionNamesTheToolAndGo(t *testing.T) {
	stdout, _ := succeed(t, "version")
	if !strings.HasPrefix(stdout, "kvfleet ") || !strings.Contains(stdout, "\ngo      go1.") {
		t.Errorf("version: got %q, want the versions of kvfleet and go", stdout)
	}
}

func TestCompletionOffersPolicies(t *testing.T) {
	stdout, _ := succeed(t, "__complete", "sweep", "--policy", "prefix_")
	if !strings.Contains(stdout, "prefix_affinity") {
		t.Errorf("completion of --policy prefix_: got %q, want prefix_affinity among them", stdout)
	}
	if stdout, _ = succeed(t, "completion", "bash"); !strings.Contains(stdout, "__start_kvfleet") {
		t.Error("completion bash: got no completion script")
	}
}

func TestFullDiskIsToldOfStandardOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	var talk bytes.Buffer
	if status := execute(context.Background(), []string{"policies"}, full, &talk); status != 1 {
		t.Errorf("policies > /dev/full: got exit status %d, want 1", status)
	}
	if !strings.Contains(talk.String(), "standard output") {
		t.Errorf("policies > /dev/full: got %q, want it to name standard output", talk.String())
	}
}
