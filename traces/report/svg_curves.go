package report

import (
	"fmt"
	"math"
	"strings"
)

const (
	panelW, panelH = 300.0, 230.0 // of the plotted area
	panelGapX      = 62.0
	panelGapY      = 92.0
	panelsPerRow   = 3
)

// A plot is the area and the axes of one panel.
type plot struct {
	x, y         float64 // top left
	low, high    float64 // working sets at the ends
	logarithmic  bool
	top          float64 // goodput at the top
	step         float64 // between grid lines
	policies     int
	workingTicks []float64
}

// SVG draws one panel per skew with a common goodput axis. Working sets are on
// a logarithmic axis where they span a factor of four.
func (f GoodputCurves) SVG() []byte {
	const title = "Goodput against working set"
	columns := min(len(f.Panels), panelsPerRow)
	rows := (len(f.Panels) + columns - 1) / columns
	const left = 76.0
	width := math.Max(620, left+float64(columns)*(panelW+panelGapX)-panelGapX+28)
	keys := f.keys()
	keyRows := placeKeys(keys, 28, 90, width-28)
	top := 90 + 20*float64(keyRows) + 22
	height := top + float64(rows)*(panelH+panelGapY) - panelGapY + 74
	description, subtitle := "Median goodput of every policy over working set, a panel for each skew; ", f.subtitle()
	if f.Repetitions[1] > 1 {
		description, subtitle = description+"whiskers span the repetitions; ", subtitle+" · whiskers span the repetitions"
	}
	c := newCanvas(width, height, title, description+f.subtitle()+".")
	c.heading(28, title, subtitle, width-56)
	for _, k := range keys {
		c.Line(k.x-2, k.y-4, k.x+18, k.y-4, stroke(k.colour), `stroke-width="2"`)
		c.marker(k.x+8, k.y-4, k.index)
		c.text(k.x+24, k.y, k.text, style{})
	}
	base := f.axes()
	for i, p := range f.Panels {
		pl := base
		pl.x = left + float64(i%columns)*(panelW+panelGapX)
		pl.y = top + float64(i/columns)*(panelH+panelGapY)
		pl.drawAxes(c, "skew "+exact(float64(p.Skew)), i%columns == 0)
		for j, line := range p.Lines {
			pl.drawLine(c, line, j)
		}
	}
	return c.done()
}

func (f GoodputCurves) keys() []key {
	var keys []key
	for i, line := range f.Panels[0].Lines {
		keys = append(keys, key{text: line.Policy, colour: policyColour(i), index: i})
	}
	return keys
}

// axes is what all panels share.
func (f GoodputCurves) axes() plot {
	p := plot{low: math.Inf(1), high: math.Inf(-1), policies: len(f.Panels[0].Lines)}
	most := 0.0
	for _, panel := range f.Panels {
		for _, line := range panel.Lines {
			for _, pt := range line.Points {
				ws := float64(pt.WorkingSet)
				p.low, p.high = math.Min(p.low, ws), math.Max(p.high, ws)
				most = math.Max(most, float64(pt.Goodput.Max))
				p.workingTicks = append(p.workingTicks, ws)
			}
		}
	}
	p.workingTicks = ascending(p.workingTicks)
	p.logarithmic = p.high >= 4*p.low
	p.step = niceStep(most / 5)
	p.top = math.Max(p.step, p.step*math.Ceil(most/p.step))
	return p
}

// niceStep is the smallest 1, 2 or 5 times a power of ten not below v.
func niceStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range [...]float64{1, 2, 5} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

func (p plot) across(ws float64) float64 {
	const inset = 22
	if p.high == p.low {
		return p.x + panelW/2
	}
	t := (ws - p.low) / (p.high - p.low)
	if p.logarithmic {
		t = math.Log(ws/p.low) / math.Log(p.high/p.low)
	}
	return p.x + inset + t*(panelW-2*inset)
}

