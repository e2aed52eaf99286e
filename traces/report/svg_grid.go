package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A tile is what a point of a map shows. An empty headline is a hole.
type tile struct {
	ground   colour
	bar      *colour // a stripe at the left
	name     string  // above the headline
	variant  string  // under the name, small
	headline string
	details  []string // below it
	hatched  bool     // within spread
	doubt    bool
	marked   bool // a dark corner

	incomplete bool // drawn as unfinished, whatever else is set
}

// A tileGrid draws tiles over working set (to the right) and skew (upwards).
type tileGrid struct {
	workingSets, skews []Number
	tileW, tileH       float64
	left, top          float64
	skewTitle          []string // lines, from the left
}

const (
	tileGap    = 4
	gridLeft   = 84
	gridRight  = 28
	axisHeight = 58 // tick labels and title under the grid

	minGridWidth  = 580.0 // px of a figure, for what stands under the grid
	minGridHeight = 120.0 // px of the tiles, for the title beside them
	titleLine     = 15.0  // px between the lines of that title
)

// newTileGrid makes all tiles as high as the fullest needs. A low grid breaks
// the title at its left into lines and moves right to make room for them.
func newTileGrid(workingSets, skews []Number, minWidth float64, tiles []tile) tileGrid {
	g := tileGrid{workingSets: workingSets, skews: skews, left: gridLeft, top: 80}
	for _, t := range tiles {
		g.tileH = math.Max(g.tileH, t.words()+40)
	}
	g.tileH = math.Max(g.tileH, minGridHeight/float64(len(skews)))
	g.skewTitle = skewTitle(g.height())
	g.left += titleLine * float64(len(g.skewTitle)-1)
	g.tileW = math.Max(164, (math.Max(minWidth, minGridWidth)-g.left-gridRight)/float64(len(workingSets)))
	return g
}

// skewTitle is the title of the skew axis in as few lines as can be read along
// height px.
func skewTitle(height float64) []string {
	for _, lines := range [][]string{
		{"skew (Zipf exponent over sessions)"},
		{"skew", "(Zipf exponent over sessions)"},
	} {
		if textWidth(lines[len(lines)-1], 11) <= height {
			return lines
		}
	}
	return []string{"skew", "(Zipf exponent", "over sessions)"}
}

func (g tileGrid) width() float64  { return g.left + g.tileW*float64(len(g.workingSets)) + gridRight }
func (g tileGrid) height() float64 { return g.tileH * float64(len(g.skews)) }
func (g tileGrid) bottom() float64 { return g.top + g.height() + axisHeight }

// draw puts the axes and one tile per (working set, skew), given in that order.
func (g tileGrid) draw(c *canvas, tiles []tile) {
	faint := faintInk()
	for i, ws := range g.workingSets {
		x := g.left + (float64(i)+0.5)*g.tileW
		c.text(x, g.top+g.height()+20, exact(float64(ws)), style{size: 14, anchor: "middle"})
		for j := range g.skews {
			y := g.top + float64(len(g.skews)-1-j)*g.tileH
			g.drawTile(c, x-g.tileW/2+tileGap/2, y+tileGap/2, tiles[i*len(g.skews)+j])
		}
	}
	for j, skew := range g.skews {
		y := g.top + (float64(len(g.skews)-1-j)+0.5)*g.tileH
		c.text(g.left-12, y+5, exact(float64(skew)), style{size: 14, anchor: "end"})
	}
	c.text(g.left+g.tileW*float64(len(g.workingSets))/2, g.top+g.height()+43,
		workingSetTitle, style{size: 13, anchor: "middle", ink: &faint})
	for i, line := range g.skewTitle {
		c.text(30+titleLine*float64(i), g.top+g.height()/2, line,
			style{size: 13, anchor: "middle", ink: &faint, rotate: -90, fit: g.height()})
	}
}

const workingSetTitle = "working set (session-pool tokens / fleet KV tokens)"

func (g tileGrid) drawTile(c *canvas, x, y float64, t tile) {
	w, h := g.tileW-tileGap, g.tileH-tileGap
	if t.headline == "" {
		faint := faintInk()
		c.Roundrect(x+0.5, y+0.5, w-1, h-1, 6, 6, `fill="#fafafa"`, `stroke="#c4cad1"`, `stroke-dasharray="4 4"`)
		for i, line := range append([]string{"no cell"}, t.details...) {
			c.text(x+w/2, y+h/2+float64(i)*15, line, style{size: 11.5, anchor: "middle", ink: &faint, fit: w - 16})
		}
		return
	}
	c.Roundrect(x, y, w, h, 6, 6, fill(t.ground))
	if t.incomplete {
		c.Roundrect(x+1, y+1, w-2, h-2, 5, 5, `fill="url(#incomplete)"`, stroke(darkInk()), `stroke-width="1.5"`, `stroke-dasharray="2 4"`)
	} else if t.hatched {
		c.Roundrect(x, y, w, h, 6, 6, `fill="url(#hatch)"`)
		c.Roundrect(x+1, y+1, w-2, h-2, 5, 5, `fill="none"`, stroke(faintInk()), `stroke-dasharray="5 4"`)
	}
	if t.bar != nil {
		c.Path(fmt.Sprintf("M%.1f %.1fh-1a6 6 0 0 0-6 6v%.1fa6 6 0 0 0 6 6h1z", x+7, y, h-12), fill(*t.bar))
	}
	if t.marked {
		c.Path(fmt.Sprintf("M%.1f %.1fh16a6 6 0 0 1 6 6v16z", x+w-22, y), fill(darkInk()))
	}
	g.drawWords(c, x, y, w, h, t)
}

