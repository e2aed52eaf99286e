package replay

import (
	"context"
	"fmt"
	"strconv"

	"kvfleet/sim"
	"kvfleet/traces"
	"kvfleet/traces/seed"
)

// An Outcome is what the simulation says of one request. Times are ns; None
// where nothing happened.
type Outcome struct {
	TTFT, E2E, ITLMean, ITLP50, Queue, Cached int64
	Ended                                     int64 // since the run's origin
	Sent                                      int64
}

// None is the outcome of a request that was not served.
func None() Outcome {
	return Outcome{TTFT: traces.None, E2E: traces.None, ITLMean: traces.None, ITLP50: traces.None, Queue: traces.None, Cached: traces.None, Ended: traces.None, Sent: traces.None}
}

// Simulate runs the recording on a fleet. What the trace does not place is placed
// by the policy, as a command line states it; empty is the trace's own, or
// least_outstanding.
// The outcomes are those of Rows, one by one.
func (r *Recording) Simulate(ctx context.Context, f *sim.Fleet, policy string, s seed.Seed) ([]Outcome, error) {
	if r.prompts == nil {
		return nil, fmt.Errorf("%s: %w", r.Path, ErrNoLengths)
	}
	out := make([]Outcome, len(r.Rows))
	for i := range out {
		out[i] = None()
	}
	policy, err := r.policy(policy)
	if err != nil {
		return nil, err
	}
	choice, err := sim.ParsePolicy(policy)
	if err != nil {
		return nil, err
	}
	if r.Rest && f.Thermal != nil {
		cold, heat := *f, *f.Thermal
		heat.Warm = 0
		cold.Thermal = &heat
		f = &cold
	}
	_, err = sim.Run(ctx, sim.Config{
		Fleet: f, Policy: choice, Seed: s, Trace: r.prompts, KeepIDs: true,
		Rows: func(row *traces.Row) {
			i, err := strconv.Atoi(row.RequestID)
			if err != nil {
				return // not one of the recording's: see Continued
			}
			if row.Outcome != traces.Success {
				return
			}
			out[i] = Outcome{
				TTFT: row.TTFT(), E2E: row.E2E(), ITLMean: row.ITLMean, ITLP50: row.ITLP50,
				Queue: row.QueueTime, Cached: row.CachedTokens, Ended: row.EndedAt, Sent: row.SentAt,
			}
		},
	})
	return out, err
}