func (p plot) up(rps Number) float64 { return p.y + panelH*(1-float64(rps)/p.top) }

func (p plot) drawAxes(c *canvas, title string, first bool) {
	faint := faintInk()
	c.text(p.x, p.y-10, title, style{size: 14, weight: "700"})
	for i := 0; float64(i)*p.step <= p.top*1.0001; i++ {
		v := float64(i) * p.step
		y := p.up(Number(v))
		line := `stroke="#e3e7eb"`
		if i == 0 {
			line = stroke(faint)
		}
		c.Line(p.x, y, p.x+panelW, y, line)
		c.text(p.x-8, y+4, exact(round(v, 6)), style{anchor: "end", ink: &faint})
	}
	last := math.Inf(-1)
	for _, ws := range p.workingTicks {
		x := p.across(ws)
		c.Line(x, p.y+panelH, x, p.y+panelH+5, stroke(faint))
		if label := exact(ws); x-last >= textWidth(label, 12)+4 { // else it would run into the one before
			c.text(x, p.y+panelH+19, label, style{anchor: "middle", ink: &faint})
			last = x
		}
	}
	c.text(p.x+panelW/2, p.y+panelH+40, workingSetTitle, style{anchor: "middle", ink: &faint})
	if first {
		c.text(p.x-46, p.y+panelH/2, "goodput (requests/s within the SLO)", style{anchor: "middle", ink: &faint, rotate: -90})
	}
}

// aside is how far right of its working set a policy stands, in px, so that
// whiskers can be told from each other. A single working set has the whole panel
// to spread them over.
func (p plot) aside(index int) float64 {
	apart := float64(index) - float64(p.policies-1)/2
	if p.high == p.low {
		return apart * math.Min(30, (panelW-60)/float64(p.policies))
	}
	return math.Max(-14, math.Min(14, 3*apart))
}

// drawLine puts whiskers under the line under the markers.
func (p plot) drawLine(c *canvas, line Line, index int) {
	aside := p.aside(index)
	ink := policyColour(index)
	var xs, ys []float64
	for _, pt := range line.Points {
		x := p.across(float64(pt.WorkingSet)) + aside
		xs, ys = append(xs, x), append(ys, p.up(pt.Goodput.Median))
		if pt.Goodput.Repetitions > 1 {
			low, high := p.up(pt.Goodput.Min), p.up(pt.Goodput.Max)
			c.Path(fmt.Sprintf("M%.1f %.1fh6m-3 0V%.1fm-3 0h6", x-3, low, high),
				`fill="none"`, `stroke-width="1.3"`, stroke(ink))
		}
	}
	if len(xs) > 1 {
		var d strings.Builder
		for i := range xs {
			fmt.Fprintf(&d, "%c%.1f %.1f", "ML"[min(i, 1)], xs[i], ys[i])
		}
		c.Path(d.String(), `fill="none"`, `stroke-width="2"`, `stroke-linejoin="round"`, stroke(ink))
	}
	for i := range xs {
		c.marker(xs[i], ys[i], index)
	}
}

// marker is the policy's sign, of five shapes, so that colour is not all that
// tells lines apart.
func (c *canvas) marker(x, y float64, index int) {
	paint := []string{fill(policyColour(index)), `stroke="#ffffff"`, `stroke-width="1"`}
	switch index % 5 {
	case 0:
		c.Circle(x, y, 4.5, paint...)
	case 1:
		c.CenterRect(x, y, 8.4, 8.4, paint...)
	case 2:
		c.Polygon([]float64{x, x + 5.8, x, x - 5.8}, []float64{y - 5.8, y, y + 5.8, y}, paint...)
	case 3:
		c.Polygon([]float64{x, x + 5.4, x - 5.4}, []float64{y - 5.6, y + 4, y + 4}, paint...)
	case 4:
		c.Polygon([]float64{x, x + 5.4, x - 5.4}, []float64{y + 5.6, y - 4, y - 4}, paint...)
	}
}
