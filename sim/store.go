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
	draw                   int // 0 is the fleet itself
	driver                 string
	load, workingSet, skew float64
	policy, parameters     string
	repetition             int
}

// keyOf is the key of a cell of the fleet itself.
func keyOf(c *report.Cell) cellKey { return sampleKey(&report.Sample{Cell: *c}) }

func sampleKey(c *report.Sample) cellKey {
	return cellKey{c.Draw, c.Driver, c.Load, c.WorkingSet, c.Skew, c.Policy, c.Parameters, c.Repetition}
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
	Samples     int       `json:"fleet_samples,omitempty"`
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
		Repetitions: c.Repetitions, Samples: c.FleetSamples, Window: c.Window.String(), Warmup: c.Warmup.String(), Seed: uint64(c.Seed),
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

// A store is a sweep's directory: its plan, the fleet's own cells, and those of the
// fleet's draws.
type store struct {
	begunBy string // the plan's program
	have    map[cellKey]bool
	cells   *sheet
	samples *sheet // nil of a sweep without draws
}

const planFile = "plan.json"

// openStore makes or resumes the directory.
func openStore(cfg *SweepConfig, jobs []job) (*store, error) {
	if err := os.MkdirAll(cfg.Dir, 0o777); err != nil {
		return nil, err
	}
	begunBy, err := checkPlan(cfg)
	if err != nil {
		return nil, err
	}
	s := &store{begunBy: begunBy, have: map[cellKey]bool{}, cells: &sheet{dir: cfg.Dir}}
	if cfg.FleetSamples > 0 {
		s.samples = &sheet{dir: cfg.Dir, drawn: true}
	}
	wanted := map[cellKey]bool{}
	for _, j := range jobs {
		wanted[cfg.key(j)] = true
	}
	for _, sheet := range s.sheets() {
		if err := sheet.find(s.have, wanted); err != nil {
			return nil, err
		}
	}
	for _, sheet := range s.sheets() {
		if err := sheet.begin(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *store) sheets() []*sheet {
	if s.samples == nil {
		return []*sheet{s.cells}
	}
	return []*sheet{s.cells, s.samples}
}

func (s *store) has(k cellKey) bool { return s.have[k] }

// add keeps a finished cell, on disk before it returns. Draw 0 is the fleet itself.
func (s *store) add(c report.Sample) error {
	to := s.cells
	if c.Draw > 0 {
		to = s.samples
	}
	if err := to.add(c); err != nil {
		return err
	}
	s.have[sampleKey(&c)] = true
	return nil
}

// close sorts everything into cells.csv and samples.csv.
func (s *store) close() (cells []report.Cell, samples []report.Sample, err error) {
	for _, sheet := range s.sheets() {
		if err := sheet.close(); err != nil {
			return nil, nil, err
		}
	}
	if s.samples != nil {
		samples = s.samples.rows
	}
	return cellsOf(s.cells.rows), samples, nil
}

// checkPlan refuses a directory of another sweep and writes the plan into a new
// one. It returns the program that began the sweep.
func checkPlan(cfg *SweepConfig) (string, error) {
	want := cfg.plan()
	path := filepath.Join(cfg.Dir, planFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		for _, name := range []string{cellsFile, samplesFile} {
			if _, err := os.Stat(filepath.Join(cfg.Dir, name)); err == nil {
				return "", fmt.Errorf("sweep: %s has cells and no %s: %w", cfg.Dir, planFile, ErrOtherSweep)
			}
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
