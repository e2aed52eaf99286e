package report

import (
	"fmt"
	"slices"
	"strings"
)

// SVG draws the map: a point has its winner's colour, or none if a policy is
// missing there.
func (m RegimeMap) SVG() []byte {
	const title = "Which policy has the highest goodput, and by how much"
	keys := m.keys()
	var leads []Difference
	var tiles []tile
	for _, r := range m.Points {
		leads = append(leads, r.Lead)
		tiles = append(tiles, m.tile(r))
	}
	g := newTileGrid(m.WorkingSets, m.Skews, textWidth(title, 20)+60, tiles)
	notes := notesOf(leads)
	keyTop := g.bottom() + 16
	width := g.width()
	rows := placeKeys(keys, g.left, keyTop, width-gridRight)
	at := keyTop + 20*float64(rows) + 6
	spread, incomplete := showsSpread(m.Frame, tiles), slices.ContainsFunc(tiles, func(t tile) bool { return t.incomplete })
	height := at + 4 + 16*float64(len(notes))
	for _, shown := range []bool{spread, incomplete, m.Draws > 0} {
		if shown {
			height += 22
		}
	}
	c := newCanvas(width, height, title,
		"Regime map: the policy with the highest median goodput over working set and skew, with its lead over the runner-up; "+m.subtitle()+".")
	c.heading(28, title, m.subtitle(), width-56)
	if incomplete {
		c.incompletePattern()
	}
	g.draw(c, tiles)
	for _, k := range keys {
		c.Roundrect(k.x, k.y-11, 14, 14, 3, 3, fill(k.colour))
		c.text(k.x+21, k.y, k.text, style{})
	}
	if spread {
		c.spreadKey(g.left, at)
		at += 22
	}
	if incomplete {
		c.incompleteKey(g.left, at)
		at += 22
	}
	if m.Draws > 0 {
		m.drawnKey(c, g.left, at, width-g.left-gridRight)
		at += 22
	}
	c.footnotes(g.left, at+2, width-g.left-gridRight, notes)
	return c.done()
}

func (m RegimeMap) tile(r Regime) tile {
	if r.Winner == "" {
		return tile{}
	}
	if r.Incomplete() {
		return m.incompleteTile(r)
	}
	own := policyColour(slices.Index(m.Policies, r.Winner))
	t := tile{
		ground: own.mix(white(), 0.72), bar: &own,
		headline: percent(r.Lead.Ratio), hatched: r.Lead.WithinSpread, doubt: r.Lead.Doubts != nil,
		marked: r.depends(),
	}
	t.name, t.variant, _ = strings.Cut(r.Winner, ":")
	if r.RunnerUp == "" {
		t.headline, t.details = "alone", []string{"no other policy here"}
		return t
	}
	name, variant, _ := strings.Cut(r.RunnerUp, ":")
	t.details = append(t.details, "over "+name)
	if variant != "" {
		t.details = append(t.details, variant)
	}
	t.details = append(t.details, r.Lead.rangeLine(m.Frame)...)
	if t.marked {
		t.details = append(t.details, "beaten in "+share(r.Drawn.Beaten)+" of draws")
	}
	return t
}

// drawnKey explains the mark of points that depend on the calibration at (x, y), or
// says that none does.
func (m RegimeMap) drawnKey(c *canvas, x, y, width float64) {
	faint := faintInk()
	text := fmt.Sprintf("depends on the calibration: beaten in over %d%% of %s", beatenPercent, m.draws())
	if n, _ := m.dependent(); n == 0 {
		c.text(x, y, fmt.Sprintf("no point depends on the calibration: beaten in over %d%% of %s", beatenPercent, m.draws()),
			style{ink: &faint, fit: width})
		return
	}
	c.Roundrect(x, y-11, 22, 14, 3, 3, `fill="#ffffff"`, stroke(faintInk()), `stroke-width="0.5"`)
	c.Path(fmt.Sprintf("M%.1f %.1fh8a3 3 0 0 1 3 3v8z", x+11, y-11), fill(darkInk()))
	c.text(x+30, y, text, style{ink: &faint, fit: width - 30})
}

// incompleteTile says how many policies are there and which is ahead of them,
// without a lead: the missing ones may be ahead of it.
func (m RegimeMap) incompleteTile(r Regime) tile {
	t := tile{ground: hex(0xfafafa), headline: "incomplete", incomplete: true, doubt: r.Lead.Doubts != nil}
	name, variant, _ := strings.Cut(r.Winner, ":")
	of := "ahead: " + name
	if r.RunnerUp == "" {
		of = "only " + name
	}
	t.details = []string{fmt.Sprintf("%d of %d policies", len(m.Policies)-len(r.Missing), len(m.Policies)), of}
	if variant != "" {
		t.details = append(t.details, variant)
	}
	return t
}

// A key is one entry of a legend.
type key struct {
	text   string
	colour colour
	index  int // of the policy
	x, y   float64
}

// keys are the policies that are first at any complete point, with how often.
func (m RegimeMap) keys() []key {
	points := count(len(m.Points), "point", "points")
	if n := m.complete(); n < len(m.Points) {
		points = count(n, "complete point", "complete points")
	}
	var keys []key
	for i, label := range m.Policies {
		first := 0
		for _, r := range m.Points {
			if r.Winner == label && !r.Incomplete() {
				first++
			}
		}
		if first > 0 {
			keys = append(keys, key{text: fmt.Sprintf("%s: first at %d of %s", label, first, points),
				colour: policyColour(i), index: i})
		}
	}
	return keys
}

// placeKeys sets the keys in rows from (x, y), no further right than right,
// and returns how many rows they take.
func placeKeys(keys []key, x, y, right float64) (rows int) {
	if len(keys) == 0 {
		return 0
	}
	rows = 1
	at := x
	for i := range keys {
		w := 21 + textWidth(keys[i].text, 12) + 12
		if at > x && at+w > right {
			at = x
			rows++
		}
		keys[i].x, keys[i].y = at, y+20*float64(rows-1)
		at += w
	}
	return rows
}
