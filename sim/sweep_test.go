package sim

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/traces/report"
)

// smallSweep is two policies on four points, twice: 16 cells of ten seconds.
func smallSweep(t testing.TB, dir string) SweepConfig {
	f := smallFleet(t)
	f.Engine.Blocks = 241 // the published prompts need more than the small fleet has
	return SweepConfig{
		Fleet: f, FleetHash: "f00d", Policies: []policies.Choice{choice(t, "prefix_affinity"), choice(t, "round_robin")},
		WorkingSets: []float64{1, 3}, Skews: []float64{0, 1.4}, Users: []int{6}, Repetitions: 2,
		Window: 10 * time.Second, Warmup: 2 * time.Second, Seed: 1, Dir: dir,
	}
}

func sweep(t testing.TB, cfg SweepConfig) SweepResult {
	t.Helper()
	r, err := Sweep(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func cellsIn(t testing.TB, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, cellsFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWorkersChangeNothing(t *testing.T) {
	one, two := smallSweep(t, t.TempDir()), smallSweep(t, t.TempDir())
	two.Workers = 2
	a, b := sweep(t, one), sweep(t, two)
	want, got := cellsIn(t, one.Dir), cellsIn(t, two.Dir)
	if got != want {
		t.Errorf("two workers write\n%s\none\n%s", got, want)
	}
	if n := strings.Count(want, "\n"); n != 17 || a.Simulated != 16 || b.Simulated != 16 || a.Requests != b.Requests || len(a.Cells) != 16 {
		t.Errorf("got %d lines, %d and %d cells simulated of %d, %d and %d requests", n, a.Simulated, b.Simulated, len(a.Cells), a.Requests, b.Requests)
	}
	if _, err := os.Stat(filepath.Join(one.Dir, partFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: got %v, want it gone", partFile, err)
	}
	// Finished is finished.
	if again := sweep(t, one); again.Simulated != 0 || again.Requests != 0 || len(again.Cells) != 16 || cellsIn(t, one.Dir) != want {
		t.Errorf("again: %d cells simulated, %d known", again.Simulated, len(again.Cells))
	}
}

// A sweep that is stopped after any number of cells goes on where it was, and
// simulates no cell twice.
func TestStoppedSweepGoesOn(t *testing.T) {
	whole := smallSweep(t, t.TempDir())
	sweep(t, whole)
	want := cellsIn(t, whole.Dir)
	for _, stops := range [][]int{{1}, {3, 5}, {15}, {16}, {1, 1, 1}} {
		for _, workers := range []int{1, 2} {
			cfg := smallSweep(t, t.TempDir())
			cfg.Workers = workers
			simulated := map[cellKey]int{}
			for _, stop := range stops {
				interrupted(t, cfg, stop, simulated)
			}
			cfg.Progress = func(p SweepProgress) { simulated[keyOf(&p.Cell)]++ }
			before := len(simulated)
			r := sweep(t, cfg)
			if got := cellsIn(t, cfg.Dir); got != want {
				t.Errorf("stopped after %v cells, %d workers: got\n%s, want\n%s", stops, workers, got, want)
			}
			if r.Simulated != 16-before {
				t.Errorf("stopped after %v cells, %d workers: went on with %d, want the %d that were missing", stops, workers, r.Simulated, 16-before)
			}
			for k, n := range simulated {
				if n != 1 {
					t.Errorf("%+v was simulated %d times", k, n)
				}
			}
		}
	}
}

// interrupted runs a sweep until so many cells are new.
func interrupted(t *testing.T, cfg SweepConfig, stop int, simulated map[cellKey]int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fresh := 0
	cfg.Progress = func(p SweepProgress) {
		simulated[keyOf(&p.Cell)]++
		if fresh++; fresh == stop {
			cancel()
		}
		if p.Total != 16 || p.Done != fresh+p.Skipped {
			t.Errorf("progress says %d of %d done, %d skipped, after %d", p.Done, p.Total, p.Skipped, fresh)
		}
	}
	r, err := Sweep(ctx, cfg)
	if r.Simulated != fresh || fresh < stop {
		t.Errorf("%d cells simulated, %d told of, stopped after %d", r.Simulated, fresh, stop)
	}
	if len(simulated) < 16 && !errors.Is(err, context.Canceled) {
		t.Errorf("stopped after %d cells: got %v, want the context's error", fresh, err)
	}
	if got := strings.Count(cellsIn(t, cfg.Dir), "\n") - 1; got != len(simulated) {
		t.Errorf("stopped after %d cells, the directory holds %d", len(simulated), got)
	}
}

// What else is in a sweep is nothing to a cell.
func TestMoreCellsChangeNoCell(t *testing.T) {
	cfg := smallSweep(t, t.TempDir())
	sweep(t, cfg)
	base := strings.Split(strings.TrimSpace(cellsIn(t, cfg.Dir)), "\n")
	for what, more := range map[string]func(*SweepConfig){
		"a policy": func(c *SweepConfig) {
			c.Policies = append(c.Policies, choice(t, "power_of_two"), choice(t, "exact_residency"))
		},
		"a parameter":  func(c *SweepConfig) { c.Policies = append(c.Policies, choice(t, "prefix_affinity:spill_factor=0")) },
		"a point":      func(c *SweepConfig) { c.WorkingSets = []float64{0.5, 1, 3}; c.Skews = append(c.Skews, 0.33) },
		"users":        func(c *SweepConfig) { c.Users = []int{3, 6} },
		"a repetition": func(c *SweepConfig) { c.Repetitions = 3 },
		"an order":     func(c *SweepConfig) { slices.Reverse(c.Policies); slices.Reverse(c.Skews) },
	} {
		cfg := smallSweep(t, t.TempDir())
		more(&cfg)
		sweep(t, cfg)
		lines := strings.Split(cellsIn(t, cfg.Dir), "\n")
		for _, line := range base {
			if !slices.Contains(lines, line) {
				t.Errorf("with %s more, no line is %s", what, line)
			}
		}
	}
}

// Two cells whose published epochs coincide are still two cells.
func TestCoincidingEpochs(t *testing.T) {
	both := smallSweep(t, t.TempDir())
	both.WorkingSets, both.Repetitions = []float64{1}, 1
	both.Users, both.Skews = []int{4, 104}, []float64{0, 1}
	if Epoch(DriverClosed, 4, 1, 1, 1) != Epoch(DriverClosed, 104, 1, 0, 1) {
		t.Fatal("the epochs differ, choose other cells")
	}
	sweep(t, both)
	one := both
	one.Dir, one.Users, one.Skews = t.TempDir(), []int{104}, []float64{0}
	sweep(t, one)
	together := strings.Split(cellsIn(t, both.Dir), "\n")
	for line := range strings.Lines(cellsIn(t, one.Dir)) {
		if !slices.Contains(together, strings.TrimSuffix(line, "\n")) {
			t.Errorf("with other cells before it, no line is %s", line)
		}
	}
}

// The open loop writes its rates, and shares the rest.
func TestOpenSweep(t *testing.T) {
	cfg := smallSweep(t, t.TempDir())
	cfg.Users, cfg.Rates, cfg.Arrivals, cfg.Think = nil, []float64{4, 2}, "poisson", 2*time.Second
	r := sweep(t, cfg)
	if len(r.Cells) != 32 || r.Cells[0].Driver != DriverOpen || r.Cells[0].Load != 2 || r.Cells[31].Load != 4 {
		t.Errorf("got %d cells from %+v to %+v", len(r.Cells), r.Cells[0], r.Cells[len(r.Cells)-1])
	}
	for _, c := range r.Cells {
		if got := float64(c.Requests) / 8; got > c.Load*3 || got < c.Load/3 {
			t.Errorf("%v requests a second, want about %v", got, c.Load)
		}
	}
}

// A directory belongs to one sweep: whatever would give other cells is refused,
// and nothing in it is touched.
func TestOtherSweepIsRefused(t *testing.T) {
	cfg := smallSweep(t, t.TempDir())
	cfg.Policies, cfg.Repetitions = cfg.Policies[1:], 1
	sweep(t, cfg)
	want := cellsIn(t, cfg.Dir)
	for what, change := range map[string]func(*SweepConfig){
		"fleet": func(c *SweepConfig) { f := *c.Fleet; f.Name = "other"; c.Fleet = &f }, "fleet file": func(c *SweepConfig) { c.FleetHash = "beef" },
		"policy":      func(c *SweepConfig) { c.Policies = []policies.Choice{choice(t, "least_outstanding")} },
		"parameter":   func(c *SweepConfig) { c.Policies = []policies.Choice{choice(t, "session_affinity:virtual_nodes=64")} },
		"working set": func(c *SweepConfig) { c.WorkingSets = []float64{1} }, "skew": func(c *SweepConfig) { c.Skews = []float64{0, 1} },
		"users": func(c *SweepConfig) { c.Users = []int{7} }, "rates": func(c *SweepConfig) { c.Users, c.Rates = nil, []float64{6} },
		"arrivals": func(c *SweepConfig) { c.Arrivals = "poisson" }, "shape": func(c *SweepConfig) { c.Shape = 2 },
		"repetitions": func(c *SweepConfig) { c.Repetitions = 2 }, "window": func(c *SweepConfig) { c.Window++ },
		"warmup": func(c *SweepConfig) { c.Warmup++ }, "seed": func(c *SweepConfig) { c.Seed++ },
	} {
		other := cfg
		change(&other)
		if r, err := Sweep(context.Background(), other); !errors.Is(err, ErrOtherSweep) || r.Simulated != 0 {
			t.Errorf("another %s: got %d cells and %v, want %v", what, r.Simulated, err, ErrOtherSweep)
		}
		if got := cellsIn(t, cfg.Dir); got != want {
			t.Fatalf("another %s: changed the cells to\n%s", what, got)
		}
	}
	// The think time is the open loop's.
	open := cfg
	open.Dir, open.Users, open.Rates, open.Think = t.TempDir(), nil, []float64{3}, time.Second
	sweep(t, open)
	open.Think = 2 * time.Second
	if _, err := Sweep(context.Background(), open); !errors.Is(err, ErrOtherSweep) {
		t.Errorf("another think time: got %v, want %v", err, ErrOtherSweep)
	}
}

// Cells without a plan, or of no point of the plan, are another sweep's.
func TestForeignCellsAreRefused(t *testing.T) {
	cfg := smallSweep(t, t.TempDir())
	cfg.Policies, cfg.Repetitions = cfg.Policies[1:], 1
	sweep(t, cfg)
	text := cellsIn(t, cfg.Dir)
	write(t, filepath.Join(cfg.Dir, cellsFile), strings.Replace(text, "round_robin,", "least_outstanding,", 1))
	_, err := Sweep(context.Background(), cfg)
	if !errors.Is(err, ErrOtherSweep) {
		t.Errorf("a cell of another policy: got %v, want %v", err, ErrOtherSweep)
	}
	wantError(t, err, cellsFile, "least_outstanding")
	write(t, filepath.Join(cfg.Dir, cellsFile), text)
	if err := os.Remove(filepath.Join(cfg.Dir, planFile)); err != nil {
		t.Fatal(err)
	}
	_, err = Sweep(context.Background(), cfg)
	if !errors.Is(err, ErrOtherSweep) {
		t.Errorf("no plan: got %v, want %v", err, ErrOtherSweep)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// A process that was killed left whole lines and perhaps a part of one: the
// whole ones count.
func TestTornLineIsRecovered(t *testing.T) {
	cfg := smallSweep(t, t.TempDir())
	sweep(t, cfg)
	want := cellsIn(t, cfg.Dir)
	plan, err := os.ReadFile(filepath.Join(cfg.Dir, planFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(want, "\n")
	for _, left := range []struct{ cells, part string }{
		{"", strings.Join(lines[:6], "") + lines[6][:len(lines[6])/2]},
		{"", strings.Join(lines[:6], "") + strings.TrimSuffix(lines[6], "\n")},
		{"", lines[0] + lines[1][:1]},
		{"", lines[0][:10]},
		{"", ""},
		{strings.Join(lines[:4], ""), lines[0] + lines[7] + lines[5] + "closed,6"},
		{strings.Join(lines[:4], ""), lines[0] + lines[2] + lines[5]}, // moved, and killed before the part was gone
	} {
		cfg.Dir = t.TempDir()
		write(t, filepath.Join(cfg.Dir, planFile), string(plan))
		write(t, filepath.Join(cfg.Dir, partFile), left.part)
		whole := map[string]bool{}
		if left.cells != "" {
			write(t, filepath.Join(cfg.Dir, cellsFile), left.cells)
		}
		for line := range strings.Lines(left.cells + left.part) {
			if strings.HasSuffix(line, "\n") && line != lines[0] {
				whole[line] = true
			}
		}
		r := sweep(t, cfg)
		if r.Simulated != 16-len(whole) {
			t.Errorf("left %q: simulated %d cells, want %d", left.part, r.Simulated, 16-len(whole))
		}
		if got := cellsIn(t, cfg.Dir); got != want {
			t.Errorf("left %q: got\n%s, want\n%s", left.part, got, want)
		}
	}
	// A line broken in the middle is no torn one.
	write(t, filepath.Join(cfg.Dir, partFile), lines[0]+"closed,6\n"+lines[2])
	_, err = Sweep(context.Background(), cfg)
	wantError(t, err, partFile, "row 1")
}

func TestUnwritableDirectory(t *testing.T) {
	cfg := smallSweep(t, "")
	_, err := Sweep(context.Background(), cfg)
	wantError(t, err, "no output directory")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "mine")
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		cfg.Dir = dir
		if r, err := Sweep(context.Background(), cfg); err == nil || r.Simulated != 0 {
			t.Errorf("%s: got %d cells and %v, want an error", dir, r.Simulated, err)
		}
	}
	if text, _ := os.ReadFile(file); string(text) != "mine" {
		t.Errorf("the file in the way holds %q now", text)
	}
}

// With no space left the sweep stops at once and says so; what is finished stays.
func TestNoSpaceLeft(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	cfg := smallSweep(t, t.TempDir())
	interrupted(t, cfg, 3, map[cellKey]int{})
	before := cellsIn(t, cfg.Dir)
	jobs := cfg.jobs()
	store, err := openStore(&cfg, jobs)
	if err != nil {
		t.Fatal(err)
	}
	store.cells.part.Close()
	store.cells.part = full
	s := &sweeper{cfg: &cfg, store: store, todo: jobs[3:], total: 16, skipped: 3}
	wantError(t, s.run(context.Background()), "no space left")
	if cells, _, err := store.close(); err != nil || s.done != 0 || s.next != 1 || len(cells) != 3 || cellsIn(t, cfg.Dir) != before {
		t.Errorf("%v: %d cells begun, %d done, %d kept, the directory holds\n%s, want what it had", err, s.next, s.done, len(cells), cellsIn(t, cfg.Dir))
	}
}

// A cell whose requests all fail to end in the window is an error, not a row of
// zeros, and the others are simulated all the same.
func TestSweepThatCompletesNothing(t *testing.T) {
	cfg := smallSweep(t, t.TempDir())
	cfg.Users, cfg.Rates = nil, []float64{0.001, 20}
	r, err := Sweep(context.Background(), cfg)
	wantError(t, err, "no request of the window completed", "working set 1, skew 0")
	if want := len(cfg.jobs()) / 2; len(r.Cells) != want {
		t.Errorf("%d cells beside the error, want the %d of the other rate", len(r.Cells), want)
	}
}

func TestSweepFaults(t *testing.T) {
	cfg := smallSweep(t, "")
	cfg.Policies = append(cfg.Policies, choice(t, "round_robin"))
	cfg.WorkingSets, cfg.Skews = []float64{1, 1, -1}, nil
	cfg.Rates, cfg.Repetitions, cfg.Warmup = []float64{1}, 0, cfg.Window
	_, err := Sweep(context.Background(), cfg)
	wantError(t, err, "round_robin: is given twice", "working set: got 1, want positive ratios, each once", "working set: got -1",
		"skew: none", "users and rate: want one of them", "repetitions: got 0", "window and warmup: got 10s and 10s", "no output directory")
	cfg = SweepConfig{}
	_, err = Sweep(context.Background(), cfg)
	wantError(t, err, "no fleet")
}

// A result becomes a cell without loss of the counts.
func TestNewCell(t *testing.T) {
	r := Result{}
	r.Summary.IdleBeforeEvictP90 = 2.8
	r.Summary.Requests, r.Summary.Success, r.Summary.SLOViolation, r.Summary.Dropped, r.Summary.GoodputRPS = 10, 9, 2, 1, 0.5
	got := NewCell(DriverOpen, 6, 1, 1.4, "p", "k=v", 2, &r)
	want := report.Cell{
		Driver: "open", Load: 6, WorkingSet: 1, Skew: 1.4, Policy: "p", Parameters: "k=v", Repetition: 2,
		Requests: 10, Success: 9, SLOViolation: 2, Dropped: 1, GoodputRPS: 0.5, IdleBeforeEvictP90Second: 2.8,
	}
	var a, b bytes.Buffer
	if err := errors.Join(report.WriteCells(&a, []report.Cell{got}), report.WriteCells(&b, []report.Cell{want})); err != nil || a.String() != b.String() {
		t.Errorf("got %s, want %s (%v)", a.String(), b.String(), err)
	}
}

// Another version of the program goes on with a sweep and says whose it was.
func TestSweepSaysWhoBeganIt(t *testing.T) {
	cfg := smallSweep(t, t.TempDir())
	cfg.Program = "kvfleet 1"
	whole, err := Sweep(context.Background(), cfg)
	if err != nil || whole.BegunBy != "kvfleet 1" {
		t.Fatalf("begun by %q, %v", whole.BegunBy, err)
	}
	cfg.Program = "kvfleet 2"
	again, err := Sweep(context.Background(), cfg)
	if err != nil || again.BegunBy != "kvfleet 1" || again.Simulated != 0 || len(again.Cells) != len(whole.Cells) {
		t.Errorf("begun by %q, %d simulated, %v", again.BegunBy, again.Simulated, err)
	}
	// The order of an axis is no difference; a seed is, to the last bit.
	slices.Reverse(cfg.Policies)
	slices.Reverse(cfg.Skews)
	if again, err = Sweep(context.Background(), cfg); err != nil || again.Simulated != 0 {
		t.Errorf("other order: %d simulated, %v", again.Simulated, err)
	}
	cfg.Seed++
	_, err = Sweep(context.Background(), cfg)
	wantError(t, err, "differs from what was asked for in seed: ")
}
