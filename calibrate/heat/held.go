package heat

import (
	"math"
	"slices"
)

// held is what the search starts from for every card of the telemetry: the base's
// card, or for a card that the base lacks, the base's nearest.
func (f *fitter) held() setup {
	s := setup{ambientC: f.o.RoomC, prefill: f.o.PrefillShare}
	if s.ambientC == 0 {
		s.ambientC = f.base.AmbientC
	}
	s.ratio = f.base.Cards[0].BandwidthW / f.base.Cards[0].ComputeW
	for i, gpu := range f.t.GPUs {
		near := 0
		for k, g := range f.o.GPUs {
			if gap(g, gpu) < gap(f.o.GPUs[near], gpu) {
				near = k
			}
		}
		p := f.base.Cards[near]
		p.ClockFloorMHz, p.ClockTopMHz = f.read.floor.value, f.read.boost
		p.IdleW, p.AwakeHold = f.read.idle.value, seconds(f.read.hold.value)
		p.AwakeW = max(p.AwakeW, p.IdleW)
		if hottest, acted := f.t.limit(i); !acted {
			p.TemperatureLimitC = max(p.TemperatureLimitC, math.Ceil(hottest+1))
		}
		s.cards = append(s.cards, p)
	}
	s.coupling = f.coupling()
	return s
}

func gap(a, b int) int { return max(a-b, b-a) }

// coupling is the base's, and for pairs with a card that the base lacks, the mean
// of the base's pairs whose numbers are as far apart.
func (f *fitter) coupling() [][]float64 {
	n := len(f.t.GPUs)
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, n)
		for j := range out[i] {
			a, b := slices.Index(f.o.GPUs, f.t.GPUs[i]), slices.Index(f.o.GPUs, f.t.GPUs[j])
			if a >= 0 && b >= 0 {
				out[i][j] = f.base.Coupling[a][b]
			} else if i != j {
				out[i][j] = f.couplingAt(gap(f.t.GPUs[i], f.t.GPUs[j]))
			}
		}
	}
	return out
}

func (f *fitter) couplingAt(apart int) float64 {
	sum, n := 0.0, 0
	for a, row := range f.base.Coupling {
		for b, k := range row {
			if a != b && gap(f.o.GPUs[a], f.o.GPUs[b]) == apart {
				sum += k
				n++
			}
		}
	}
	return sum / float64(max(1, n))
}
