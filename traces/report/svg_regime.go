package report

import (
	"fmt"
	"slices"
	"strings"
)

// SVG draws the map: a point has its winner's colour.
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
	noteTop := keyTop + 20*float64(rows)
	c := newCanvas(width, noteTop+32+16*float64(len(notes)), title,
		"Regime map: the policy with the highest median goodput over working set and skew, with its lead over the runner-up; "+m.subtitle()+".")
	c.heading(28, title, m.subtitle(), width-56)
	g.draw(c, tiles)
	for _, k := range keys {
		c.Roundrect(k.x, k.y-11, 14, 14, 3, 3, fill(k.colour))
		c.text(k.x+21, k.y, k.text, style{})
	}
	c.spreadKey(g.left, noteTop+6)
	c.footnotes(g.left, noteTop+30, width-g.left-gridRight, notes)
	return c.done()
}

func (m RegimeMap) tile(r Regime) tile {
	if r.Winner == "" {
		return tile{}
	}
	own := policyColour(slices.Index(m.Policies, r.Winner))
	t := tile{
		ground: own.mix(white(), 0.72), bar: &own,
		headline: percent(r.Lead.Ratio), hatched: r.Lead.WithinSpread, doubt: r.Lead.Doubts != nil,
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
	if r.Lead.Policy.Repetitions > 1 || r.Lead.Baseline.Repetitions > 1 {
		t.details = append(t.details, typeset(percent(r.Lead.RatioMin)+" … "+percent(r.Lead.RatioMax)))
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

// keys are the policies that win anywhere, with how often.
func (m RegimeMap) keys() []key {
	var keys []key
	for i, label := range m.Policies {
		first := 0
		for _, r := range m.Points {
			if r.Winner == label {
				first++
			}
		}
		if first > 0 {
			keys = append(keys, key{text: fmt.Sprintf("%s: first at %d of %d points", label, first, len(m.Points)),
				colour: policyColour(i), index: i})
		}
	}
	return keys
}

// placeKeys sets the keys in rows from (x, y), no further right than right,
// and returns how many rows they take.
func placeKeys(keys []key, x, y, right float64) (rows int) {
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
