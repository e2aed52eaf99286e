package requests

import (
	"math"

	"kvfleet/sim"
)

// A knob is one number that the search moves: a constant of the fleet file, or
// what several have in common.
type knob struct {
	path      string // in the fleet file; of a common part, where it shows
	unit      string
	low, high float64
	width     float64 // of differences, as fit.Parameter's
	prior     float64 // standard deviation of the pull; 0 none
	mean      float64 // where it pulls to; 0 is the base
	get       func(f *sim.Fleet) float64
	set       func(f *sim.Fleet, v float64)
	advice    string // the run that would tell it
	joint     bool   // a step log tells it too
	optional  bool   // without it nothing is missing
}

func at(path, unit string, low, high, width float64, advice string, of func(f *sim.Fleet) *float64) knob {
	return knob{
		path: path, unit: unit, low: low, high: high, width: width, advice: advice,
		get: func(f *sim.Fleet) float64 { return *of(f) },
		set: func(f *sim.Fleet, v float64) { *of(f) = v },
	}
}

// pulled gives a knob a prior about the base's value.
func (k knob) pulled(sd float64) knob {
	k.prior = sd
	return k
}

// usually gives a knob a prior of its own, whatever the base says: a base may
// itself have been fitted to the same rows, which must not count twice.
func (k knob) usually(mean, sd float64) knob {
	k.mean, k.prior = mean, sd
	return k
}

// line is the ladder as a straight line over the batch: its value at batch 0, in
// ms, and its slope, in ms per request, through the first rung and the last.
func line(f *sim.Fleet) (level, slope float64) {
	l := f.Step.DecodeLadder
	n := len(l) - 1
	if n > 0 {
		slope = (l[n].MS - l[0].MS) / float64(l[n].Batch-l[0].Batch)
	}
	return l[0].MS - slope*float64(l[0].Batch), slope
}

func setLine(f *sim.Fleet, level, slope float64) {
	for i := range f.Step.DecodeLadder {
		r := &f.Step.DecodeLadder[i]
		r.MS = math.Max(1e-3, level+slope*float64(r.Batch))
	}
}

// engineKnobs are the step-time model's where no step log gives it. A decode
// ladder without steps is a straight line over the captured sizes. Scales are
// relative to what the base fleet says, which may be far off.
func engineKnobs(base *sim.Fleet) []knob {
	level, slope := line(base)
	p := &base.Step
	context := p.DecodeLadder[0].ContextMS
	span := func(v, least float64) float64 { return math.Max(v, least) }
	knobs := []knob{
		{
			path: "step.decode_ladder", unit: "ms", low: 0.05 * level, high: 10 * level, width: 0.03 * level, prior: level,
			get:    func(f *sim.Fleet) float64 { a, _ := line(f); return a },
			set:    func(f *sim.Fleet, v float64) { _, b := line(f); setLine(f, v, b) },
			advice: "add a run of single requests, one after another",
		},
		{
			path: "step.decode_ladder.per_request", unit: "ms per request", low: 0, high: 20 * span(slope, 0.02), width: 0.3 * span(slope, 0.02),
			get:    func(f *sim.Fleet) float64 { _, b := line(f); return b },
			set:    func(f *sim.Fleet, v float64) { a, _ := line(f); setLine(f, a, v) },
			advice: "add a run with many more requests at once",
		},
		{
			path: "step.decode_ladder.context_ms", unit: "ms per token of context", low: 0.01 * context, high: 20 * context, width: 0.3 * context, prior: 2 * context,
			get: func(f *sim.Fleet) float64 { return f.Step.DecodeLadder[0].ContextMS },
			set: func(f *sim.Fleet, v float64) {
				for i := range f.Step.DecodeLadder {
					f.Step.DecodeLadder[i].ContextMS = v
				}
			},
			advice: "decode context and batch size hardly vary apart in these traces: add a run with long prompts at a low rate",
		},
		at("step.dense_token_ms", "ms per token", 0.05*p.DenseTokenMS, 10*p.DenseTokenMS, 0.04*p.DenseTokenMS,
			"add a run with prompts of several lengths", func(f *sim.Fleet) *float64 { return &f.Step.DenseTokenMS }),
		at("step.pair_ms", "ms per query-key pair", 0.05*p.PairMS, 20*p.PairMS, 0.5*p.PairMS,
			"add a run with long prompts", func(f *sim.Fleet) *float64 { return &f.Step.PairMS }).pulled(2 * p.PairMS),
		at("step.eager_ms", "ms", 0, 4*level, 0.1*level,
			"add a run of single prompts on an idle engine, of several lengths", func(f *sim.Fleet) *float64 { return &f.Step.EagerMS }).pulled(level),
		at("step.prefill_mixed_ms", "ms", 0, 4*level, 0.1*level,
			"add a run in which prompts meet running answers", func(f *sim.Fleet) *float64 { return &f.Step.PrefillMixedMS }).pulled(level),
		at("step.mixed_decode_ms", "ms per decoding request", 0, level, 0.01*level,
			"add a run in which prompts meet many running answers", func(f *sim.Fleet) *float64 { return &f.Step.MixedDecodeMS }).pulled(0.2 * level),
		at("step.mixed_context_ms", "ms per token of context", 0, 20*context, 0.5*context,
			"add a run in which prompts meet long running answers", func(f *sim.Fleet) *float64 { return &f.Step.MixedContextMS }).pulled(4 * context),
		at("step.cold_start_ms", "ms", 0, 4*level, 0.1*level,
			"add a run of single requests with pauses", func(f *sim.Fleet) *float64 { return &f.Step.ColdStartMS }).pulled(level),
	}
	if p.ExpertsShare > 0 {
		knobs = append(knobs, at("step.experts_ms", "ms", 0, 10*span(p.ExpertsMS, level), 0.05*span(p.ExpertsMS, level),
			"add a run whose load rises slowly from single requests", func(f *sim.Fleet) *float64 { return &f.Step.ExpertsMS }))
	}
	return knobs
}

