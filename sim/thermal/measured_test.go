package thermal

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"
	"time"
)

// measuredFile is the six-card run, two levels above the repository's sim
// folder and not part of the repository.
const measuredFile = "../../../shared/reference/rtx3090/thermal.csv"

// bin is one card's ten seconds: means of temperature, clock and power, and
// the share of samples with the thermal bit set.
type bin struct {
	tempC, clockMHz, powerW, thermal float64
}

const (
	measuredCards = 6
	measuredBins  = 23
	binLength     = 10 * time.Second
)

// loads are the stretches in which all cards worked, read off the file: bin 0
// opens with one idle sample; utilisation, the cap bit and mean power of bins
// 60, 130 and 190 put the ends of the repetitions in their middle.
var loads = [3][2]time.Duration{
	{2 * time.Second, 65500 * time.Millisecond},
	{70 * time.Second, 135500 * time.Millisecond},
	{140 * time.Second, 197 * time.Second},
}

// repetitions are the wholly loaded bins of each, first and last.
var repetitions = [3][2]int{{1, 5}, {7, 12}, {14, 18}}

func readMeasured(t testing.TB) [measuredCards][measuredBins]bin {
	t.Helper()
	var out [measuredCards][measuredBins]bin
	f, err := os.Open(measuredFile)
	if err != nil {
		t.Skip("the measurement is not here:", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for n, row := range rows[1:] {
		var v [8]float64
		for i := range v {
			if v[i], err = strconv.ParseFloat(row[i], 64); err != nil {
				t.Fatalf("%s: row %d: %v", measuredFile, n+2, err)
			}
		}
		out[int(v[0])][int(v[1])/10] = bin{v[2], v[3], v[4], v[7]}
	}
	return out
}

// replay drives a chassis through the measured load for the cards in working
// and returns the bins as the telemetry would have pooled them: five samples each.
func replay(c *Chassis, working func(card int) bool) [][measuredBins]bin {
	n := len(c.cards)
	out := make([][measuredBins]bin, n)
	busy := make([]Activity, n)
	const every = 500 * time.Millisecond
	const samples = float64(binLength / every)
	for at := time.Duration(0); at < measuredBins*binLength; at += every {
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
		for i := range out {
			b := &out[i][at/binLength]
			b.tempC += c.Temperature(i) / samples
			b.clockMHz += c.ClockMHz(i) / samples
			b.powerW += c.Power(i) / samples
			if c.Throttled(i) {
				b.thermal += 1 / samples
			}
		}
	}
	return out
}

// measuredPrefill is the compute-bound share of a lone request's time in the
// measured load: median TTFT over median total in probe_c1_replica0.csv is 0.40.
const measuredPrefill = 0.4

func everyCard(int) bool { return true }

// startAt gives card i a starting die temperature, in balance with its idle
// draw, over air at rest: cards differ because an earlier arm had run some.
func startAt(c *Chassis, i int, dieC float64) {
	s := c.State(i)
	p := c.cards[i].p
	c.SetState(i, State{DieC: dieC, SinkC: dieC - p.IdleW*p.DieKPerW, AirC: s.AirC})
}
