package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"kvfleet/calibrate/fit"
	"kvfleet/sim"
)

// A Setting is one engine setting as a file states it.
type Setting struct {
	Path  string // in the fleet file
	Unit  string
	Value float64
	Text  string // of what is no number
	Key   string // in the file
}

// lockstepPath is what data parallelism over experts sets.
const lockstepPath = "engine.lockstep_ranks"

// settingKeys maps what settings files call things to the fleet file.
var settingKeys = []struct{ key, path, unit string }{
	{"block_size", "engine.block_size", "tokens per KV block"},
	{"num_gpu_blocks", "engine.num_gpu_blocks", "blocks"},
	{"max_num_batched_tokens", "engine.max_num_batched_tokens", "tokens a step"},
	{"max_num_seqs", "engine.max_num_seqs", "requests"},
	{"max_model_len", "max_model_len", "tokens"},
	{"max_seq_len", "max_model_len", "tokens"},
	{"async_scheduling", "engine.async_scheduling", "-"},
	{"data_parallel_size", "replicas", "engines"},
	{"enable_expert_parallel", lockstepPath, "replicas"},
	{"model", "model", "-"},
}

// ReadSettings reads engine settings from a JSON object: the settings themselves,
// or groups of them (engine_kwargs, kv_cache, resolved_config.scheduler_config, as
// vLLM's own record of a run has them). Other keys are ignored. Two values
// of one setting are an error.
func ReadSettings(path string) ([]Setting, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		return nil, fmt.Errorf("%s: want a JSON object of engine settings: %w", path, err)
	}
	var all []Setting
	var faults []error
	take := func(group map[string]json.RawMessage, within string) {
		for _, k := range settingKeys {
			raw, ok := group[k.key]
			if !ok || string(raw) == "null" {
				continue
			}
			s, err := setting(k.path, k.unit, within+k.key, raw)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", path, err))
				continue
			}
			if i := slices.IndexFunc(all, func(o Setting) bool { return o.Path == s.Path }); i >= 0 {
				if o := all[i]; o.Value != s.Value || o.Text != s.Text {
					faults = append(faults, fmt.Errorf("%s: %s and %s differ: one engine's settings are wanted", path, o.Key, s.Key))
				}
				continue
			}
			all = append(all, s)
		}
	}
	take(top, "")
	for _, name := range []string{"engine_kwargs", "kv_cache", "resolved_config"} {
		raw, ok := top[name]
		if !ok {
			continue
		}
		var group map[string]json.RawMessage
		if err := json.Unmarshal(raw, &group); err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: want an object: %w", path, name, err))
			continue
		}
		if name != "resolved_config" {
			take(group, name+".")
			continue
		}
		// What vLLM resolved to: the scheduler's part says what nobody asked for.
		var scheduler map[string]json.RawMessage
		if raw, ok := group["scheduler_config"]; ok && json.Unmarshal(raw, &scheduler) == nil {
			take(scheduler, name+".scheduler_config.")
		}
	}
	if len(all) == 0 && len(faults) == 0 {
		faults = append(faults, fmt.Errorf("%s: holds no engine setting; want block_size, num_gpu_blocks, max_num_batched_tokens, max_num_seqs, max_model_len or async_scheduling", path))
	}
	return all, errors.Join(faults...)
}

func setting(path, unit, key string, raw json.RawMessage) (Setting, error) {
	s := Setting{Path: path, Unit: unit, Key: key}
	switch path {
	case "model":
		if json.Unmarshal(raw, &s.Text) != nil {
			return s, fmt.Errorf("%s: got %s, want a name", key, raw)
		}
	case "engine.async_scheduling", lockstepPath:
		var on bool
		if json.Unmarshal(raw, &on) != nil {
			return s, fmt.Errorf("%s: got %s, want true or false", key, raw)
		}
		if s.Text = strconv.FormatBool(on); on {
			s.Value = 1
		}
	default:
		if json.Unmarshal(raw, &s.Value) != nil || s.Value < 1 || s.Value != math.Trunc(s.Value) || s.Value > 1<<40 {
			return s, fmt.Errorf("%s: got %s, want a whole number of at least 1", key, raw)
		}
	}
	return s, nil
}

// apply sets the settings on a fleet and says which of them it then has from the
// file. Belief bounds follow the cache.
func apply(f *sim.Fleet, settings []Setting, from string) []fit.Estimate {
	var out []fit.Estimate
	tokens := f.KVTokens()
	for _, s := range settings {
		switch s.Path {
		case "model":
			f.Model = s.Text
			continue
		case "engine.async_scheduling":
			f.Engine.Async = s.Text == "true"
		case "replicas":
			if n := int(s.Value); n != len(f.Replicas) {
				*f = *f.Scale(n)
			}
			continue
		case lockstepPath:
			continue // below, once it is known how many ranks there are
		default:
			if err := f.SetNumber(s.Path, s.Value); err != nil {
				panic(err) // the table above is ours
			}
		}
		out = append(out, fit.Estimate{
			Path: s.Path, Unit: s.Unit, Value: s.Value, Low: s.Value, High: s.Value,
			Verdict: fit.Stated, Rows: from, How: "engine setting " + s.Key,
		})
	}
	if i := slices.IndexFunc(settings, func(s Setting) bool { return s.Path == lockstepPath }); i >= 0 && settings[i].Value == 1 {
		// Experts are spread over the ranks, which therefore step together.
		f.Engine.LockstepRanks = len(f.Replicas)
		v := float64(len(f.Replicas))
		out = append(out, fit.Estimate{
			Path: lockstepPath, Unit: "replicas", Value: v, Low: v, High: v, Verdict: fit.Stated, Rows: from,
			How: "engine settings data_parallel_size and " + settings[i].Key,
		})
	}
	if now := f.KVTokens(); now != tokens && tokens > 0 {
		f.Router.BeliefBlocks = max(1, int(float64(f.Router.BeliefBlocks)*float64(now)/float64(tokens)))
	}
	return out
}

// statesAsync says whether the settings say if scheduling runs ahead.
func statesAsync(settings []Setting) bool {
	return slices.ContainsFunc(settings, func(s Setting) bool { return s.Path == "engine.async_scheduling" })
}
