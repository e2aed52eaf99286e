package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kvfleet/traces"
)

// MapOptions says what WriteMaps draws.
type MapOptions struct {
	// Policy and Baseline are the pair of the pressure map, each a name or
	// name:k=v,…. Both empty means DefaultPair; one alone is an error.
	Policy, Baseline string
	// Fleet is named under the titles; empty leaves it out.
	Fleet string
	// Defaults tells what the plain name of a policy with several variants
	// means; nil means that each variant is labelled with what sets it apart.
	Defaults Defaults
	// Samples are the cells under draws of the fleet's constants, if there are any:
	// the regime map marks the points that depend on them.
	Samples []Sample
}

// WriteMaps writes the pressure map, the regime map and goodput against working
// set of the cells into dir, which it makes if need be: an SVG and the JSON it
// is drawn from for each, one set for every driver and load. File names carry
// driver and load only if there are several. Of a single policy there is nothing
// to compare and only the curves are drawn, unless a pair was asked for, which is
// then an error. It returns the paths written and the same results as text, which
// says what is missing and why. A file appears whole or not at all.
func WriteMaps(dir string, cells []Cell, opts MapOptions) (paths []string, text string, err error) {
	if (opts.Policy == "") != (opts.Baseline == "") {
		return nil, "", errors.New("a pressure map needs both a policy and a baseline, or neither to choose them")
	}
	groups := ByLoad(cells)
	if len(groups) == 0 {
		return nil, "", errors.New("no cells to draw")
	}
	type file struct {
		name string
		data []byte
	}
	all := variants(cells, opts.Defaults)
	var files []file
	var tables []string
	for _, group := range groups {
		m, err := newMaps(group, all, opts)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", LoadName(group[0].Driver, group[0].Load), err)
		}
		suffix := ""
		if len(groups) > 1 {
			suffix = "-" + group[0].Driver + "-" + exact(group[0].Load)
		}
		for _, f := range m.figures() {
			data, err := json.MarshalIndent(f, "", "  ")
			if err != nil {
				return nil, "", err
			}
			name := f.name() + suffix
			files = append(files, file{name + ".svg", f.SVG()}, file{name + ".json", append(data, '\n')})
		}
		tables = append(tables, m.table())
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, "", err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := traces.WriteWhole(path, f.data); err != nil {
			return paths, "", err
		}
		paths = append(paths, path)
	}
	return paths, strings.Join(tables, "\n"), nil
}

// A figure is one picture and, as JSON, what it is drawn from.
type figure interface {
	name() string
	SVG() []byte
}

func (f Frame) name() string { return f.Figure }

type maps struct {
	grid     Grid
	pressure PressureMap
	regime   RegimeMap
	curves   GoodputCurves
}

// newMaps compares cells of one driver and load. all are the policies of the
// whole sweep: an interrupted one may lack some of them at its last load.
func newMaps(cells []Cell, all []variant, opts MapOptions) (maps, error) {
	g, err := newGrid(cells, all)
	if err != nil {
		return maps{}, err
	}
	m := maps{grid: g, regime: NewRegimeMap(g), curves: NewGoodputCurves(g)}
	if err := m.regime.judgeDraws(opts.Samples, all); err != nil {
		return maps{}, err
	}
	if !m.alone() || opts.Policy != "" {
		policy, baseline, err := pair(g, all, opts)
		if err != nil {
			return maps{}, err
		}
		m.pressure = NewPressureMap(g, policy, baseline)
	}
	m.pressure.Fleet, m.regime.Fleet, m.curves.Fleet = opts.Fleet, opts.Fleet, opts.Fleet
	return m, nil
}

// alone reports whether there is one policy and so nothing to compare.
func (m maps) alone() bool { return len(m.grid.Policies) == 1 }

func (m maps) figures() []figure {
	if m.alone() {
		return []figure{m.curves}
	}
	return []figure{m.pressure, m.regime, m.curves}
}

// pair is the labels of the pressure map's two policies.
func pair(g Grid, all []variant, opts MapOptions) (policy, baseline string, err error) {
	if opts.Policy == "" {
		return DefaultPair(g)
	}
	a, errA := find(all, opts.Policy, opts.Defaults)
	b, errB := find(all, opts.Baseline, opts.Defaults)
	if err := errors.Join(errA, errB); err != nil {
		return "", "", err
	}
	if a == b {
		return "", "", fmt.Errorf("a pressure map compares two policies, both are %s", a.label)
	}
	return a.label, b.label, nil
}
