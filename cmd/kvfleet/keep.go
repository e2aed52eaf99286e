package main

import (
	"encoding/json"
	"errors"
	"os"

	"kvfleet/sim"
	"kvfleet/sim/engine"
	"kvfleet/traces"
)

// A keeper writes what a run is asked to keep. The first write that fails
// cancels the run.
type keeper struct {
	fail      func(error)
	rows      *traces.Writer
	steps     *traces.StepWriter
	decisions *outFile
}

// keep opens the outputs and hooks them to the run. If one cannot be opened, none
// is left behind.
func (o *runOptions) keep(j *job, fail func(error)) (*keeper, error) {
	k := &keeper{fail: fail}
	j.name()
	err := k.open(o, j)
	if err == nil {
		return k, nil
	}
	err = errors.Join(err, k.close((*traces.Writer).Abort, (*traces.StepWriter).Abort, (*outFile).leave))
	for _, out := range []struct {
		opened bool
		path   string
	}{{k.rows != nil, o.out}, {k.steps != nil, o.steps}, {k.decisions != nil, o.decisions}} {
		if out.opened {
			err = errors.Join(err, os.Remove(out.path+traces.PartSuffix))
		}
	}
	return nil, err
}

// removeParts removes outputs into which nothing was written. It touches no
// writer: a run that was left behind may still hold them.
func (o *runOptions) removeParts() error {
	var errs []error
	for _, path := range []string{o.out, o.steps, o.decisions} {
		if path != "" {
			errs = append(errs, ignoreMissing(os.Remove(path+traces.PartSuffix)))
		}
	}
	return errors.Join(errs...)
}

func (k *keeper) open(o *runOptions, j *job) (err error) {
	if o.out != "" {
		if k.rows, err = traces.Create(o.out, j.meta, traces.Options{}); err != nil {
			return err
		}
		j.cfg.Rows = func(r *traces.Row) { k.note(k.rows.Write(r)) }
	}
	if o.steps != "" {
		if k.steps, err = traces.CreateSteps(o.steps, j.meta, traces.Options{}); err != nil {
			return err
		}
		j.cfg.Steps = func(replica string, s engine.Step) { k.note(k.step(replica, s)) }
	}
	if o.decisions != "" {
		if k.decisions, err = createOut(o.decisions); err != nil {
			return err
		}
		log := json.NewEncoder(k.decisions)
		j.cfg.Decided = func(d sim.DecisionRecord) { k.note(log.Encode(d)) }
	}
	return nil
}

func (k *keeper) note(err error) {
	if err != nil {
		k.fail(err)
	}
}

func (k *keeper) step(replica string, s engine.Step) error {
	return k.steps.Write(&traces.StepRow{
		Start: traces.At(s.Start), Duration: int64(s.Busy), Replica: replica,
		PrefillRequests: int64(s.PrefillReqs), PrefillTokens: int64(s.PrefillTokens), PrefillContext: s.PrefillContext,
		DecodeRequests: int64(s.DecodeReqs), DecodeContext: s.DecodeContext, Preemptions: int64(s.Preemptions),
	})
}

func (k *keeper) close(rows func(*traces.Writer) error, steps func(*traces.StepWriter) error, decisions func(*outFile) error) error {
	var errs []error
	if k.rows != nil {
		errs = append(errs, rows(k.rows))
	}
	if k.steps != nil {
		errs = append(errs, steps(k.steps))
	}
	if k.decisions != nil {
		errs = append(errs, decisions(k.decisions))
	}
	return errors.Join(errs...)
}

// finish gives complete outputs their names.
func (k *keeper) finish() error {
	return k.close((*traces.Writer).Close, (*traces.StepWriter).Close, (*outFile).finish)
}

// leave keeps what there is of outputs that will not be complete.
func (k *keeper) leave(a *app) error {
	if k.rows != nil || k.steps != nil || k.decisions != nil {
		a.talk("what was written so far is kept under names that end in %s", traces.PartSuffix)
	}
	return k.close((*traces.Writer).Abort, (*traces.StepWriter).Abort, (*outFile).leave)
}
