package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Imports run one way, so that a policy can be read without the fleet that runs
// it and the simulator without the proxy. The rules are checked on the parsed
// files themselves: asking `go list` would leave the answer to the test cache,
// which does not know what a child process read.

const (
	module = "kvfleet"
	root   = "../.."
)

// mayImport says for a folder which of our folders it and everything below it
// may import besides itself. The longest folder that matches a file counts.
var mayImport = map[string][]string{
	"policies": nil,
	"traces":   nil,
	// The router's prefix hashes must be those of the bytes that are generated.
	"traces/workload": {"traces", "policies/block"},
	"sim":             {"policies", "traces"},
	"live":            {"live", "policies", "traces"},
	"live/emulator":   {"live", "policies", "traces", "sim"},
	"calibrate":       {"sim", "traces"},
	"cmd":             {"policies", "sim", "live", "calibrate", "traces"},
}

// library is a foreign or standard package that only some folders may use,
// itself and everything below it.
type library struct {
	path    string
	folders []string
}

var confined = []library{
	{"github.com/apache/arrow-go", []string{"traces"}},
	{"github.com/apache/arrow", []string{"traces"}},
	{"github.com/parquet-go/parquet-go", []string{"traces"}},
	{"github.com/go-zeromq/zmq4", []string{"live/kvevents", "live/emulator"}},
	{"github.com/pebbe/zmq4", []string{"live/kvevents", "live/emulator"}},
	{"github.com/tinylib/msgp", []string{"live/kvevents", "live/emulator"}},
	{"github.com/vmihailenco/msgpack", []string{"live/kvevents", "live/emulator"}},
	{"github.com/shamaton/msgpack", []string{"live/kvevents", "live/emulator"}},
	{"gonum.org/v1/gonum", []string{"calibrate", "traces/summary"}},
	{"github.com/ajstarks/svgo", []string{"traces/report"}},
	{"gonum.org/v1/plot", []string{"traces/report"}},
	{"github.com/spf13/cobra", []string{"cmd"}},
	{"github.com/spf13/pflag", []string{"cmd"}},
	{"github.com/vbauerster/mpb", []string{"cmd"}},
	{"golang.org/x/term", []string{"cmd"}},
	{"log", []string{"live", "cmd"}},
}

// sourceFile is one parsed file of the module.
type sourceFile struct {
	name string // slash-separated, from the root of the repository
	ast  *ast.File
	fset *token.FileSet
}

func (f sourceFile) folder() string { return path.Dir(f.name) }
func (f sourceFile) isTest() bool   { return strings.HasSuffix(f.name, "_test.go") }

// at places a fault: file, line and what is wrong there.
func (f sourceFile) at(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: ", f.name, f.fset.Position(pos).Line) + fmt.Sprintf(format, args...)
}

func TestImportsRunOneWay(t *testing.T) {
	for _, f := range parseModule(t) {
		for _, fault := range importFaults(f) {
			t.Error(fault)
		}
	}
}

