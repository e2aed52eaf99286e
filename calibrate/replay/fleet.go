package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"kvfleet/sim"
	"kvfleet/traces/convert"
)

// probeBytes is the text of a prompt of the published single-replica probes,
// whose rows do not say how long it is. Every prompt is another text.
const probeBytes = 2048

// FitTo makes the recording one that the fleet can simulate: the length of a
// published probe's prompts follows from the fleet's tokenizer, and a replica
// that the fleet does not have is an error unless the fleet has only one, which
// then serves all.
func (r *Recording) FitTo(f *sim.Fleet) error {
	if r.prompts == nil {
		if r.Format != convert.KvrouteProbe {
			return fmt.Errorf("%s: %w", r.Path, ErrNoLengths)
		}
		t := &f.Tokenizer
		prompt := int(math.Round(probeBytes/t.BytesPerToken)) + t.StartTokens + 2*t.HeaderTokens + t.TrailerTokens
		size := f.Engine.BlockSize
		if err := r.Assume(prompt, t.StartTokens/size*size); err != nil {
			return fmt.Errorf("%s: %w", r.Path, err)
		}
		for i := range r.prompts {
			r.prompts[i].Replica = f.Replicas[0].Name
		}
	}
	var unknown []string
	for i := range r.prompts {
		p := &r.prompts[i]
		known := p.Replica == "" || slices.ContainsFunc(f.Replicas, func(x sim.Replica) bool { return x.Name == p.Replica })
		switch {
		case known:
		case len(f.Replicas) == 1:
			p.Replica = ""
		case !slices.Contains(unknown, p.Replica):
			unknown = append(unknown, p.Replica)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%s: requests went to %v, which fleet %s does not have", r.Path, unknown, f.Name)
	}
	return nil
}

// policy is what places the requests whose replica is not known. Even where all
// are known it is the trace's own if it can be: what a decision waits for, such as
// the tokens of a prompt, takes part in every time.
func (r *Recording) policy(asked string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	c := &r.Meta.Cell
	if c.Policy == "" {
		return "least_outstanding", nil
	}
	text := c.Policy
	if c.Parameters != "" {
		text += ":" + c.Parameters
	}
	if _, err := sim.ParsePolicy(text); err != nil {
		if !slices.ContainsFunc(r.prompts, func(p sim.Prompt) bool { return p.Replica == "" }) {
			return "least_outstanding", nil
		}
		return "", errors.Join(fmt.Errorf("%s: was placed by policy %s, which is not known here", r.Path, text), err)
	}
	return text, nil
}

// Free lets a policy place every request, wherever it went.
func (r *Recording) Free() {
	for i := range r.prompts {
		r.prompts[i].Replica = ""
	}
}
