package main

import (
	"kvfleet/traces"
	"kvfleet/traces/workload"
)

// planned is the open-loop schedule that sim's open driver sends: the same
// sessions and turns at the same times, with answers of the same lengths, by the
// same draws.
func planned(l *loadOptions, m workload.MultiTurn, fleet fleetFile, rate float64, epoch int) traces.Source {
	return m.OpenRows(workload.OpenPlan{
		Epoch: epoch, Rate: rate, Arrivals: l.arrivals, Shape: l.shape, Think: l.think, Window: l.window,
		Tokenizer: fleet.Tokenizer, BlockSize: fleet.Engine.BlockSize,
		Stop: fleet.Answers(m.Seed, epoch, m.OutputTokens),
	})
}
