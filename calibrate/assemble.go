package calibrate

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"kvfleet/calibrate/fit"
	"kvfleet/sim"
)

// digits of a fleet file's numbers, and of its draws.
const (
	valueDigits = 5
	drawDigits  = 4
)

// assemble makes the fleet: values, their provenance with intervals, and draws.
func (r *run) assemble() error {
	f := r.base.Copy()
	if r.Requests != nil {
		draws, provenance := f.Draws, f.Provenance
		f = r.Requests.Fleet.Copy()
		f.Draws, f.Provenance = draws, provenance
	}
	told := r.told()
	var draws []*sim.Fleet
	for k := range intervalDraws {
		g, err := r.drawn(k)
		if err != nil {
			return err
		}
		draws = append(draws, g)
	}
	r.Fleet = f
	var paths []string
	for _, e := range told {
		if err := r.settle(e, draws); err != nil {
			return err
		}
		if last := &r.Estimates[len(r.Estimates)-1]; last.Verdict == fit.Measured && last.Low < last.High {
			paths = append(paths, last.Path)
		}
	}
	r.provenance()
	r.keep(paths, draws)
	r.Fleet.Description = describe(r.Inputs)
	if err := r.Fleet.Validate(); err != nil {
		return fmt.Errorf("calibrate: what came out is no valid fleet: %w", err)
	}
	return nil
}

func describe(in Inputs) string {
	return strings.TrimSuffix(in.Base.Description, ": engine settings as served, step times before any measurement")
}

// told is every estimate by a path of the fleet file, later stages last.
func (r *run) told() []fit.Estimate {
	var all []fit.Estimate
	at := map[string]int{}
	add := func(e fit.Estimate, rows string) {
		if e.Rows == "" {
			e.Rows = rows
		}
		if i, ok := at[e.Path]; ok {
			all[i] = e
			return
		}
		at[e.Path] = len(all)
		all = append(all, e)
	}
	if r.Steps != nil {
		for _, e := range r.Steps.Estimates {
			add(e, filepath.Base(r.Inputs.Steps))
		}
	}
	if r.Heat != nil {
		for _, e := range r.Heat.Estimates {
			for _, one := range r.cards(e) {
				add(one, filepath.Base(r.Inputs.Thermal))
			}
		}
	}
	if r.Requests != nil {
		var names []string
		for _, path := range r.Inputs.Traces {
			names = append(names, filepath.Base(path))
		}
		rows := fmt.Sprintf("%d times of %s", r.Requests.Targets, strings.Join(names, ", "))
		for _, e := range r.Requests.Estimates {
			for _, path := range r.expand(e.Path) {
				one := e
				one.Path, one.Rows = path, rows
				if i, ok := at[path]; ok && e.Path == "step.scale" { // a stretched step time is the steps' still
					all[i].How += fmt.Sprintf("; times %.4f [%.4f, %.4f] by the requests' replay", e.Value, e.Low, e.High)
					continue
				} else if ok && e.Verdict != fit.Measured {
					if all[i].Verdict == fit.Prior { // the step log did not tell it either
						all[i].Verdict, all[i].How, all[i].Advice = e.Verdict, e.How, e.Advice
					}
					continue
				}
				if e.Path == "step.scale" {
					continue
				}
				add(one, rows)
			}
		}
	}
	return all
}

// expand is the fleet file's paths behind a common part.
func (r *run) expand(path string) []string {
	var out []string
	rung := func(field string) {
		for _, x := range r.base.Step.DecodeLadder {
			out = append(out, fmt.Sprintf("step.decode_ladder[%d].%s", x.Batch, field))
		}
	}
	switch path {
	case "step.decode_ladder", "step.decode_ladder.per_request":
		rung("ms")
	case "step.decode_ladder.context_ms":
		rung("context_ms")
	case "step.scale":
		for _, name := range []string{"weights_ms", "dense_token_ms", "pair_ms", "mixed_decode_ms", "mixed_context_ms", "eager_ms"} {
			out = append(out, "step."+name)
		}
		rung("ms")
		rung("context_ms")
	default:
		out = append(out, path)
	}
	return out
}

// cards is an estimate of all cards, [*] in its path, as one of each.
func (r *run) cards(e fit.Estimate) []fit.Estimate {
	if !strings.Contains(e.Path, "[*]") {
		return []fit.Estimate{e}
	}
	var out []fit.Estimate
	for i := range r.base.Thermal.Cards {
		one := e
		one.Path = strings.Replace(e.Path, "[*]", fmt.Sprintf("[%d]", i), 1)
		out = append(out, one)
	}
	return out
}

