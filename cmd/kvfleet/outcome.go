package main

import (
	"fmt"
	"math"
	"time"

	"kvfleet/sim"
	"kvfleet/sim/kvcache"
	"kvfleet/traces"
	"kvfleet/traces/summary"
)

// An outcome is what a run came to, as JSON prints it.
type outcome struct {
	Fleet      string           `json:"fleet"`
	Replicas   int64            `json:"replicas"`
	KVTokens   int64            `json:"kv_tokens"`
	Policy     string           `json:"policy"`
	Parameters string           `json:"parameters"`
	Driver     string           `json:"driver"`
	Load       float64          `json:"load,omitempty"` // users or requests per second
	WorkingSet float64          `json:"working_set,omitempty"`
	Skew       float64          `json:"skew"`
	Repetition int64            `json:"repetition,omitempty"`
	Epoch      int              `json:"epoch,omitempty"`
	Workload   string           `json:"workload"`
	Seed       uint64           `json:"seed"`
	WindowS    float64          `json:"window_s,omitempty"` // 0: every request counts
	WarmupS    float64          `json:"warmup_s"`
	EndS       figure           `json:"end_s"` // when the last request had ended
	Summary    *summary.Summary `json:"summary"`

	EvictedBlocks      uint64      `json:"evicted_blocks"`
	IdleBeforeEvictP50 figure      `json:"idle_before_evict_p50_s"`
	EngineSteps        int64       `json:"engine_steps"`
	Preemptions        int         `json:"preemptions"`
	EventGaps          uint64      `json:"event_gaps"`
	Faults             int         `json:"faults,omitempty"`
	Rejected           int         `json:"rejected"`
	Rejections         []rejection `json:"rejections,omitempty"` // all of them
	Warnings           []string    `json:"warnings,omitempty"`

	meta traces.Meta
}

type rejection struct {
	Request string `json:"request"`
	Reason  string `json:"reason"`
}

// namedRejections is how many refused requests are named in a text.
const namedRejections = 5

func newOutcome(j *job, r *sim.Result) *outcome {
	m := j.meta
	o := &outcome{
		Fleet: m.Fleet.Name, Replicas: m.Fleet.Replicas, KVTokens: m.Fleet.KVTokens,
		Policy: m.Cell.Policy, Parameters: m.Cell.Parameters, Driver: m.Cell.Driver, Load: m.Cell.Load,
		WorkingSet: m.Cell.WorkingSet, Skew: m.Cell.Skew, Repetition: m.Cell.Repetition, Epoch: j.cfg.Epoch,
		Workload: m.Workload, Seed: m.Seed, WindowS: j.cfg.Window.Seconds(), WarmupS: j.cfg.Warmup.Seconds(),
		EndS: figure(r.End.Seconds()), Summary: &r.Summary,
		EvictedBlocks:      r.IdleBeforeEvict.N(),
		IdleBeforeEvictP50: figure(idle(&r.IdleBeforeEvict)),
		EngineSteps:        r.Steps, Preemptions: r.Preemptions, EventGaps: r.EventGaps,
		Faults: len(j.cfg.Faults), Rejected: len(r.Rejected), Warnings: j.warnings, meta: m,
	}
	for _, x := range r.Rejected {
		o.Rejections = append(o.Rejections, rejection(x))
	}
	o.judge(j, r)
	return o
}

// judge adds what a reader of the figures must know.
func (o *outcome) judge(j *job, r *sim.Result) {
	warn := func(format string, args ...any) { o.Warnings = append(o.Warnings, fmt.Sprintf(format, args...)) }
	s := &r.Summary
	if o.Rejected > 0 {
		were := "were"
		if o.Rejected == 1 {
			were = "was"
		}
		warn("%s could not be served by any replica and %s refused", plural(int64(o.Rejected), "request"), were)
	}
	for _, x := range []struct {
		n    int64
		name string
	}{{s.Failed, "failed"}, {s.Dropped, "were dropped"}} {
		if share := float64(x.n) / float64(s.Requests); share > 0.01 {
			warn("%s of the requests %s", percent(share), x.name)
		}
	}
	if late := j.lateness(r.End); late > 0 {
		warn("saturated: the fleet fell behind; answers went on for %s after the last arrival", span(late))
	}
	if s.Unfinished > 0 {
		warn("%s never ended", plural(s.Unfinished, "request"))
	}
}

// lateness is how long after the last arrival a fleet that fell behind went on
// answering; 0 if it kept up. In a closed loop no fleet falls behind. In a short
// trace the last answers alone may take longer than a tenth of it.
func (j *job) lateness(ended time.Duration) time.Duration {
	end := j.end()
	tolerated := end / 10
	if len(j.cfg.Trace) > 0 {
		tolerated = max(tolerated, time.Minute)
	}
	if j.cfg.Users > 0 || ended-end <= tolerated {
		return 0
	}
	return ended - time.Duration(j.lastSent)
}

// idle is the median idle age of the evicted blocks, s; NaN if there are none.
func idle(ages *kvcache.IdleAges) float64 {
	p50, ok := ages.Quantile(0.5)
	if !ok {
		return math.NaN()
	}
	return p50.Seconds()
}
