package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// marked is the ```sh blocks of a text whose first line is "# test".
func marked(text string) []string {
	var blocks []string
	for _, part := range strings.Split(text, "\n```sh\n")[1:] {
		block, _, closed := strings.Cut(part, "\n```")
		if closed && strings.HasPrefix(block, "# test\n") {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

func TestMarkedFindsOnlyWhatIsMarked(t *testing.T) {
	text := "x\n```sh\n# test\na\nb\n```\ny\n```sh\nrm everything\n```\n```go\n# test\n```\n```sh\n# test\nc\n```\n"
	if got := strings.Join(marked(text), "|"); got != "# test\na\nb|# test\nc" {
		t.Errorf("got %q, want the two marked blocks", got)
	}
}

// The commands the README shows run, one block after another, in a place that
// looks like a clone next to the shared data.
func TestREADMECommands(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Skip("no README")
	}
	blocks := marked("\n" + string(readme))
	if len(blocks) == 0 {
		t.Skip("no block of the README is marked # test")
	}
	if testing.Short() {
		t.Skip("builds and runs the tool")
	}
	clone := filepath.Join(t.TempDir(), "main")
	if err := os.MkdirAll(filepath.Join(clone, "bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	link(t, "../../../shared", filepath.Join(filepath.Dir(clone), "shared"))
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "bin" && name != "out" && !strings.HasPrefix(name, ".") {
			link(t, filepath.Join("../..", name), filepath.Join(clone, name))
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(clone, "bin", "kvfleet"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, block := range blocks {
		sh := exec.CommandContext(ctx, "sh", "-e", "-c", block)
		sh.Dir = clone
		sh.Env = append(os.Environ(), "PATH="+filepath.Join(clone, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := sh.CombinedOutput(); err != nil {
			t.Fatalf("%v in\n%s\n%s", err, block, out)
		}
	}
}

func link(t *testing.T, from, to string) {
	t.Helper()
	full, err := filepath.Abs(from)
	if err == nil {
		err = os.Symlink(full, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}
