package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvfleet/policies"
	"kvfleet/traces/report"
)

// drawnSweep is smallSweep with two of a fleet's three draws: 16 cells, and 32.
// The draws change what cells share between them too: the fleet's tokenizer.
func drawnSweep(t testing.TB, dir string) SweepConfig {
	cfg := smallSweep(t, dir)
	f := *cfg.Fleet
	f.Draws = &Draws{
		Paths:  []string{"front_end.service_ms", "tokenizer.bytes_per_token"},
		Values: [][]float64{{f.FrontEnd.ServiceMS, f.Tokenizer.BytesPerToken}, {f.FrontEnd.ServiceMS + 40, f.Tokenizer.BytesPerToken * 1.1}, {1, 4}},
	}
	cfg.Fleet, cfg.FleetSamples = &f, 2
	return cfg
}

func samplesIn(t testing.TB, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, samplesFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A draw equal to the fleet gives the fleet's cells; another gives what a sweep of
// that fleet gives, its prompts included; and the fleet's own cells are as ever.
func TestDrawsAreFleetsOfTheirOwn(t *testing.T) {
	cfg := drawnSweep(t, t.TempDir())
	r := sweep(t, cfg)
	if len(r.Cells) != 16 || len(r.Samples) != 32 || r.Simulated != 48 {
		t.Fatalf("got %d cells and %d of draws, %d simulated", len(r.Cells), len(r.Samples), r.Simulated)
	}
	plain := drawnSweep(t, t.TempDir())
	plain.FleetSamples = 0
	if sweep(t, plain); cellsIn(t, cfg.Dir) != cellsIn(t, plain.Dir) {
		t.Errorf("with draws the fleet's own cells are\n%s, want\n%s", cellsIn(t, cfg.Dir), cellsIn(t, plain.Dir))
	}
	second := plain
	second.Dir = t.TempDir()
	second.Fleet, _ = cfg.Fleet.Draw(1)
	sweep(t, second)
	ofDraws := strings.SplitAfter(samplesIn(t, cfg.Dir), "\n")
	for i, dir := range []string{plain.Dir, second.Dir} {
		for j, line := range strings.SplitAfter(cellsIn(t, dir), "\n")[1:17] {
			if got, want := ofDraws[1+16*i+j], string(rune('1'+i))+","+line; got != want {
				t.Errorf("samples.csv: got\n%swant\n%s", got, want)
			}
		}
	}
	if cellsIn(t, second.Dir) == cellsIn(t, plain.Dir) {
		t.Error("the second draw changes nothing")
	}
}

// Stopped anywhere, with whatever workers, the same bytes come of it, and no cell is
// simulated twice.
func TestStoppedDrawsGoOn(t *testing.T) {
	whole := drawnSweep(t, t.TempDir())
	sweep(t, whole)
	for _, stops := range [][]int{{5}, {16}, {17, 9}, {40}, {}} {
		cfg := drawnSweep(t, t.TempDir())
		cfg.Workers = 1 + len(stops)%2
		simulated := map[cellKey]int{}
		tell := func(p SweepProgress) {
			simulated[sampleKey(&report.Sample{Draw: p.Draw, Cell: p.Cell})]++
			if p.Total != 48 {
				t.Errorf("progress says %d of %d", p.Done, p.Total)
			}
		}
		for _, stop := range stops {
			ctx, cancel := context.WithCancel(context.Background())
			fresh := 0
			cfg.Progress = func(p SweepProgress) {
				if tell(p); fresh == stop-1 {
					cancel()
				}
				fresh++
			}
			if _, err := Sweep(ctx, cfg); !errors.Is(err, context.Canceled) {
				t.Errorf("stopped after %d: got %v", stop, err)
			}
			cancel()
		}
		cfg.Progress, cfg.Workers = tell, 2
		sweep(t, cfg)
		if cellsIn(t, cfg.Dir) != cellsIn(t, whole.Dir) || samplesIn(t, cfg.Dir) != samplesIn(t, whole.Dir) {
			t.Errorf("stopped after %v: got other cells", stops)
		}
		for k, n := range simulated {
			if n != 1 {
				t.Errorf("%+v was simulated %d times", k, n)
			}
		}
		if parts, _ := filepath.Glob(filepath.Join(cfg.Dir, "*.part.csv")); len(simulated) != 48 || parts != nil {
			t.Errorf("stopped after %v: %d cells simulated, %v left", stops, len(simulated), parts)
		}
	}
}

// A torn last line of samples.part.csv is simulated again, nothing else.
func TestTornSampleIsRecovered(t *testing.T) {
	cfg := drawnSweep(t, t.TempDir())
	sweep(t, cfg)
	want := samplesIn(t, cfg.Dir)
	lines := strings.SplitAfter(want, "\n")
	if err := os.Remove(filepath.Join(cfg.Dir, samplesFile)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(cfg.Dir, "samples.part.csv"), lines[0]+lines[20]+lines[3]+lines[8][:30])
	if r := sweep(t, cfg); r.Simulated != 30 || samplesIn(t, cfg.Dir) != want {
		t.Errorf("simulated %d cells, want 30 and the same bytes", r.Simulated)
	}
}

// How many draws is part of what a directory is of.
func TestOtherDrawsAreRefused(t *testing.T) {
	cfg := drawnSweep(t, t.TempDir())
	cfg.Policies, cfg.Repetitions = []policies.Choice{choice(t, "round_robin")}, 1
	sweep(t, cfg)
	for _, n := range []int{0, 1, 3} {
		cfg.FleetSamples = n
		_, err := Sweep(context.Background(), cfg)
		if !errors.Is(err, ErrOtherSweep) {
			t.Errorf("%d draws: got %v, want %v", n, err, ErrOtherSweep)
		}
		wantError(t, err, "asked for in fleet_samples")
	}
	cfg.FleetSamples = 2
	write(t, filepath.Join(cfg.Dir, samplesFile), strings.Replace(samplesIn(t, cfg.Dir), "\n2,", "\n3,", 1))
	_, err := Sweep(context.Background(), cfg)
	wantError(t, err, samplesFile+" has a cell this sweep has not")
}

func TestMissingDraws(t *testing.T) {
	cfg := drawnSweep(t, t.TempDir())
	cfg.FleetSamples = 4
	_, err := Sweep(context.Background(), cfg)
	wantError(t, err, "fleet samples: fleet "+cfg.Fleet.Name+" has 3 draws, want 4: kvfleet calibrate writes them")
	cfg.Fleet.Draws = nil
	_, err = Sweep(context.Background(), cfg)
	wantError(t, err, "has 0 draws, want 4")
	cfg.FleetSamples = -1
	_, err = Sweep(context.Background(), cfg)
	wantError(t, err, "fleet samples: got -1")
}
