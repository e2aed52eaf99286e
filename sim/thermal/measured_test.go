package thermal

import "time"

const measuredCards = 6

// loads are the stretches in which all cards worked in the published six-card run,
// and whole the ten-second bins of each that are work throughout.
var (
	loads = [3][2]time.Duration{
		{2 * time.Second, 65500 * time.Millisecond},
		{70 * time.Second, 135500 * time.Millisecond},
		{140 * time.Second, 197 * time.Second},
	}
	whole = [3][2]time.Duration{
		{10 * time.Second, 60 * time.Second},
		{70 * time.Second, 130 * time.Second},
		{140 * time.Second, 190 * time.Second},
	}
)

// measuredPrefill is the compute-bound share of a lone request's time in that load:
// median TTFT over median total in probe_c1_replica0.csv is 0.40.
const measuredPrefill = 0.4

// cardThree drives a chassis through that load for the cards in working, and returns
// the third card's mean clock over each repetition's whole bins, and for how long its
// temperature limit held it.
func cardThree(c *Chassis, working func(card int) bool) (clocks [3]float64, held time.Duration) {
	busy := make([]Activity, measuredCards)
	const every = 500 * time.Millisecond
	for at := time.Duration(0); at < 230*time.Second; at += every {
		on := false
		for _, l := range loads {
			on = on || at >= l[0] && at < l[1]
		}
		for i := range busy {
			busy[i] = Activity{}
			if on && working(i) {
				busy[i] = Activity{Busy: 1, Prefill: measuredPrefill}
			}
		}
		c.Advance(at+every, busy)
		for r, w := range whole {
			if at >= w[0] && at < w[1] {
				clocks[r] += c.ClockMHz(3) * float64(every) / float64(w[1]-w[0])
			}
		}
		if c.Throttled(3) {
			held += every
		}
	}
	return clocks, held
}

// startAt gives card i a starting die temperature, in balance with its idle
// draw, over air at rest: cards differ because an earlier arm had run some.
func startAt(c *Chassis, i int, dieC float64) {
	s := c.State(i)
	p := c.cards[i].p
	c.SetState(i, State{DieC: dieC, SinkC: dieC - p.IdleW*p.DieKPerW, AirC: s.AirC})
}
