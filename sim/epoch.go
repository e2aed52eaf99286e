package sim

import (
	"math"

	"kvfleet/traces/seed"
)

// The drivers, as cells record them.
const (
	DriverClosed = "closed"
	DriverOpen   = "open"
	DriverTrace  = "trace"
)

// Epoch numbers a cell's bytes: points, loads and repetitions (from 1) have their
// own, so no cell finds another's prompts in a cache, and all policies of one
// cell have the same. For the axis values of the published grid it is the
// published number, which decides the session ids and with them where session
// affinity puts what; values finer than its hundredths get a hashed one far
// above. The published number is a sum, so far-fetched cells can coincide: 32
// users at skew 1.4 and 172 at skew 0. In simulation nothing comes of it, since
// every run begins with empty caches.
func Epoch(driver string, load, workingSet, skew float64, repetition int) int {
	level := load
	if driver == DriverOpen {
		level = levels + math.Round(load)
	}
	ws, sk := workingSet*axisScale, skew*axisScale
	whole := func(v float64) bool { return math.Abs(v-math.Round(v)) < 1e-9 }
	if driver == DriverClosed && load >= levels || driver == DriverOpen && (math.Round(load) >= levels || !whole(load)) ||
		!whole(ws) || !whole(sk) || sk >= skewSpan {
		h := seed.Mix(uint64(len(driver)), math.Float64bits(load), math.Float64bits(workingSet), math.Float64bits(skew), uint64(repetition))
		return 1<<40 | int(h>>25)
	}
	return repetition*2*levels + int(level) + int(math.Round(ws))*skewSpan + int(math.Round(sk))
}

const (
	levels    = 512  // load levels a driver has within a repetition
	axisScale = 100  // axis values are told apart to the hundredth
	skewSpan  = 1000 // skews, in hundredths, within a working set
)
