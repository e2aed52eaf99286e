package heat

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// alikeUtil is how far the utilisation of cards that work at the same times
	// may differ in a bin.
	alikeUtil = 0.3
	// A bin is loaded if the mean of its utilisation and power, as shares of the
	// card's usual when it works, is at least loadedShare: a card held by its
	// temperature limit draws less, a lull in the load lowers utilisation alone.
	// It is idle up to idleUtil: a card that has just stopped draws half its power.
	loadedShare = 0.87
	idleUtil    = 0.1
)

// findLoads tells the states of bins and the stretches of work. Cards that work at
// the same times are pooled: five samples a bin place an end to two seconds only.
func (t *Telemetry) findLoads() error {
	for i := range t.GPUs {
		g := slices.IndexFunc(t.Alike, func(group []int) bool { return t.alike(group[0], i) })
		if g < 0 {
			t.Alike = append(t.Alike, []int{i})
			continue
		}
		t.Alike[g] = append(t.Alike[g], i)
	}
	t.Loads = make([][]Load, len(t.GPUs))
	any := false
	for _, group := range t.Alike {
		busy := t.tellStates(group)
		loads := t.stretches(t.Bins[group[0]], busy)
		for _, i := range group {
			t.Loads[i] = loads
		}
		any = any || slices.ContainsFunc(t.Bins[group[0]], func(b Bin) bool { return b.State == Loaded })
	}
	if !any {
		return fmt.Errorf("heat: %s: util_pct and power_w: no card works throughout a bin, want loaded bins", t.Path)
	}
	return nil
}

func (t *Telemetry) alike(i, j int) bool {
	for b := range t.Bins[i] {
		if math.Abs(t.Bins[i][b].Util-t.Bins[j][b].Util) > alikeUtil {
			return false
		}
	}
	return true
}

// tellStates sets the states of a group's bins and returns the share of each bin
// that was work.
func (t *Telemetry) tellStates(group []int) (busy []float64) {
	n := len(t.Bins[group[0]])
	score, util := make([]float64, n), make([]float64, n)
	busy = make([]float64, n)
	for _, i := range group {
		bins := t.Bins[i]
		u, p := usual(bins)
		if u < idleUtil {
			return busy // these cards never work
		}
		for b, x := range bins {
			share := min(1, x.Util/u)
			score[b] += (share + min(1, x.PowerW/p)) / 2 / float64(len(group))
			util[b] += share / float64(len(group))
		}
	}
	state := make([]State, n)
	for b := range state {
		switch {
		case util[b] <= idleUtil:
			state[b] = Idle
		case score[b] >= loadedShare:
			state[b], busy[b] = Loaded, 1
		default:
			state[b] = Straddling
		}
	}
	for _, i := range group {
		for b := range state {
			t.Bins[i][b].State = state[b]
		}
	}
	for b, s := range state {
		if s != Straddling {
			continue
		}
		for _, i := range group {
			busy[b] += (util[b] + t.powerShare(i, b)) / 2 / float64(len(group))
		}
	}
	return busy
}

// usual is the utilisation and power of a card when it works: the medians over the
// bins of at least half the greatest utilisation.
func usual(bins []Bin) (util, power float64) {
	top := 0.0
	for _, b := range bins {
		top = max(top, b.Util)
	}
	var us, ps []float64
	for _, b := range bins {
		if b.Util >= top/2 {
			us, ps = append(us, b.Util), append(ps, b.PowerW)
		}
	}
	return median(us), median(ps)
}

// powerShare is the share of a straddling bin that its power says was work. Before
// the first work a card rests; after it, it stays awake for a while.
func (t *Telemetry) powerShare(i, b int) float64 {
	bins := t.Bins[i]
	working, ok := nearest(bins, b, func(x Bin) bool { return x.State == Loaded })
	if !ok {
		return 0.5
	}
	rest := math.Inf(1)
	for _, x := range bins {
		rest = min(rest, x.PowerW)
	}
	if b > 0 && bins[b-1].State == Idle {
		rest = bins[b-1].PowerW
	} else if slices.ContainsFunc(bins[:b], func(x Bin) bool { return x.State == Loaded }) {
		for k := 1; k < len(bins); k++ { // the first idle bin after work is the awake draw
			if bins[k].State == Idle && bins[k-1].State != Idle {
				rest = bins[k].PowerW
				break
			}
		}
	}
	if working.PowerW <= rest {
		return 0.5
	}
	return min(max((bins[b].PowerW-rest)/(working.PowerW-rest), 0), 1)
}

func nearest(bins []Bin, b int, is func(Bin) bool) (Bin, bool) {
	for d := 1; d < len(bins); d++ {
		for _, k := range []int{b - d, b + d} {
			if k >= 0 && k < len(bins) && is(bins[k]) {
				return bins[k], true
			}
		}
	}
	return Bin{}, false
}

// stretches joins bins to stretches of work. In a straddling bin work comes first
// if there was work before it, so that a pause between two loaded bins is taken to
// end with the bin; else it comes last.
func (t *Telemetry) stretches(bins []Bin, busy []float64) []Load {
	var out []Load
	add := func(from, to time.Duration) {
		if n := len(out); n > 0 && out[n-1].To == from {
			out[n-1].To = to
			return
		}
		out = append(out, Load{from, to})
	}
	for b := range bins {
		from := time.Duration(b) * t.Length
		part := time.Duration(busy[b] * float64(t.Length)).Round(100 * time.Millisecond)
		switch {
		case bins[b].State == Loaded:
			add(from, from+t.Length)
		case bins[b].State == Straddling && b > 0 && bins[b-1].State != Idle:
			add(from, from+part)
		case bins[b].State == Straddling:
			add(from+t.Length-part, from+t.Length)
		}
	}
	return out
}

// resumed says whether a loaded bin follows a pause, whose end within the bin
// before is a guess.
func resumed(bins []Bin, b int) bool {
	return b > 0 && bins[b].State == Loaded && bins[b-1].State == Straddling &&
		slices.ContainsFunc(bins[:b], func(x Bin) bool { return x.State == Loaded })
}

func median(x []float64) float64 { return quantile(x, 0.5) }

// quantile is the smallest value that at least that share of the values do not
// exceed; NaN if there are none.
func quantile(x []float64, share float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(x))
	return s[min(int(share*float64(len(s))), len(s)-1)]
}
