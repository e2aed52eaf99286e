package main

import (
	"time"

	"github.com/spf13/cobra"

	"kvfleet/traces/workload"
)

// loadOptions say how the multi-turn workload is sent, and for how long.
type loadOptions struct {
	arrivals string
	shape    float64
	think    time.Duration
	window   time.Duration
	warmup   time.Duration
	seed     uint64
}

func (o *loadOptions) declare(f *flags, c *cobra.Command) {
	o.declareArrivals(f, c)
	one(f, &o.window, positiveTime(), "window", "whole length of a cell", "300s")
	one(f, &o.warmup, notNegativeTime(), "warmup", "uncounted opening of the window", "50s")
	one(f, &o.seed, seeds(), "seed", "of everything drawn", "1")
}

func (o *loadOptions) declareArrivals(f *flags, c *cobra.Command) {
	kinds := []string{"even", "poisson", "gamma"}
	one(f, &o.arrivals, oneOf(kinds...), "arrivals", "open loop: even, poisson or gamma", "even")
	complete(c, "arrivals", kinds)
	one(f, &o.shape, positive(), "shape", "gamma arrivals: shape; 1 is Poisson, less is burstier", "")
	one(f, &o.think, positiveTime(), "think", "open loop: between a conversation's turns", "5s")
}

// check faults what does not go together. open says that the loop is open.
func (o *loadOptions) check(f *flags, open bool) {
	o.checkArrivals(f, open)
	if o.warmup >= o.window {
		f.fault("--warmup: got %v of a window of %v, want it to leave something to count", o.warmup, o.window)
	}
}

func (o *loadOptions) checkArrivals(f *flags, open bool) {
	f.only(open, "without --rate", "arrivals", "shape", "think")
	gamma := o.arrivals == "gamma"
	if open {
		f.only(gamma, "without --arrivals gamma", "shape")
	}
	if open && gamma && !f.given("shape") {
		f.fault("--arrivals gamma: want a --shape too")
	}
}

// wholeVisits says in words that an open-loop window cuts conversations short,
// or nothing.
func (o *loadOptions) wholeVisits(m workload.MultiTurn) string {
	visit := time.Duration(m.Turns) * o.think
	if o.window%visit == 0 {
		return ""
	}
	return "a window of " + o.window.String() + " is not a whole number of visits of " + visit.String() +
		" (turns times think time): the mix of turns is not the workload's"
}
