package calibrate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"kvfleet/calibrate/fit"
	"kvfleet/calibrate/heat"
	"kvfleet/calibrate/judge"
	"kvfleet/calibrate/replay"
	"kvfleet/calibrate/requests"
	"kvfleet/calibrate/steps"
	"kvfleet/sim"
	"kvfleet/traces/seed"
)

// Inputs are what a calibration starts from. Any subset of the measurements will
// do, but not none.
type Inputs struct {
	Base *sim.Fleet
	// BaseName is what the base is called in what is written.
	BaseName string
	Steps    string   // an engine step log
	Thermal  string   // GPU telemetry
	Settings string   // engine settings
	Traces   []string // captured requests
	Hold     []string // captured requests that are judged and not fitted
	// GPUs are the telemetry's numbers of the base's cards, in the base's order; nil
	// is what the base says.
	GPUs []int
}

// Options of a calibration. The zero value is a full one.
type Options struct {
	Seed uint64
	// Draws is how many bootstrap draws the fleet file keeps; 0 is 32.
	Draws int
	// Folds is into how many parts of time the traces are cut to judge the fit
	// where nothing is held out; 0 is 3, -1 none.
	Folds int
	// Progress, if not nil, is told what is under way.
	Progress func(stage, detail string)
}

// intervalDraws is how many bootstrap draws intervals rest on.
const intervalDraws = 200

// A Result is a calibrated fleet and all that is known about it.
type Result struct {
	Inputs Inputs
	Fleet  *sim.Fleet
	// Estimates are of every number that the measurements told or were asked about.
	Estimates []fit.Estimate
	Steps     *steps.Result
	Heat      *heat.Result
	Requests  *requests.Result
	// InSample compares the fitted traces, Held what was not fitted: held files, or
	// the traces' parts of time, each predicted from the others.
	InSample, Held []*judge.Comparison
	Outcomes       [][]replay.Outcome // by recording, of the calibrated fleet
	Refused        []string           // what the data cannot say, and the run that would
	Warnings       []string
	Recordings     []*replay.Recording // as in Inputs.Traces, then Inputs.Hold
}

// ErrNothing is what Run reports when there is nothing to calibrate from.
var ErrNothing = errors.New("calibrate: no measurement given; want a step log, a trace, telemetry or settings")

// run carries a calibration under way.
type run struct {
	*Result
	ctx      context.Context
	o        Options
	settings []Setting
	traces   []requests.Trace
	base     *sim.Fleet // with settings and what earlier stages told
}

// Run calibrates. Its error is a user's mistake, or ctx's.
func Run(ctx context.Context, in Inputs, o Options) (*Result, error) {
	if in.Steps == "" && in.Thermal == "" && in.Settings == "" && len(in.Traces) == 0 {
		return nil, ErrNothing
	}
	if o.Draws == 0 {
		o.Draws = 32
	}
	if o.Folds == 0 {
		o.Folds = 3
	}
	if o.Progress == nil {
		o.Progress = func(string, string) {}
	}
	r := &run{Result: &Result{Inputs: in}, ctx: ctx, o: o, base: in.Base.Copy()}
	r.base.Draws = nil
	for _, stage := range []func() error{r.takeSettings, r.openTraces, r.rows, r.steps, r.heat, r.requests, r.assemble, r.judge} {
		if err := stage(); err != nil {
			return nil, err
		}
	}
	return r.Result, nil
}

func (r *run) takeSettings() error {
	if r.Inputs.Settings == "" {
		return nil
	}
	settings, err := ReadSettings(r.Inputs.Settings)
	if err != nil {
		return err
	}
	r.settings = settings
	r.Estimates = append(r.Estimates, apply(r.base, settings, filepath.Base(r.Inputs.Settings))...)
	if err := r.base.Validate(); err != nil {
		return fmt.Errorf("%s: with these settings: %w", r.Inputs.Settings, err)
	}
	return nil
}