func TestImportRulesRefuse(t *testing.T) {
	refused := func(name, imported string) {
		t.Helper()
		if got := importFaults(parseText(t, name, "package p\nimport _ \""+imported+"\"")); len(got) != 1 {
			t.Errorf("%s importing %s: got faults %q, want one", name, imported, got)
		}
	}
	refused("policies/a.go", "kvfleet/traces")
	refused("policies/a_test.go", "kvfleet/sim")
	refused("policies/block/a.go", "kvfleet/traces")
	refused("traces/a.go", "kvfleet/policies/block")
	refused("traces/summary/a.go", "kvfleet/sim")
	refused("traces/workload/a.go", "kvfleet/policies")
	refused("traces/workload/a.go", "kvfleet/policies/router")
	refused("sim/a.go", "kvfleet/live/fleet")
	refused("live/proxy/a.go", "kvfleet/sim/engine")
	refused("live/emulator/a.go", "kvfleet/calibrate")
	refused("calibrate/a.go", "kvfleet/policies")
	refused("policiesx/a.go", "fmt")
	refused("sim/a.go", "github.com/apache/arrow-go/v18/arrow")
	refused("live/proxy/a.go", "github.com/go-zeromq/zmq4")
	refused("traces/a.go", "gonum.org/v1/gonum/stat")
	refused("traces/summary/a.go", "github.com/ajstarks/svgo")
	refused("sim/a.go", "github.com/spf13/cobra")
	refused("sim/a.go", "log/slog")
	refused("sim/a.go", "log")
	refused("sim/a_test.go", "log/slog")
	refused("sim/a.go", "math/rand")
	refused("cmd/kvfleet/a_test.go", "math/rand")

	allowed := func(name, imported string) {
		t.Helper()
		if got := importFaults(parseText(t, name, "package p\nimport _ \""+imported+"\"")); len(got) != 0 {
			t.Errorf("%s importing %s: got faults %q, want none", name, imported, got)
		}
	}
	allowed("policies/a.go", "kvfleet/policies/block")
	allowed("policies/router/a.go", "kvfleet/policies")
	allowed("traces/workload/a.go", "kvfleet/policies/block")
	allowed("traces/workload/a.go", "kvfleet/traces/seed")
	allowed("sim/engine/a.go", "kvfleet/policies/router")
	allowed("live/emulator/a.go", "kvfleet/sim/engine")
	allowed("cmd/kvfleet/a.go", "kvfleet/sim")
	allowed("traces/convert/a.go", "github.com/apache/arrow-go/v18/arrow")
	allowed("live/emulator/a.go", "github.com/tinylib/msgp/msgp")
	allowed("sim/a.go", "math/rand/v2")
	allowed("live/proxy/a.go", "log/slog")
	allowed("sim/example_test.go", "log")
}

// importFaults returns what is wrong with the imports of one file.
func importFaults(f sourceFile) []string {
	top, _, _ := strings.Cut(f.name, "/")
	rule := longestRule(f.folder())
	if rule == "" {
		return []string{f.at(f.ast.Package, "no import rule covers the folder %s", f.folder())}
	}
	own := []string{top}
	if top == "live" || rule == "traces/workload" {
		own = nil // listed in full above
	}
	var faults []string
	for _, spec := range f.ast.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			faults = append(faults, f.at(spec.Pos(), "import %s: %v", spec.Path.Value, err))
			continue
		}
		ours, isOurs := strings.CutPrefix(imported, module+"/")
		if isOurs && !underAny(ours, own) && !underAny(ours, mayImport[rule]) {
			faults = append(faults, f.at(spec.Pos(), "%s may not import %s", rule, imported))
		}
		if imported == "math/rand" {
			faults = append(faults, f.at(spec.Pos(), "math/rand has a global source; use math/rand/v2 with a stream passed in"))
		}
		if f.isTest() && imported == "log" {
			continue // an Example ends itself with log.Fatal
		}
		for _, lib := range confined {
			if under(imported, lib.path) && !underAny(f.folder(), lib.folders) {
				faults = append(faults, f.at(spec.Pos(), "%s belongs in %s only", imported, strings.Join(lib.folders, " and ")))
				break
			}
		}
	}
	return faults
}

// longestRule returns the most specific folder of mayImport that holds folder,
// empty if none does.
func longestRule(folder string) string {
	for ; folder != "."; folder = path.Dir(folder) {
		if _, ok := mayImport[folder]; ok {
			return folder
		}
	}
	return ""
}

func under(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

func underAny(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return under(name, folder) })
}

// parseModule parses every Go file of the repository, tests included, in path
// order. Like the go command it leaves out testdata and dot folders, and with
// them what the Makefile builds.
func parseModule(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			hidden := rel != "." && (entry.Name()[0] == '.' || entry.Name()[0] == '_')
			if hidden || entry.Name() == "testdata" || rel == "bin" || rel == "out" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, sourceFile{rel, parsed, fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"policies", "traces", "sim", "cmd"} {
		if !slices.ContainsFunc(files, func(f sourceFile) bool { return under(f.name, folder) }) {
			t.Fatalf("no Go file found under %s: the walk is broken", folder)
		}
	}
	return files
}

// parseText parses text as if it were the named file of the repository.
func parseText(t *testing.T, name, text string) sourceFile {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return sourceFile{name, parsed, fset}
}
