package report

import (
	"fmt"
	"math"
)

// A colour has its parts from 0 to 255.
type colour struct{ r, g, b float64 }

func hex(v uint32) colour {
	return colour{float64(v >> 16), float64(v >> 8 & 255), float64(v & 255)}
}

func (c colour) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(math.Round(c.r)), int(math.Round(c.g)), int(math.Round(c.b)))
}

// mix is c at 0 and o at 1.
func (c colour) mix(o colour, t float64) colour {
	return colour{c.r + t*(o.r-c.r), c.g + t*(o.g-c.g), c.b + t*(o.b-c.b)}
}

// ink is what is read best on c.
func (c colour) ink() colour {
	if 0.299*c.r+0.587*c.g+0.114*c.b < 140 {
		return hex(0xffffff)
	}
	return darkInk()
}

func darkInk() colour  { return hex(0x1b2430) }
func faintInk() colour { return hex(0x5b6673) }
func white() colour    { return hex(0xffffff) }

// diverging is the colour of t in -1..1: rust where the baseline is ahead, teal
// where the policy is, told apart by every common kind of colour vision.
func diverging(t float64) colour {
	steps := [...]colour{hex(0x9c3d14), hex(0xdf8a5a), hex(0xf7f5f0), hex(0x63b0b4), hex(0x0b5563)}
	at := (math.Max(-1, math.Min(1, t)) + 1) / 2 * float64(len(steps)-1)
	i := min(int(at), len(steps)-2)
	return steps[i].mix(steps[i+1], at-float64(i))
}

// policyColour is the i-th of the colours given to policies in label order.
func policyColour(i int) colour {
	palette := [...]colour{hex(0x3b6fb6), hex(0x0b7a75), hex(0xd1495b), hex(0xe39a1f), hex(0x7a4fa3),
		hex(0x6b7785), hex(0x2f9e44), hex(0xb5527f), hex(0x8a6d3b), hex(0x18a0c4)}
	return palette[i%len(palette)]
}

// A ratioScale maps a ratio to -1..1 by its logarithm, so that twice and half
// are equally far from nothing. limit is the factor at the ends.
type ratioScale struct{ limit float64 }

func scaleSteps() []float64 {
	return []float64{1.02, 1.05, 1.1, 1.25, 1.5, 2, 3, 4, 6, 10, 20, 50, 100}
}

// newRatioScale ends at the first step that holds every ratio, or at the last.
func newRatioScale(ratios []Number) ratioScale {
	most := 0.0
	for _, r := range ratios {
		if r.known() && r > -1 {
			most = math.Max(most, math.Abs(math.Log1p(float64(r))))
		}
	}
	steps := scaleSteps()
	for _, f := range steps {
		if most <= math.Log(f) {
			return ratioScale{f}
		}
	}
	return ratioScale{steps[len(steps)-1]}
}

func (s ratioScale) position(r Number) float64 {
	switch {
	case !r.known():
		return 0
	case r <= -1:
		return -1
	}
	return math.Max(-1, math.Min(1, math.Log1p(float64(r))/math.Log(s.limit)))
}

// ticks are ratios worth a label, at least a quarter of the half scale apart.
func (s ratioScale) ticks() []Number {
	ticks := []Number{0}
	steps, last := scaleSteps(), 1.0
	for i := len(steps) - 1; i >= 0; i-- {
		at := math.Log(steps[i]) / math.Log(s.limit)
		if steps[i] > s.limit || steps[i] < s.limit && (last-at < 0.25 || at < 0.25) {
			continue
		}
		last = at
		ticks = append(ticks, Number(steps[i]-1), Number(1/steps[i]-1))
	}
	return ticks
}
