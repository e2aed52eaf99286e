package report

import (
	"fmt"
	"math"
)

// A Scatter is dots over two axes.
type Scatter struct {
	Figure   string   `json:"figure"`
	Title    string   `json:"title"`
	Subtitle string   `json:"subtitle"`
	X        Axis     `json:"x"`
	Y        Axis     `json:"y"`
	Diagonal bool     `json:"diagonal"` // a line where both are equal
	Series   []Series `json:"series"`
}

// An Axis is named with its unit. A logarithmic one leaves out what is not
// positive.
type Axis struct {
	Title       string `json:"title"`
	Logarithmic bool   `json:"logarithmic"`
}

// A Series is dots of one kind.
type Series struct {
	Name string   `json:"name"`
	X    []Number `json:"x"`
	Y    []Number `json:"y"`
}

const (
	scatterW, scatterH = 640.0, 400.0 // of the plotted area
	scatterLeft        = 86.0
)

// scale is an axis over its pixels.
type scale struct {
	low, high   float64
	logarithmic bool
	from, to    float64 // px
}

func newScale(a Axis, values []float64, from, to float64) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), logarithmic: a.Logarithmic, from: from, to: to}
	for _, v := range values {
		s.low, s.high = math.Min(s.low, v), math.Max(s.high, v)
	}
	if s.low > s.high {
		s.low, s.high = 1, 2
	}
	if a.Logarithmic {
		s.low, s.high = s.low/1.1, s.high*1.1
		return s
	}
	if pad := (s.high - s.low) * 0.05; pad > 0 {
		s.low, s.high = s.low-pad, s.high+pad
	} else {
		s.low, s.high = s.low-1, s.high+1
	}
	return s
}

func (s scale) at(v float64) float64 {
	t := (v - s.low) / (s.high - s.low)
	if s.logarithmic {
		t = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return s.from + t*(s.to-s.from)
}

// ticks are round numbers within the axis.
func (s scale) ticks() []float64 {
	var out []float64
	if s.logarithmic {
		for p := math.Floor(math.Log10(s.low)); p <= math.Log10(s.high); p++ {
			for _, m := range [...]float64{1, 2, 5} {
				if v := m * math.Pow(10, p); v >= s.low && v <= s.high {
					out = append(out, round(v, 9))
				}
			}
		}
		return out
	}
	step := niceStep((s.high - s.low) / 6)
	for k := math.Ceil(s.low / step); k*step <= s.high; k++ {
		out = append(out, round(k*step, 9)+0)
	}
	return out
}

// shown says whether a dot has a place on both axes.
func (f Scatter) shown(x, y Number) bool {
	return x.known() && y.known() && (!f.X.Logarithmic || x > 0) && (!f.Y.Logarithmic || y > 0)
}

// SVG draws the dots, the later series over the earlier.
func (f Scatter) SVG() []byte {
	var xs, ys []float64
	var keys []key
	for i, s := range f.Series {
		keys = append(keys, key{text: s.Name, colour: policyColour(i), index: i})
		for k := range s.X {
			if f.shown(s.X[k], s.Y[k]) {
				xs, ys = append(xs, float64(s.X[k])), append(ys, float64(s.Y[k]))
			}
		}
	}
	if f.Diagonal {
		both := append(append([]float64(nil), xs...), ys...)
		xs, ys = both, both
	}
	const width = scatterLeft + scatterW + 30
	rows := placeKeys(keys, 28, 92, width-28)
	top := 92 + 20*float64(rows) + 8
	height := top + scatterH + 66
	x := newScale(f.X, xs, scatterLeft, scatterLeft+scatterW)
	y := newScale(f.Y, ys, top+scatterH, top)
	c := newCanvas(width, height, f.Title, f.Subtitle+".")
	c.heading(28, f.Title, f.Subtitle, width-56)
	for _, k := range keys {
		c.marker(k.x+8, k.y-4, k.index)
		c.text(k.x+24, k.y, k.text, style{})
	}
	f.axes(c, x, y, top)
	for i, s := range f.Series {
		for k := range s.X {
			if f.shown(s.X[k], s.Y[k]) {
				c.Circle(x.at(float64(s.X[k])), y.at(float64(s.Y[k])), 2.6, fill(policyColour(i)), `fill-opacity="0.55"`)
			}
		}
	}
	return c.done()
}

func (f Scatter) axes(c *canvas, x, y scale, top float64) {
	faint := faintInk()
	for _, v := range y.ticks() {
		at := y.at(v)
		line := `stroke="#e3e7eb"`
		if v == 0 {
			line = stroke(faint)
		}
		c.Line(scatterLeft, at, scatterLeft+scatterW, at, line)
		c.text(scatterLeft-8, at+4, exact(v), style{anchor: "end", ink: &faint})
	}
	last := math.Inf(-1)
	for _, v := range x.ticks() {
		at, label := x.at(v), exact(v)
		c.Line(at, top+scatterH, at, top+scatterH+5, stroke(faint))
		if at-last >= textWidth(label, 12)+8 {
			c.text(at, top+scatterH+19, label, style{anchor: "middle", ink: &faint})
			last = at
		}
	}
	if f.Diagonal {
		low, high := math.Max(x.low, y.low), math.Min(x.high, y.high)
		c.Line(x.at(low), y.at(low), x.at(high), y.at(high), stroke(faint), `stroke-dasharray="5 4"`)
	}
	c.text(scatterLeft+scatterW/2, top+scatterH+44, f.X.Title, style{anchor: "middle", ink: &faint})
	c.text(scatterLeft-62, top+scatterH/2, f.Y.Title, style{anchor: "middle", ink: &faint, rotate: -90})
}

// Bars are numbers with their intervals, each as a share of its value.
type Bars struct {
	Figure   string `json:"figure"`
	Title    string `json:"title"`
	Subtitle string `json:"subtitle"`
	Bars     []Bar  `json:"bars"`
}

// A Bar is one number: Low and High as shares of it, 1 being the number itself.
type Bar struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Low  Number `json:"low"`
	High Number `json:"high"`
}