// words is how high a tile's lines stand.
func (t tile) words() float64 {
	h := 28 + 17*float64(len(t.details))
	if t.name != "" {
		h += 21
	}
	if t.variant != "" {
		h += 15
	}
	return h
}

// drawWords stacks the lines of a tile around its middle.
func (g tileGrid) drawWords(c *canvas, x, y, w, h float64, t tile) {
	ground := t.ground
	ink := ground.ink()
	var halo *colour
	if t.hatched || t.incomplete {
		halo = &ground
	}
	at := y + (h-t.words())/2
	if t.name != "" {
		c.text(x+w/2, at+13, t.name, style{size: 14.5, weight: "700", anchor: "middle", ink: &ink, halo: halo, fit: w - 20})
		at += 21
	}
	if t.variant != "" {
		c.text(x+w/2, at+9, t.variant, style{size: 11.5, anchor: "middle", ink: &ink, halo: halo, fit: w - 16})
		at += 15
	}
	headline, size := typeset(t.headline), 27.0
	if t.incomplete {
		size = 20 // a word, not a result
	}
	if t.doubt {
		headline += " †"
	}
	c.text(x+w/2, at+22, headline, style{size: size, weight: "700", anchor: "middle", ink: &ink, halo: halo, fit: w - 20})
	at += 28
	for i, line := range t.details {
		c.text(x+w/2, at+17*float64(i+1)-2, line, style{size: 12.5, anchor: "middle", ink: &ink, halo: halo, fit: w - 16})
	}
}

// spreadKey explains hatching at (x, y).
func (c *canvas) spreadKey(x, y float64) {
	faint := faintInk()
	c.Roundrect(x, y-11, 22, 14, 3, 3, `fill="#ffffff"`)
	c.Roundrect(x, y-11, 22, 14, 3, 3, `fill="url(#hatch)"`, stroke(faintInk()), `stroke-dasharray="4 3"`)
	c.text(x+30, y, "within spread: the repetition ranges overlap, not a result", style{ink: &faint})
}

// showsSpread reports whether a figure has to explain hatching: it has a hatched
// tile, or could have had one.
func showsSpread(f Frame, tiles []tile) bool {
	return f.Repetitions[1] > 1 || slices.ContainsFunc(tiles, func(t tile) bool { return t.hatched })
}

// incompletePattern defines the dots of an incomplete tile. Only a figure with
// such a tile has them.
func (c *canvas) incompletePattern() {
	c.Def()
	c.Pattern("incomplete", 0, 0, 8, 8, "user")
	c.Circle(4, 4, 1.2, fill(faintInk()), `fill-opacity="0.35"`)
	c.PatternEnd()
	c.DefEnd()
}

// incompleteKey explains dotting at (x, y).
func (c *canvas) incompleteKey(x, y float64) {
	faint := faintInk()
	c.Roundrect(x, y-11, 22, 14, 3, 3, `fill="#fafafa"`)
	c.Roundrect(x, y-11, 22, 14, 3, 3, `fill="url(#incomplete)"`, stroke(darkInk()), `stroke-width="1.5"`, `stroke-dasharray="2 4"`)
	c.text(x+30, y, "incomplete: not all policies simulated, no winner", style{ink: &faint})
}

// footnotes puts doubts under a figure, at most four lines of them.
func (c *canvas) footnotes(x, y, width float64, notes []string) {
	faint := faintInk()
	for i, n := range notes {
		c.text(x, y+16*float64(i), n, style{size: 11.5, ink: &faint, fit: width})
	}
}

func notesOf(points []Difference) []string {
	var notes []string
	for _, p := range points {
		if p.Doubts != nil {
			notes = append(notes, fmt.Sprintf("† working set %s, skew %s: %s",
				exact(float64(p.WorkingSet)), exact(float64(p.Skew)), strings.Join(p.Doubts, "; ")))
		}
	}
	if len(notes) > 4 {
		notes = append(notes[:3], fmt.Sprintf("† and %d more points", len(notes)-3))
	}
	return notes
}
