package heat

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"
)

// A State says what a card did during a bin.
type State uint8

// The states.
const (
	Idle       State = iota // no work
	Straddling              // work began or ended within the bin, or paused
	Loaded                  // work throughout
)

// String returns the state in lower case.
func (s State) String() string {
	return [...]string{"idle", "straddling", "loaded"}[s]
}

// A Bin is one card's means over one bin.
type Bin struct {
	TempC    float64
	ClockMHz float64 // SM clock
	PowerW   float64
	// Util is the share of the time that the driver calls the card busy; PowerCap
	// and Thermal are the shares of samples that its power limit (bit 0x4) and its
	// temperature limit (bit 0x20) held down. All 0 to 1.
	Util, PowerCap, Thermal float64
	State                   State
}

// A Load is a stretch of work, since the telemetry began.
type Load struct{ From, To time.Duration }

// Telemetry is what the cards of one host read, bin by bin.
type Telemetry struct {
	Path   string
	GPUs   []int // the telemetry's own numbers of the cards, ascending: neighbours differ by 1
	Length time.Duration
	// Bins and Loads are by card, in the order of GPUs.
	Bins  [][]Bin
	Loads [][]Load
	// Alike holds groups of indices into GPUs whose cards worked at the same times.
	Alike [][]int
}

// columns are what Read needs, with the largest value each may have.
var columns = []struct {
	name      string
	low, high float64
	want      string
}{
	{"gpu", 0, 1023, "a whole number of at least 0"},
	{"t_s", 0, 1e9, "seconds of at least 0"},
	{"temp_c", -50, 200, "degrees Celsius from -50 to 200"},
	{"sm_mhz", 0, 1e5, "MHz from 0 to 100000"},
	{"power_w", 0, 1e5, "watts from 0 to 100000"},
	{"util_pct", 0, 100, "a percentage from 0 to 100"},
	{"share_power_cap", 0, 1, "a share from 0 to 1"},
	{"share_sw_thermal", 0, 1, "a share from 0 to 1"},
}

// Read reads telemetry from a CSV file with a header. It needs the columns gpu
// (card number), t_s (start of the bin, s), temp_c (degrees Celsius), sm_mhz
// (MHz), power_w (W), util_pct (0 to 100), share_power_cap and share_sw_thermal
// (0 to 1), in any order, and ignores others. Every card must have every bin once,
// and the bins must be equally long. An error names file, line, field and what was
// expected.
func Read(path string) (*Telemetry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("heat: %w", err)
	}
	defer f.Close()
	return read(path, f)
}

type row struct {
	line int
	v    [8]float64 // as columns
}

func read(path string, from io.Reader) (*Telemetry, error) {
	rows, err := readRows(path, from)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{Path: path}
	if err := t.arrange(rows); err != nil {
		return nil, err
	}
	if err := t.findLoads(); err != nil {
		return nil, err
	}
	return t, nil
}

func readRows(path string, from io.Reader) ([]row, error) {
	in := csv.NewReader(from)
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("heat: %s: empty, want a header and rows", path)
	}
	if err != nil {
		return nil, fmt.Errorf("heat: %s: %w", path, err)
	}
	var at [8]int
	var missing []error
	for k, c := range columns {
		at[k] = slices.Index(header, c.name)
		if at[k] < 0 {
			missing = append(missing, fmt.Errorf("heat: %s: line 1: no column %s, want %s", path, c.name, c.want))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return nil, err
	}
	var rows []row
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("heat: %s: %w", path, err)
		}
		line, _ := in.FieldPos(0)
		r := row{line: line}
		for k, c := range columns {
			text := record[at[k]]
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || !(v >= c.low && v <= c.high) || k == 0 && v != math.Trunc(v) {
				return nil, fmt.Errorf("heat: %s: line %d: %s: got %q, want %s", path, line, c.name, text, c.want)
			}
			r.v[k] = v
		}
		rows = append(rows, r)
	}
}

// arrange sorts rows into cards and bins.
func (t *Telemetry) arrange(rows []row) error {
	type key struct {
		gpu int
		at  float64
	}
	seen := map[key]row{}
	var times []float64
	for _, r := range rows {
		k := key{int(r.v[0]), r.v[1]}
		if other, twice := seen[k]; twice {
			return fmt.Errorf("heat: %s: line %d: gpu %d at t_s %v: also on line %d, want each bin once", t.Path, r.line, k.gpu, k.at, other.line)
		}
		seen[k] = r
		if !slices.Contains(t.GPUs, k.gpu) {
			t.GPUs = append(t.GPUs, k.gpu)
		}
		if !slices.Contains(times, k.at) {
			times = append(times, k.at)
		}
	}
	slices.Sort(t.GPUs)
	slices.Sort(times)
	if len(times) < 3 {
		return fmt.Errorf("heat: %s: t_s: got %d bins, want at least 3", t.Path, len(times))
	}
	length := times[1] - times[0]
	for i := range times[1:] {
		if d := times[i+1] - times[i]; math.Abs(d-length) > 1e-6*max(1, times[i+1]) {
			return fmt.Errorf("heat: %s: t_s: bin at %v is %v s long, want %v s as the first", t.Path, times[i], d, length)
		}
	}
	t.Length = time.Duration(math.Round(length * 1e9))
	if t.Length < sample {
		return fmt.Errorf("heat: %s: t_s: got bins of %v, want at least %v", t.Path, t.Length, sample)
	}
	t.Bins = make([][]Bin, len(t.GPUs))
	for i, gpu := range t.GPUs {
		for _, at := range times {
			r, ok := seen[key{gpu, at}]
			if !ok {
				return fmt.Errorf("heat: %s: gpu %d: no row at t_s %v, want one row per card and bin", t.Path, gpu, at)
			}
			v := r.v
			t.Bins[i] = append(t.Bins[i], Bin{TempC: v[2], ClockMHz: v[3], PowerW: v[4], Util: v[5] / 100, PowerCap: v[6], Thermal: v[7]})
		}
	}
	return nil
}