// openTraces reads every trace and checks that they are of one engine.
func (r *run) openTraces() error {
	engines := map[string]string{}
	for _, path := range append(append([]string(nil), r.Inputs.Traces...), r.Inputs.Hold...) {
		r.o.Progress("reading", path)
		rec, err := replay.Open(path)
		if err != nil {
			return err
		}
		if e := rec.Meta.Fleet.Engine; e != "" {
			engines[e] = path
		}
		for i, x := range rec.Excluded {
			if i == 20 {
				r.warn("%s: and %d more rows left out", path, len(rec.Excluded)-i)
				break
			}
			r.warn("%s: %v: left out", path, x)
		}
		for _, text := range rec.Remarks {
			r.warn("%s: %s", path, text)
		}
		r.Recordings = append(r.Recordings, rec)
	}
	if len(engines) > 1 {
		text := ""
		for _, e := range sortedKeys(engines) {
			text += fmt.Sprintf("\n  %s: %s", engines[e], e)
		}
		return fmt.Errorf("calibrate: the traces are of engines with different settings; calibrate each by itself:%s", text)
	}
	for e, path := range engines {
		if want := r.base.EngineText(); e != want {
			return fmt.Errorf("%s: was captured on an engine with %s, the base has %s: give --settings or another base", path, e, want)
		}
	}
	return nil
}

// fitted are the recordings that are fitted.
func (r *run) fitted() []*replay.Recording { return r.Recordings[:len(r.Inputs.Traces)] }

func (r *run) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

func (r *run) steps() error {
	if r.Inputs.Steps == "" {
		return nil
	}
	r.o.Progress("steps", r.Inputs.Steps)
	log, err := steps.Read(r.Inputs.Steps)
	if err != nil {
		return err
	}
	result, err := steps.Fit(r.ctx, log, r.base.Step, steps.Options{
		Seed: r.o.Seed, Draws: intervalDraws, Progress: func(what string) { r.o.Progress("steps", what) },
	})
	if err != nil {
		return fmt.Errorf("%s: %w", r.Inputs.Steps, err)
	}
	r.Steps = result
	r.base.Step = result.Params
	r.Warnings = append(append(r.Warnings, log.Warnings...), result.Warnings...)
	r.Refused = append(r.Refused, result.Refused...)
	return nil
}

func (r *run) heat() error {
	if r.Inputs.Thermal == "" {
		return nil
	}
	r.o.Progress("thermals", r.Inputs.Thermal)
	if r.base.Thermal == nil {
		return fmt.Errorf("%s: base fleet %s has no thermal section to start from", r.Inputs.Thermal, r.Inputs.BaseName)
	}
	gpus := r.Inputs.GPUs
	if gpus == nil {
		gpus = r.base.Thermal.Numbers
	}
	telemetry, err := heat.Read(r.Inputs.Thermal)
	if err != nil {
		return err
	}
	result, err := heat.Fit(r.ctx, telemetry, r.base.Thermal, heat.Options{
		Seed: r.o.Seed, Draws: intervalDraws, GPUs: gpus, RoomC: roomC,
		Progress: func(start, round int, cost float64) {
			r.o.Progress("thermals", fmt.Sprintf("start %d, round %d: cost %.3f", start+1, round+1, cost))
		},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", r.Inputs.Thermal, err)
	}
	r.Heat = result
	r.base.Thermal = result.Thermal
	if err := r.ambient(); err != nil {
		return err
	}
	r.Warnings = append(r.Warnings, result.Warnings...)
	return nil
}

func (r *run) requests() error {
	if len(r.Inputs.Traces) == 0 {
		return nil
	}
	for _, rec := range r.Recordings {
		if err := rec.FitTo(r.base); err != nil {
			return err
		}
	}
	for _, rec := range r.fitted() {
		r.traces = append(r.traces, requests.Trace{Recording: rec})
	}
	o := requests.Options{
		Seed: seed.Seed(r.o.Seed), Steps: r.Steps != nil, Ambient: r.Heat != nil, Draws: intervalDraws,
		Async: statesAsync(r.settings) || r.asyncKnown(),
		Progress: func(stage string, round int, cost float64) {
			r.o.Progress(stage, fmt.Sprintf("round %d: loss %.4f", round+1, cost))
		},
	}
	if r.Steps != nil {
		o.StepSD = map[string]float64{}
		for _, e := range r.Steps.Estimates {
			if e.Verdict == fit.Measured {
				o.StepSD[e.Path] = (e.High - e.Low) / (2 * 1.96)
			}
		}
	}
	result, err := requests.Fit(r.ctx, r.base, r.traces, o)
	if err != nil {
		return err
	}
	r.Requests = result
	for _, e := range result.Estimates {
		if e.Verdict == fit.Refused {
			r.Refused = append(r.Refused, fmt.Sprintf("%s: %s; %s", e.Path, e.How, e.Advice))
		}
	}
	return nil
}

// asyncKnown says that the base's own word on scheduling was measured or stated.
func (r *run) asyncKnown() bool {
	p, ok := r.base.Provenance["engine.async_scheduling"]
	return ok && p.Verdict != fit.Prior.String()
}
