package sim

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"kvfleet/sim/latency"
)

// Number reads a constant by its path in the fleet file, as step.host_ms,
// step.decode_ladder[8].ms (the rung of batch 8) or thermal.cards[0].static_w.
// Times with a unit of their own are in seconds.
func (f *Fleet) Number(path string) (float64, error) {
	v, err := f.field(path)
	if err != nil {
		return 0, err
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return time.Duration(v.Int()).Seconds(), nil
	case v.CanFloat():
		return v.Float(), nil
	}
	return float64(v.Int()), nil
}

// SetNumber sets a constant by its path; whole numbers are rounded. The fleet's
// slices are written in place: see Copy.
func (f *Fleet) SetNumber(path string, x float64) error {
	v, err := f.field(path)
	if err != nil {
		return err
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(math.Round(x * float64(time.Second))))
	case v.CanFloat():
		v.SetFloat(x)
	default:
		v.SetInt(int64(math.Round(x)))
	}
	return nil
}

// field finds the number that a path names.
func (f *Fleet) field(path string) (reflect.Value, error) {
	v := reflect.ValueOf(f).Elem()
	for part := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, fmt.Errorf("fleet %s has no %s", f.Name, path)
			}
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return v, fmt.Errorf("fleet %s has no %s", f.Name, path)
		}
		next := reflect.Value{}
		for i := range v.NumField() {
			if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); tag == name {
				next = v.Field(i)
			}
		}
		if !next.IsValid() {
			return v, fmt.Errorf("fleet %s has no %s", f.Name, path)
		}
		if v = next; indexed {
			i, err := strconv.Atoi(index)
			if ladder, ok := v.Interface().([]latency.Rung); ok && err == nil {
				i = rungOf(ladder, i)
			}
			if err != nil || v.Kind() != reflect.Slice || i < 0 || i >= v.Len() {
				return v, fmt.Errorf("fleet %s has no %s", f.Name, path)
			}
			v = v.Index(i)
		}
	}
	if !v.CanFloat() && !v.CanInt() {
		return v, fmt.Errorf("%s is not a number", path)
	}
	return v, nil
}

// rungOf is the place of a batch size in the ladder, -1 if it is none of it.
func rungOf(ladder []latency.Rung, batch int) int {
	for i := range ladder {
		if ladder[i].Batch == batch {
			return i
		}
	}
	return -1
}

func (f *Fleet) validateDraws(fault func(string, ...any)) {
	for _, path := range f.Draws.Paths {
		if _, err := f.Number(path); err != nil {
			fault("draws.paths: %w", err)
		}
	}
	for i, values := range f.Draws.Values {
		if len(values) != len(f.Draws.Paths) {
			fault("draws.values[%d]: got %d values, want one for each of %d paths", i, len(values), len(f.Draws.Paths))
		}
	}
}

// FirstDraws are the fleets of the first n draws.
func (f *Fleet) FirstDraws(n int) ([]*Fleet, error) {
	have := 0
	if f.Draws != nil {
		have = len(f.Draws.Values)
	}
	if have < n {
		return nil, fmt.Errorf("fleet %s has %d draws, want %d: kvfleet calibrate writes them into its fleet file, 32 or as many as --draws says (what the measured constants may be, together)", f.Name, have, n)
	}
	var fleets []*Fleet
	for k := range n {
		g, err := f.Draw(k)
		if err != nil {
			return nil, err
		}
		fleets = append(fleets, g)
	}
	return fleets, nil
}

// Draw is the fleet with the constants of its calibration's k-th draw.
func (f *Fleet) Draw(k int) (*Fleet, error) {
	if f.Draws == nil || k < 0 || k >= len(f.Draws.Values) {
		n := 0
		if f.Draws != nil {
			n = len(f.Draws.Values)
		}
		return nil, fmt.Errorf("fleet %s: draw %d of %d: kvfleet calibrate writes them", f.Name, k+1, n)
	}
	g := f.Copy()
	for j, path := range f.Draws.Paths {
		if err := g.SetNumber(path, f.Draws.Values[k][j]); err != nil {
			return nil, err
		}
	}
	g.Draws = nil
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("fleet %s: draw %d: %w", f.Name, k+1, err)
	}
	return g, nil
}