// jointKnobs are constants of the step log that the requests know too: they move
// about what the log says by as much as it leaves open. Their values are the
// log's, before they are stretched.
func jointKnobs(base *sim.Fleet, sd map[string]float64) []knob {
	var out []knob
	for _, k := range []knob{
		at("step.dense_token_ms", "ms per token", 0, 0, 0, "", func(f *sim.Fleet) *float64 { return &f.Step.DenseTokenMS }),
		at("step.pair_ms", "ms per query-key pair", 0, 0, 0, "", func(f *sim.Fleet) *float64 { return &f.Step.PairMS }),
		at("step.mixed_decode_ms", "ms per decoding request", 0, 0, 0, "", func(f *sim.Fleet) *float64 { return &f.Step.MixedDecodeMS }),
		at("step.mixed_context_ms", "ms per token of context", 0, 0, 0, "", func(f *sim.Fleet) *float64 { return &f.Step.MixedContextMS }),
	} {
		s := sd[k.path]
		if s <= 0 {
			continue
		}
		v := k.get(base)
		k.low, k.high, k.width, k.prior = math.Max(v/10, v-5*s), v+5*s, s, s
		k.joint = true
		k.advice = "add steps of the log's rarest shapes"
		out = append(out, k)
	}
	return out
}

// scaleKnob stretches measured steps: tracing inflates them, and the clock of
// the run that measured them is not that of the requests. It is set on a fleet
// that has not been stretched.
func scaleKnob(base *sim.Fleet) knob {
	k := knob{
		path: "step.scale", unit: "share", low: 0.8, high: 1.2, width: 0.01,
		advice: "measure the steps without tracing", optional: true,
	}
	k.get = func(f *sim.Fleet) float64 { return f.Step.WeightsMS / base.Step.WeightsMS }
	k.set = func(f *sim.Fleet, v float64) {
		s := &f.Step
		for _, x := range []*float64{&s.WeightsMS, &s.DenseTokenMS, &s.PairMS, &s.MixedDecodeMS, &s.MixedContextMS, &s.EagerMS} {
			*x *= v
		}
		for i := range s.DecodeLadder {
			s.DecodeLadder[i].MS *= v
			s.DecodeLadder[i].ContextMS *= v
		}
	}
	return k
}

// hostKnobs are what a step log does not show of a step. How much of a decode
// follows the clock is not among them: clocks that move by a few percent do not
// tell it from the decode times themselves. Priors are wide, of what a Python host
// takes.
func hostKnobs(base *sim.Fleet) []knob {
	return []knob{
		at("step.host_ms", "ms per step", 0, 10, 0.1, "add a run of single requests, one after another",
			func(f *sim.Fleet) *float64 { return &f.Step.HostMS }).usually(1.5, 1.5),
		at("step.host_request_ms", "ms per request in the step", 0, 1, 0.03, "add a run with many requests at once",
			func(f *sim.Fleet) *float64 { return &f.Step.HostRequestMS }).usually(0.2, 0.2),
		at("step.cold_start_ms", "ms", 0, 50, 3, "add a run of single requests with pauses",
			func(f *sim.Fleet) *float64 { return &f.Step.ColdStartMS }).usually(8, 8),
		at("step.prefill_mixed_ms", "ms", 0, 60, 3, "add a run in which prompts meet running answers",
			func(f *sim.Fleet) *float64 { return &f.Step.PrefillMixedMS }).usually(10, 15),
		at("step.small_mixed_ms", "ms", 0, 30, 1, "add a run in which cached prompts meet running answers",
			func(f *sim.Fleet) *float64 { return &f.Step.SmallMixedMS }).usually(3, 5),
	}
}

// frontEndKnobs are the front end's. Their priors are what a Python process takes
// that renders, tokenizes and streams.
func frontEndKnobs(base *sim.Fleet) []knob {
	return []knob{
		at("front_end.service_ms", "ms", 0.05, 60, 1, "add bursts of requests that arrive together",
			func(f *sim.Fleet) *float64 { return &f.FrontEnd.ServiceMS }).usually(3, 3),
		at("front_end.service_token_ms", "ms per prompt token", 0, 0.2, 0.002, "add a run with prompts of several lengths, all cached",
			func(f *sim.Fleet) *float64 { return &f.FrontEnd.ServiceTokenMS }).usually(0.005, 0.02),
		at("front_end.delay_ms", "ms", 0, 100, 1, "add a run of single requests, one after another",
			func(f *sim.Fleet) *float64 { return &f.FrontEnd.DelayMS }).usually(10, 20),
		at("front_end.stream_ms", "ms per token out", 0, 1, 0.05, "add a run with many answers at once",
			func(f *sim.Fleet) *float64 { return &f.FrontEnd.StreamMS }).usually(0.2, 0.2),
	}
}

// ambientSD is how well the room is known before, in degrees.
const ambientSD = 1

// ambientKnob is the temperature of the room.
func ambientKnob() knob {
	k := at("thermal.ambient_c", "degrees Celsius", 0, 45, 2,
		"log the room's temperature, or add requests of a fleet that has been at work for an hour",
		func(f *sim.Fleet) *float64 { return &f.Thermal.AmbientC }).pulled(ambientSD)
	k.joint = true
	return k
}