// drawn is the fleet of one bootstrap draw of all stages.
func (r *run) drawn(k int) (*sim.Fleet, error) {
	g := r.base.Copy()
	set := func(e fit.Estimate) error {
		if len(e.Draws) == 0 {
			return nil
		}
		return g.SetNumber(e.Path, e.Draws[k%len(e.Draws)])
	}
	if r.Steps != nil {
		for _, e := range r.Steps.Estimates {
			if err := set(e); err != nil {
				return nil, err
			}
		}
	}
	if r.Heat != nil {
		for _, e := range r.Heat.Estimates {
			for _, one := range r.cards(e) {
				if err := set(one); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, e := range r.Estimates { // what the rows told
		if err := set(e); err != nil {
			return nil, err
		}
	}
	if r.Requests != nil {
		r.Requests.Apply(k%r.Requests.Draws(), g)
	}
	return g, nil
}

// settle rounds a number as the file will have it and takes its interval over the
// draws of all stages together.
func (r *run) settle(e fit.Estimate, draws []*sim.Fleet) error {
	v, err := r.Fleet.Number(e.Path)
	if err != nil && e.Verdict != fit.Measured { // a table of numbers, none of which moved
		r.Estimates = append(r.Estimates, e)
		return nil
	}
	if err != nil {
		return err
	}
	e.Value = sim.Round(v, valueDigits)
	if err := r.Fleet.SetNumber(e.Path, e.Value); err != nil {
		return err
	}
	e.Low, e.High = e.Value, e.Value
	if e.Verdict == fit.Measured {
		values := make([]float64, len(draws))
		for k, g := range draws {
			if values[k], err = g.Number(e.Path); err != nil {
				return err
			}
		}
		e.Low, e.High = fit.Interval(values)
		e.Low, e.High = sim.Round(min(e.Low, e.Value), valueDigits), sim.Round(max(e.High, e.Value), valueDigits)
		e.Draws = values
	}
	r.Estimates = append(r.Estimates, e)
	return nil
}

// provenance writes what is known of each number beside it. A path that stood for
// many numbers goes on to stand for those that nothing was learnt of.
func (r *run) provenance() {
	all := maps.Clone(r.base.Provenance)
	if all == nil {
		all = map[string]sim.Provenance{}
	}
	for path, p := range all {
		if p.Verdict == "" {
			p.Verdict = fit.Prior.String()
		}
		p.Interval, p.Rows, p.Advice = nil, "", ""
		all[path] = p
	}
	for _, e := range r.Estimates {
		p := sim.Provenance{Unit: e.Unit, Source: e.How, Rows: e.Rows, Verdict: e.Verdict.String(), Advice: e.Advice}
		if e.Low < e.High {
			p.Interval = []float64{e.Low, e.High}
		}
		if e.Verdict == fit.Prior || e.Verdict == fit.Refused {
			if e.Path == "thermal.ambient_c" {
				p.Rows = ""
			} else if old, ok := inherited(r.base.Provenance, e.Path); ok {
				p.Source, _, _ = strings.Cut(old.Source, "; ") // what an earlier calibration added goes
				if !strings.HasPrefix(e.How, "kept") && !strings.Contains(p.Source, e.How) {
					p.Source += "; " + e.How
				}
			}
			p.Rows = ""
		}
		all[e.Path] = p
	}
	if r.Steps != nil {
		all["step.decode_ladder"] = sim.Provenance{
			Unit: "requests; ms; ms per token of context", Source: "captured sizes: " + r.Steps.Ladder.Chosen + "; every rung has its own entry",
			Rows: filepath.Base(r.Inputs.Steps), Verdict: fit.Measured.String(),
		}
	}
	r.Fleet.Provenance = all
}

// inherited is the provenance of a path or of the nearest one above it.
func inherited(all map[string]sim.Provenance, path string) (sim.Provenance, bool) {
	for path != "" {
		if p, ok := all[path]; ok {
			return p, true
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return sim.Provenance{}, false
}

// keep stores the first draws that are valid fleets.
func (r *run) keep(paths []string, draws []*sim.Fleet) {
	if len(paths) == 0 {
		return
	}
	d := &sim.Draws{Paths: paths}
	for _, g := range draws {
		if len(d.Values) == r.o.Draws {
			break
		}
		if g.Validate() != nil {
			continue
		}
		values := make([]float64, len(paths))
		for j, path := range paths {
			v, err := g.Number(path)
			if err != nil {
				panic(err) // settle read the same path
			}
			values[j] = sim.Round(v, drawDigits)
		}
		d.Values = append(d.Values, values)
	}
	r.Fleet.Draws = d
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
