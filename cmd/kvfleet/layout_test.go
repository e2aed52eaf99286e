package main_test

import (
	"go/ast"
	"go/doc"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// topLevel is all that may lie at the top of the repository. The value says
// whether it must: a folder comes with its content, never as an empty shell.
var topLevel = map[string]bool{
	"policies": true, "sim": true, "live": false, "calibrate": false, "traces": true,
	"cmd": true, "notebooks": false,
	"Makefile": true, "go.mod": true, "go.sum": true,
	"README.md": true, "CHANGELOG.md": true, "LICENSE": true,
}

// The packages that need no Example: a command is shown by the README.
var withoutExample = []string{"cmd/kvfleet"}

func TestTopLevelIsTheNamedOne(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, entry := range entries {
		name := entry.Name()
		if ignoredAtTop(name) {
			continue
		}
		found[name] = true
		if _, ok := topLevel[name]; !ok {
			t.Errorf("%s lies at the top of the repository, want only %s", name,
				strings.Join(slices.Sorted(maps.Keys(topLevel)), " "))
		}
		if entry.IsDir() && !holdsFile(t, filepath.Join(root, name)) {
			t.Errorf("%s is an empty shell, want it left out until it has content", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(topLevel)) {
		if topLevel[name] && !found[name] {
			t.Errorf("%s is missing from the top of the repository", name)
		}
	}
}

// ignoredAtTop says whether git ignores a name at the top or it is a dot file.
func ignoredAtTop(name string) bool {
	return name[0] == '.' || name == "bin" || name == "out" ||
		strings.HasSuffix(name, ".test") || strings.HasSuffix(name, ".prof")
}

func holdsFile(t *testing.T, folder string) bool {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		return !entry.IsDir() || holdsFile(t, filepath.Join(folder, entry.Name()))
	})
}

func TestEveryPackageIntroducesItself(t *testing.T) {
	byFolder := map[string][]sourceFile{}
	for _, f := range parseModule(t) {
		byFolder[f.folder()] = append(byFolder[f.folder()], f)
	}
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		for _, fault := range docFaults(folder, byFolder[folder]) {
			t.Error(fault)
		}
		if !slices.Contains(withoutExample, folder) && !hasExample(byFolder[folder]) {
			t.Errorf("%s has no Example with an Output comment", folder)
		}
	}
}

// docFaults wants exactly one package comment, in doc.go, where a reader looks
// for it.
func docFaults(folder string, files []sourceFile) []string {
	const home = "doc.go"
	opening := "Package " + path.Base(folder) + " "
	if under(folder, "cmd") {
		opening = "Command " + path.Base(folder) + " "
	}
	var faults []string
	found := false
	for _, f := range files {
		if f.isTest() || f.ast.Doc == nil {
			continue
		}
		if path.Base(f.name) != home {
			faults = append(faults, f.at(f.ast.Doc.Pos(), "package comment outside %s", home))
			continue
		}
		found = true
		if got := f.ast.Doc.Text(); !strings.HasPrefix(got, opening) {
			faults = append(faults, f.at(f.ast.Doc.Pos(), "package comment begins %.40q, want %q", got, opening))
		}
	}
	if !found {
		faults = append(faults, path.Join(folder, home)+": no package comment")
	}
	return faults
}

// hasExample says whether one Example of the package runs: go test compiles
// those without an Output comment and leaves it at that.
func hasExample(files []sourceFile) bool {
	var tests []*ast.File
	for _, f := range files {
		if f.isTest() {
			tests = append(tests, f.ast)
		}
	}
	return slices.ContainsFunc(doc.Examples(tests...), func(e *doc.Example) bool { return e.Output != "" })
}

func TestDocRulesRefuse(t *testing.T) {
	bare := parseText(t, "sim/doc.go", "package sim")
	elsewhere := parseText(t, "sim/run.go", "// Package sim runs.\npackage sim")
	wrong := parseText(t, "sim/doc.go", "// This package runs.\npackage sim")
	right := parseText(t, "sim/doc.go", "// Package sim runs.\npackage sim")
	count := func(name string, want int, files ...sourceFile) {
		t.Helper()
		if got := docFaults("sim", files); len(got) != want {
			t.Errorf("%s: got faults %q, want %d", name, got, want)
		}
	}
	count("no comment", 1, bare)
	count("in another file", 2, bare, elsewhere)
	count("another opening", 1, wrong)
	count("twice", 1, right, elsewhere)
	count("as it should be", 0, right)

	silent := parseText(t, "sim/example_test.go", "package sim_test\nfunc Example() {\n\tprintln(1)\n}")
	if hasExample([]sourceFile{silent}) {
		t.Error("an Example without Output passed for one that runs")
	}
	spoken := parseText(t, "sim/example_test.go", "package sim_test\nfunc Example() {\n\tprintln(1)\n\t// Output: 1\n}")
	if !hasExample([]sourceFile{spoken}) {
		t.Error("an Example with Output was not found")
	}
}
