package main_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// The habits that make a run a function of its inputs: no wall clock, no
// goroutine and no package state where decisions and simulated time are made.

// realClock holds what reads or waits on the machine's clock.
var realClock = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick",
}

// concurrent are the files outside live and cmd that may start goroutines: a
// sweep runs whole cells side by side, and a fit whole simulations, each of them
// on one goroutine.
var concurrent = []string{"sim/sweep.go", "calibrate/fit/parallel.go"}

func TestHabitsAreKept(t *testing.T) {
	byFolder := map[string][]sourceFile{}
	for _, f := range parseModule(t) {
		faults := initFaults(f)
		if !f.isTest() && !underAny(f.name, []string{"live", "cmd"}) {
			faults = slices.Concat(faults, clockFaults(f), goroutineFaults(f))
		}
		for _, fault := range faults {
			t.Error(fault)
		}
		if !f.isTest() {
			byFolder[f.folder()] = append(byFolder[f.folder()], f)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		for _, fault := range stateFaults(byFolder[folder]) {
			t.Error(fault)
		}
	}
}

func TestHabitRulesRefuse(t *testing.T) {
	count := func(rule string, got []string, want int) {
		t.Helper()
		if len(got) != want {
			t.Errorf("%s: got faults %q, want %d", rule, got, want)
		}
	}
	clock := parseText(t, "sim/a.go", `package sim
import wall "time"
var began = wall.Now()
func f() { sleep := wall.Sleep; sleep(wall.Second); <-wall.After(1) }`)
	count("clock", clockFaults(clock), 3)
	count("dot import of time", clockFaults(parseText(t, "sim/a.go", "package sim\nimport . \"time\"")), 1)
	other := parseText(t, "sim/a.go", "package sim\nimport \"time\"\nfunc f(q queue) time.Duration { return q.Now() }")
	count("virtual clock", clockFaults(other), 0)

	text := "package sim\nfunc f() { go func() {}() }"
	count("goroutine", goroutineFaults(parseText(t, "sim/engine/a.go", text)), 1)
	count("goroutine of the sweep", goroutineFaults(parseText(t, "sim/sweep.go", text)), 0)

	count("init", initFaults(parseText(t, "cmd/a.go", "package a\nfunc init() {}\nfunc (x *T) init() {}")), 1)

	state := parseText(t, "sim/a.go", `package sim
var seen = map[string]bool{}
var count, limit int
var table = []int{1}
func f() { seen["a"] = true; count++; table = append(table, limit) }
func g(seen map[string]bool) { seen["a"] = true; count := 0; count++; _ = count }
func h() { delete(seen, "a"); clear(table); use(&limit) }`)
	count("package state", stateFaults([]sourceFile{state}), 6)
}

// clockFaults finds uses of the real clock, under whatever name package time is
// imported.
func clockFaults(f sourceFile) []string {
	local := ""
	for _, spec := range f.ast.Imports {
		if spec.Path.Value != `"time"` {
			continue
		}
		local = "time"
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			return []string{f.at(spec.Pos(), "dot import of time hides the clock")}
		}
	}
	var faults []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && local != "" && x.Name == local && slices.Contains(realClock, sel.Sel.Name) {
			faults = append(faults, f.at(sel.Pos(), "time.%s outside live and cmd: time is passed in", sel.Sel.Name))
		}
		return true
	})
	return faults
}

func goroutineFaults(f sourceFile) []string {
	if slices.Contains(concurrent, f.name) {
		return nil
	}
	var faults []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if stmt, ok := n.(*ast.GoStmt); ok {
			faults = append(faults, f.at(stmt.Pos(), "goroutine outside live, cmd and %s", strings.Join(concurrent, ", ")))
		}
		return true
	})
	return faults
}

func initFaults(f sourceFile) []string {
	var faults []string
	for _, decl := range f.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			faults = append(faults, f.at(fn.Pos(), "func init runs before anybody asked"))
		}
	}
	return faults
}

// stateFaults finds package variables that a function of the package assigns to,
// deletes from, clears or takes the address of. It goes by names, so a function
// that declares the same name anywhere is not looked at for that name, and a
// write through a second variable goes unseen.
func stateFaults(files []sourceFile) []string {
	vars := map[string]bool{}
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.VAR {
				for _, name := range declaredNames(gen) {
					vars[name] = true
				}
			}
		}
	}
	delete(vars, "_")
	var faults []string
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			locals := declaredNames(fn)
			for _, id := range writtenNames(fn.Body) {
				if vars[id.Name] && !slices.Contains(locals, id.Name) {
					faults = append(faults, f.at(id.Pos(), "%s changes the package variable %s (package %s)",
						fn.Name.Name, id.Name, path.Base(f.folder())))
				}
			}
		}
	}
	return faults
}

// declaredNames returns every name that is declared under a node: variables,
// parameters, results and receivers.
func declaredNames(node ast.Node) []string {
	var names []string
	add := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if id, ok := e.(*ast.Ident); ok {
				names = append(names, id.Name)
			}
		}
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.Field:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		}
		return true
	})
	return names
}

// writtenNames returns the variables at the root of every expression under body
// that is assigned to, counted up or down, deleted from, cleared or addressed.
func writtenNames(body *ast.BlockStmt) []*ast.Ident {
	var written []*ast.Ident
	add := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if id := rootName(e); id != nil {
				written = append(written, id)
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				add(n.Key, n.Value)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				add(n.X)
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") {
				add(n.Args...)
			}
		}
		return true
	})
	return written
}

// rootName returns the variable that x, x.f, x[i] and *x start from, nil if the
// expression starts from something else, as a call does.
func rootName(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