// SVG draws a line from each low to its high. What lies beyond half or twice the
// number ends in an arrow.
func (f Bars) SVG() []byte {
	const row, left, width = 19.0, 270.0, 860.0
	const right = width - 190.0
	top := 96.0
	height := top + row*float64(len(f.Bars)) + 48
	c := newCanvas(width, height, f.Title, f.Subtitle+".")
	c.heading(28, f.Title, f.Subtitle, width-56)
	faint := faintInk()
	s := scale{low: 0.5, high: 2, logarithmic: true, from: left, to: right}
	for _, v := range [...]float64{0.5, 0.7, 1, 1.4, 2} {
		at := s.at(v)
		c.Line(at, top-6, at, height-40, `stroke="#e3e7eb"`)
		c.text(at, height-22, fmt.Sprintf("%g", v), style{anchor: "middle", ink: &faint})
	}
	ink := policyColour(0)
	for i, b := range f.Bars {
		y := top + row*(float64(i)+0.5)
		c.text(left-10, y+4, b.Name, style{anchor: "end", size: 11, fit: left - 34})
		c.text(right+14, y+4, b.Text, style{size: 11, ink: &faint, fit: width - right - 30})
		if !b.Low.known() || !b.High.known() {
			continue
		}
		low, high := math.Max(float64(b.Low), s.low), math.Min(float64(b.High), s.high)
		if low > high {
			continue
		}
		c.Line(s.at(low), y, s.at(high), y, stroke(ink), `stroke-width="3"`)
		if float64(b.Low) < s.low {
			c.Polygon([]float64{left - 7, left, left}, []float64{y, y - 4, y + 4}, fill(ink))
		}
		if float64(b.High) > s.high {
			c.Polygon([]float64{right + 7, right, right}, []float64{y, y - 4, y + 4}, fill(ink))
		}
		c.Circle(s.at(1), y, 3.4, fill(ink), `stroke="#ffffff"`)
	}
	return c.done()
}
