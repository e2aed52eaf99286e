package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"kvfleet/calibrate"
	"kvfleet/sim"
)

type calibrateOptions struct {
	in          calibrate.Inputs
	out, report string
	name        string
	force       bool
	seed        uint64
	draws       int
	folds       int
	gpus        []int
}

func (a *app) calibrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "calibrate --base FLEET --out FILE [measurements]",
		Short: "Fit a fleet file to measurements",
		Long: `Fits a fleet's constants to measurements and writes a fleet file: every number
with its unit, 95% interval, the rows behind it and how they told it, and draws of
all of them together (sweep --fleet-samples uses those). Give any of: a step log,
captured traces, GPU telemetry, engine settings.

A constant that the rows do not tell keeps the base's value and is marked prior;
one that they only tell together with another is refused; both name the run that
would tell. Rows that contradict themselves are named and left out. Without --hold,
each part of the traces' time is predicted from a fit to the others, and whole step
shapes are held out in turn.

Steps: engine_steps.csv's columns, or a step log of run --steps. Traces: what
trace convert reads and has run. Telemetry: thermal.csv's columns. Settings: JSON
with block_size, num_gpu_blocks, max_num_batched_tokens, max_num_seqs,
max_model_len, async_scheduling, data_parallel_size.`,
		Example: `  kvfleet calibrate --base h100x1 --settings server_config.json --trace agg_2rps/trace.csv --trace agg_4rps/trace.csv --out h100.yaml
  kvfleet calibrate --base rtx3090x5 --steps engine_steps.csv --thermal thermal.csv --trace probe_c1_replica0.csv --trace probe_c32_replica0.csv --trace rows_session_affinity_open6.csv --out fleet.yaml --report out/calibration`,
		Args: cobra.NoArgs,
	}
	f := newFlags(c)
	o := &calibrateOptions{}
	one(f, &o.in.BaseName, named("NAME|FILE", "a fleet or a fleet file"), "base", "the fleet to start from; its numbers stay where the measurements say nothing", "")
	complete(c, "base", sim.FleetNames())
	one(f, &o.in.Steps, files(), "steps", "engine step log (CSV or .arrows)", "")
	texts(f, &o.in.Traces, "FILE", "trace", "captured requests to fit, repeatable")
	one(f, &o.in.Thermal, files(), "thermal", "GPU telemetry (CSV)", "")
	list(f, &o.gpus, counts(0), "gpus", "telemetry: the number of each of the base's cards, if not as the base says", "")
	one(f, &o.in.Settings, files(), "settings", "engine settings (JSON)", "")
	texts(f, &o.in.Hold, "FILE", "hold", "captured requests to judge by and not to fit, repeatable")
	one(f, &o.out, files(), "out", "the fleet file to write", "")
	one(f, &o.name, words(), "name", "the new fleet's name; the base's if not given", "")
	one(f, &o.report, directories(), "report", "also write report.md, report.html, tables and figures there", "")
	one(f, &o.seed, seeds(), "seed", "of starting points, folds and bootstrap draws", "1")
	one(f, &o.draws, countsTo(1, 200), "draws", "draws to keep in the fleet file", "32")
	one(f, &o.folds, counts(1), "folds", "parts of the traces' time that are predicted in turn; 1 is none", "3")
	c.Flags().BoolVar(&o.force, "force", false, "write over an existing fleet file")
	c.RunE = func(c *cobra.Command, _ []string) error { return a.calibrate(c.Context(), f, o) }
	return c
}

func (o *calibrateOptions) check(f *flags) {
	if o.in.BaseName == "" {
		f.fault("--base: missing, want one of %s, or a fleet file", strings.Join(sim.FleetNames(), ", "))
	} else if base, err := loadFleet(o.in.BaseName); err != nil {
		f.fault("--base: %w", err)
	} else {
		o.in.Base = base.Fleet
	}
	if o.out == "" {
		f.fault("--out: missing, want a fleet file to write")
	} else if _, err := os.Stat(o.out); err == nil && !o.force {
		f.fault("--out: %s is there already; --force writes over it", o.out)
	} else if info, err := os.Stat(filepath.Dir(o.out)); err != nil || !info.IsDir() {
		f.fault("--out: %s is no directory to write into", filepath.Dir(o.out))
	}
	if o.in.Steps == "" && o.in.Thermal == "" && o.in.Settings == "" && len(o.in.Traces) == 0 {
		f.fault("want at least one of --steps, --trace, --thermal and --settings")
	}
	f.only(len(o.in.Traces) > 0, "without --trace", "hold", "folds")
	f.only(o.in.Thermal != "", "without --thermal", "gpus")
	if o.in.Base != nil && len(o.gpus) > 0 && o.in.Base.Thermal != nil && len(o.gpus) != len(o.in.Base.Thermal.Cards) {
		f.fault("--gpus: got %d numbers, the base has %d cards", len(o.gpus), len(o.in.Base.Thermal.Cards))
	}
}

func (a *app) calibrate(ctx context.Context, f *flags, o *calibrateOptions) error {
	o.check(f)
	if err := f.err(); err != nil {
		return err
	}
	o.in.GPUs = o.gpus
	folds := o.folds
	if folds == 1 {
		folds = -1
	}
	w := a.watchStages()
	result, err := await(ctx, abandonAfter, func() (*calibrate.Result, error) {
		return calibrate.Run(ctx, o.in, calibrate.Options{Seed: o.seed, Draws: o.draws, Folds: folds, Progress: w.progress})
	})
	w.stop()
	if errors.Is(err, errAbandoned) || errors.Is(err, context.Canceled) {
		return errors.New("calibrate: interrupted; nothing was written")
	}
	if err != nil {
		return err
	}
	if o.name != "" {
		result.Fleet.Name = o.name
	}
	for _, text := range result.Warnings {
		a.talk("warning: %s", text)
	}
	for _, text := range result.Refused {
		a.talk("refused: %s", text)
	}
	text, err := result.Encode()
	if err != nil {
		return err
	}
	if err := writeOut(o.out, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	if _, err := a.stdout.WriteString(result.Summary()); err != nil {
		return err
	}
	if o.report != "" {
		paths, err := result.WriteReport(o.report)
		if err != nil {
			return err
		}
		a.talk("wrote %s and %s to %s", filepath.Join(o.report, "report.html"), plural(int64(len(paths)-1), "more file"), o.report)
	}
	a.talk("wrote %s", o.out)
	return nil
}

// stages shows what a calibration is at: a line that changes on a terminal, else
// a line for every stage.
type stages struct {
	a    *app
	mu   sync.Mutex
	last string
	text string
	bar  *mpb.Bar
	p    *mpb.Progress
}

func (a *app) watchStages() *stages {
	s := &stages{a: a}
	if terminal(a.stderr) {
		s.p = mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(1))
		s.bar = s.p.New(0, mpb.NopStyle(), mpb.PrependDecorators(decor.Spinner(nil), decor.Any(func(decor.Statistics) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return " " + s.text
		})))
	}
	return s
}

func (s *stages) progress(stage, detail string) {
	s.mu.Lock()
	fresh := stage != s.last
	s.last, s.text = stage, stage+": "+detail
	s.mu.Unlock()
	if s.bar == nil && fresh {
		s.a.talk("%s", fmt.Sprintf("%s: %s", stage, detail))
	}
}

func (s *stages) stop() {
	if s.bar != nil {
		s.bar.Abort(true)
		s.p.Wait()
	}
}
