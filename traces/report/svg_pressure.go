package report

import (
	"fmt"
	"slices"

	svg "github.com/ajstarks/svgo/float"
)

// SVG draws the map. Colour goes by the logarithm of the ratio; the same map
// gives the same bytes.
func (m PressureMap) SVG() []byte {
	title := fmt.Sprintf("Goodput of %s against %s", m.Policy, m.Baseline)
	var ratios []Number
	for _, d := range m.Points {
		ratios = append(ratios, d.Ratio)
	}
	scale := newRatioScale(ratios)
	var tiles []tile
	for _, d := range m.Points {
		tiles = append(tiles, m.tile(d, scale))
	}
	g := newTileGrid(m.WorkingSets, m.Skews, textWidth(title, 20)+60, tiles)
	notes := notesOf(m.Points)
	below := g.bottom() + 80
	spread := showsSpread(m.Frame, tiles)
	if spread {
		below += 22
	}
	width, height := g.width(), below-2+16*float64(len(notes))
	c := newCanvas(width, height, title, m.description())
	c.heading(28, title, m.subtitle(), width-56)
	g.draw(c, tiles)
	m.legend(c, scale, g.left, g.bottom()+10, width-g.left-gridRight)
	if spread {
		c.spreadKey(g.left, g.bottom()+80)
	}
	c.footnotes(g.left, below, width-g.left-gridRight, notes)
	return c.done()
}

func (m PressureMap) tile(d Difference, scale ratioScale) tile {
	if !d.Shown() {
		return tile{details: d.Missing}
	}
	t := tile{
		ground:   diverging(scale.position(d.Ratio)),
		headline: percent(d.Ratio),
		hatched:  d.WithinSpread,
		doubt:    d.Doubts != nil,
	}
	if !d.Ratio.known() {
		t.details = []string{m.Baseline + " has none"}
	} else {
		t.details = append(t.details, d.rangeLine(m.Frame)...)
	}
	t.details = append(t.details, typeset(signed(d.RPS, 2)+" req/s"))
	return t
}

// rangeLine is the range of the ratio. Where a side was run once it says so
// instead, or nothing if the subtitle says it of the whole figure.
func (d Difference) rangeLine(f Frame) []string {
	switch {
	case !d.OneRepetition():
		return []string{typeset(percent(d.RatioMin) + " … " + percent(d.RatioMax))}
	case f.Repetitions[1] > 1:
		return []string{"one repetition"}
	}
	return nil
}

// legend is a colour bar with its ticks, and who is ahead at which end.
func (m PressureMap) legend(c *canvas, scale ratioScale, x, y, width float64) {
	var stops []svg.Offcolor
	for i := range 5 {
		stops = append(stops, svg.Offcolor{Offset: uint8(25 * i), Color: diverging(float64(i)/2 - 1).String(), Opacity: 1})
	}
	c.Def()
	c.LinearGradient("scale", 0, 0, 100, 0, stops)
	c.DefEnd()
	const half = 210
	bar := min(2*half, width)
	left := x + (width-bar)/2
	c.Roundrect(left, y, bar, 12, 3, 3, `fill="url(#scale)"`, `stroke="#c4cad1"`, `stroke-width="0.5"`)
	ticks := scale.ticks()
	slices.Sort(ticks)
	for _, r := range ticks {
		at := left + bar*(scale.position(r)+1)/2
		c.Line(at, y+12, at, y+16, stroke(faintInk()))
		c.text(at, y+29, typeset(wholePercent(r)), style{size: 11.5, anchor: "middle"})
	}
	faint := faintInk()
	c.text(left, y+47, "← "+m.Baseline+" ahead", style{size: 12, ink: &faint, fit: bar/2 - 10})
	c.text(left+bar, y+47, m.Policy+" ahead →", style{size: 12, anchor: "end", ink: &faint, fit: bar/2 - 10})
}

// wholePercent is percent without its decimal, for round values.
func wholePercent(r Number) string { return signed(r*100, 0) + "%" }

func (m PressureMap) description() string {
	return fmt.Sprintf("Pressure map: difference of median goodput, %s minus %s, over working set and skew; %s.",
		m.Policy, m.Baseline, m.subtitle())
}
