package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	svg "github.com/ajstarks/svgo/float"
)

// A canvas draws a figure. Text is laid out by estimated widths because the
// reader's fonts are unknown here.
type canvas struct {
	*svg.SVG
	buf bytes.Buffer
}

// newCanvas starts a figure on a white sheet, so that it reads the same on a
// dark page.
func newCanvas(width, height float64, title, description string) *canvas {
	c := &canvas{}
	c.SVG = svg.New(&c.buf)
	c.Decimals = 1
	c.Start(width, height, fmt.Sprintf(`viewBox="0 0 %.0f %.0f"`, width, height), `role="img"`,
		`font-family="system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"`)
	c.Title(title)
	c.Desc(description)
	c.Def()
	c.hatch()
	c.DefEnd()
	c.Roundrect(0, 0, width, height, 8, 8, fill(white()))
	return c
}

func (c *canvas) hatch() {
	c.Pattern("hatch", 0, 0, 9, 9, "user", `patternTransform="rotate(45)"`)
	c.Rect(0, 0, 3, 9, fill(faintInk()), `fill-opacity="0.22"`)
	c.PatternEnd()
}

func (c *canvas) done() []byte {
	c.End()
	return c.buf.Bytes()
}

// A style is how a text looks; the zero style is 12 px, dark and starting at x.
type style struct {
	size   float64
	weight string
	anchor string // start, middle or end
	ink    *colour
	halo   *colour // drawn behind, where the ground is busy
	rotate float64 // degrees around (x, y)
	fit    float64 // px to shrink into, not below 8 px; 0 = no limit
}

func (c *canvas) text(x, y float64, s string, st style) {
	if st.size == 0 {
		st.size = 12
	}
	if st.fit > 0 {
		if w := textWidth(s, st.size); w > st.fit {
			st.size = math.Max(8, st.size*st.fit/w)
		}
	}
	ink := darkInk()
	if st.ink != nil {
		ink = *st.ink
	}
	attrs := []string{fmt.Sprintf(`font-size="%.1f"`, st.size), fill(ink)}
	if st.weight != "" {
		attrs = append(attrs, `font-weight="`+st.weight+`"`)
	}
	if st.anchor != "" {
		attrs = append(attrs, `text-anchor="`+st.anchor+`"`)
	}
	if st.halo != nil {
		attrs = append(attrs, `paint-order="stroke"`, `stroke-width="4"`, `stroke-linejoin="round"`, stroke(*st.halo))
	}
	if st.rotate != 0 {
		attrs = append(attrs, fmt.Sprintf(`transform="rotate(%.0f %.1f %.1f)"`, st.rotate, x, y))
	}
	c.Text(x, y, s, attrs...)
}

// heading puts title and subtitle, and returns where the figure may begin.
func (c *canvas) heading(x float64, title, subtitle string, width float64) float64 {
	faint := faintInk()
	c.text(x, 38, title, style{size: 20, weight: "700", fit: width})
	c.text(x, 61, subtitle, style{size: 13, ink: &faint, fit: width})
	return 80
}

func fill(c colour) string   { return `fill="` + c.String() + `"` }
func stroke(c colour) string { return `stroke="` + c.String() + `"` }

func textWidth(s string, size float64) float64 { return 0.58 * size * float64(len([]rune(s))) }

// typeset gives a table's text the signs of print.
func typeset(s string) string { return strings.ReplaceAll(s, "-", "\u2212") }

// subtitle is the line under a figure's title.
func (f Frame) subtitle() string {
	parts := []string{LoadName(f.Driver, float64(f.Load)), "median of " + f.repetitions()}
	if f.Repetitions[1] == 1 {
		parts[1] = "one repetition, no range"
	}
	if f.Fleet != "" {
		parts = append([]string{f.Fleet}, parts...)
	}
	return strings.Join(parts, " · ")
}

func (f Frame) repetitions() string {
	if f.Repetitions[0] == f.Repetitions[1] {
		return fmt.Sprintf("%d repetitions", f.Repetitions[1])
	}
	return fmt.Sprintf("%d to %d repetitions", f.Repetitions[0], f.Repetitions[1])
}
