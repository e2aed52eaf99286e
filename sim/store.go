package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"kvfleet/traces"
	"kvfleet/traces/report"
)

// ErrOtherSweep is wrapped when a directory holds another sweep than the one
// asked for.
var ErrOtherSweep = errors.New("the directory holds another sweep")

// A cellKey names a cell of a sweep.
type cellKey struct {
	driver                 string
	load, workingSet, skew float64
	policy, parameters     string
	repetition             int
}

func keyOf(c *report.Cell) cellKey {
	return cellKey{c.Driver, c.Load, c.WorkingSet, c.Skew, c.Policy, c.Parameters, c.Repetition}
}

// A plan is a sweep's identity: two sweeps with equal plans give equal cells, in
// whatever order their axes were given.
type plan struct {
	Schema      string    `json:"schema"`
	Program     string    `json:"program,omitempty"` // that began the sweep; not compared
	Fleet       string    `json:"fleet"`
	FleetHash   string    `json:"fleet_hash"`
	Policies    []string  `json:"policies"`
	WorkingSets []float64 `json:"working_sets"`
	Skews       []float64 `json:"skews"`
	Users       []int     `json:"users,omitempty"`
	Rates       []float64 `json:"rates,omitempty"`
	Arrivals    string    `json:"arrivals,omitempty"`
	Shape       float64   `json:"shape,omitempty"`
	Think       string    `json:"think,omitempty"`
	Repetitions int       `json:"repetitions"`
	Window      string    `json:"window"`
	Warmup      string    `json:"warmup"`
	Seed        uint64    `json:"seed"`
}

func (c *SweepConfig) plan() plan {
	p := plan{
		Schema: "kvfleet.plan/1", Program: c.Program, Fleet: c.Fleet.Name, FleetHash: c.FleetHash,
		WorkingSets: slices.Clone(c.WorkingSets), Skews: slices.Clone(c.Skews),
		Users: slices.Clone(c.Users), Rates: slices.Clone(c.Rates),
		Arrivals: c.Arrivals, Shape: c.Shape,
		Repetitions: c.Repetitions, Window: c.Window.String(), Warmup: c.Warmup.String(), Seed: uint64(c.Seed),
	}
	if len(c.Rates) > 0 {
		p.Think = c.Think.String()
	}
	for _, choice := range c.Policies {
		p.Policies = append(p.Policies, choice.Spec.Name+":"+choice.Effective(c.Fleet.Bounds()))
	}
	p.sort()
	return p
}

// sort puts the axes in one order.
func (p *plan) sort() {
	slices.Sort(p.Policies)
	slices.Sort(p.WorkingSets)
	slices.Sort(p.Skews)
	slices.Sort(p.Users)
	slices.Sort(p.Rates)
}

// A store is a sweep's directory: finished cells in cells.csv, and those of the
// call under way in cells.part.csv, written as they finish.
type store struct {
	dir     string
	begunBy string // the plan's program
	have    map[cellKey]bool
	cells   []report.Cell
	part    *os.File
}

const (
	planFile  = "plan.json"
	cellsFile = "cells.csv"
	partFile  = "cells.part.csv"
)

// openStore makes or resumes the directory.
func openStore(cfg *SweepConfig, jobs []job) (*store, error) {
	if err := os.MkdirAll(cfg.Dir, 0o777); err != nil {
		return nil, err
	}
	begunBy, err := checkPlan(cfg)
	if err != nil {
		return nil, err
	}
	s := &store{dir: cfg.Dir, begunBy: begunBy, have: map[cellKey]bool{}}
	wanted := map[cellKey]bool{}
	for _, j := range jobs {
		wanted[cfg.key(j)] = true
	}
	for _, name := range []string{cellsFile, partFile} {
		if err := s.load(name, wanted); err != nil {
			return nil, err
		}
	}
	// The cells found in a part file move to cells.csv before a new part begins.
	if err := s.write(); err != nil {
		return nil, err
	}
	part, err := os.Create(filepath.Join(s.dir, partFile))
	if err != nil {
		return nil, err
	}
	s.part = part
	return s, nil
}

// checkPlan refuses a directory of another sweep and writes the plan into a new
// one. It returns the program that began the sweep.
func checkPlan(cfg *SweepConfig) (string, error) {
	want := cfg.plan()
	path := filepath.Join(cfg.Dir, planFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(cfg.Dir, cellsFile)); err == nil {
			return "", fmt.Errorf("sweep: %s has cells and no %s: %w", cfg.Dir, planFile, ErrOtherSweep)
		}
		return want.Program, traces.WriteWhole(path, want.text())
	}
	if err != nil {
		return "", err
	}
	// A key this program does not know is a difference too.
	var got plan
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	known := d.Decode(&got) == nil
	begunBy := got.Program
	got.Program = want.Program
	got.sort()
	if !known || !bytes.Equal(got.text(), want.text()) {
		return "", fmt.Errorf("sweep: %s differs from what was asked for in %s: %w; choose another --out", path, differing(got, want), ErrOtherSweep)
	}
	return begunBy, nil
}

func (p plan) text() []byte {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		panic(err) // strings and numbers
	}
	return append(text, '\n')
}

// differing names the fields in which two plans differ.
func differing(got, want plan) string {
	var names []string
	a, b := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range a.NumField() {
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	if names == nil {
		return "its form"
	}
	return strings.Join(names, ", ")
}

// load reads finished cells. A line that a killed process left unfinished at the
// end of a part file is simulated again.
func (s *store) load(name string, wanted map[cellKey]bool) error {
	path := filepath.Join(s.dir, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if name == partFile {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	if len(text) == 0 || name == partFile && bytes.Count(text, []byte("\n")) == 1 {
		return nil // killed before its first row was whole
	}
	cells, err := report.DecodeCells(bytes.NewReader(text), path)
	if err != nil {
		return err
	}
	for _, c := range cells {
		k := keyOf(&c)
		if !wanted[k] {
			return fmt.Errorf("sweep: %s has a cell this sweep has not (%s, working set %v, skew %v): %w", path, c.Policy, c.WorkingSet, c.Skew, ErrOtherSweep)
		}
		if !s.have[k] {
			s.have[k] = true
			s.cells = append(s.cells, c)
		}
	}
	return nil
}

func (s *store) has(k cellKey) bool { return s.have[k] }

// add keeps a finished cell, on disk before it returns.
func (s *store) add(c report.Cell) error {
	var line bytes.Buffer
	if err := report.WriteCells(&line, []report.Cell{c}); err != nil {
		return err
	}
	text := line.Bytes()
	if at, _ := s.part.Seek(0, 1); at > 0 {
		text = text[bytes.IndexByte(text, '\n')+1:] // the header is there
	}
	if _, err := s.part.Write(text); err != nil {
		return err
	}
	s.have[keyOf(&c)] = true
	s.cells = append(s.cells, c)
	return nil
}

// close sorts everything into cells.csv.
func (s *store) close() ([]report.Cell, error) {
	if err := s.part.Close(); err != nil {
		return nil, err
	}
	if err := s.write(); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(s.dir, partFile)); err != nil {
		return nil, err
	}
	return s.cells, nil
}

func (s *store) write() error {
	if len(s.cells) == 0 {
		return nil
	}
	slices.SortFunc(s.cells, report.CompareCells)
	var text bytes.Buffer
	if err := report.WriteCells(&text, s.cells); err != nil {
		return err
	}
	return traces.WriteWhole(filepath.Join(s.dir, cellsFile), text.Bytes())
}
