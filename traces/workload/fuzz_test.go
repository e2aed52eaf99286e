package workload

import (
	"testing"
	"time"

	"kvfleet/traces/seed"
)

// Whatever Resolve and the validators accept works.
func FuzzKnobs(f *testing.F) {
	f.Add(307, 4, 448, 64, 0.0, 0.3, 128, 0.3, 8, 1, 4, uint64(1), 1.635, 0.014, 1792, 25, 4, 1, 16, 6.0, "even", 0.0)
	f.Add(1, 1, 1, 1, 1e300, 1.0, 1, 1.0, 1, 1, 1, uint64(0), 0.01, 0.49, 1<<30, 0, 0, 0, 1, 0.1, "gamma", 0.001)
	f.Add(3, 2, 2, 1, 0.5, 1.0, 1, 1.0, 1000, 1, 1, uint64(7), 1e300, 0.0, 0, 40, 0, 0, 1000, 1e9, "poisson", 1.0)
	f.Fuzz(func(t *testing.T, sessions, turns, prompt, output int, skew, systemShare float64, system int,
		branchShare float64, families, branchTurns, bytesPerToken int, s uint64,
		ratio, spread float64, spreadBytes, start, header, trailer, blockSize int, rate float64, arrivals string, shape float64) {
		m, err := MultiTurn{
			Sessions: sessions, Turns: turns, PromptTokens: prompt, OutputTokens: output, Skew: skew,
			SystemShare: systemShare, SystemTokens: system, BranchShare: branchShare, BranchFamilies: families,
			BranchTurns: branchTurns, BytesPerToken: bytesPerToken, Seed: seed.Seed(s),
			WorkingSet: ratio, FleetTokens: prompt,
		}.Resolve()
		if err != nil {
			return
		}
		plan := OpenPlan{
			Rate: rate, Arrivals: arrivals, Shape: shape, Window: time.Minute, BlockSize: blockSize,
			Tokenizer: Tokenizer{ratio, spread, spreadBytes, start, header, trailer},
		}
		if plan.Validate() != nil {
			return
		}
		if m.Sessions > 1e6 || m.MaxPromptBytes() > 1e6 || m.Turns > 1e4 || float64(m.MaxPromptBytes())/ratio*(1+float64(spreadBytes)) > 1e8 || rate > 1e6 ||
			start > 1e6 || m.Turns*(header+trailer) > 1e7 {
			return // sound, and too large for a fuzz run
		}
		m.Name()
		plan.Warnings(m.Turns)
		n := 0
		last := int64(0)
		for r, err := range m.OpenRows(plan) {
			if err != nil {
				t.Fatal(err)
			}
			if r.PromptTokens < 1 || r.ScheduledAt < last || int64(len(r.Blocks)) != r.PromptTokens/int64(r.BlockSize) {
				t.Fatalf("%s: got %d tokens in %d blocks of %d, due at %d after %d", m.Name(), r.PromptTokens, len(r.Blocks), r.BlockSize, r.ScheduledAt, last)
			}
			last = r.ScheduledAt
			if n++; n == 20 {
				break
			}
		}
	})
}
