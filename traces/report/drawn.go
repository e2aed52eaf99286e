package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Drawn is how a point of a regime map comes out under the draws of a calibrated
// fleet's constants, each judged as the map judges the fleet: a policy wins, or,
// where the best are within spread or equal, none does.
type Drawn struct {
	Draws    int     `json:"draws"` // under which no policy is missing here
	Wins     []Share `json:"wins"`  // most first
	NoWinner Number  `json:"no_winner"`
	// Beaten is the share of the draws under which the policy that the map puts first
	// is behind the best one by more than the spread. A draw under which the best are
	// within spread is no result and speaks against nobody.
	Beaten Number `json:"beaten"`
	// Depends says that who is first is the calibration's doing: beaten under more
	// than 5% of the draws.
	Depends bool `json:"depends"`
}

// A Share is the part of the draws that a policy wins.
type Share struct {
	Policy string `json:"policy"`
	Share  Number `json:"share"`
}

// beatenPercent is how many of a hundred draws may beat the first policy of a point
// that is not marked.
const beatenPercent = 5

// won is who wins a point, empty if nobody does.
func (r Regime) won() string {
	if r.Incomplete() || !r.Lead.apart() {
		return ""
	}
	return r.Winner
}

// apart says that the policy is ahead of the baseline by more than the spread, or
// at all where there is one repetition.
func (d Difference) apart() bool { return !d.WithinSpread && d.RPS > 0 }

// A tally counts a point's draws.
type tally struct {
	draws, beaten int
	wins          map[string]int
}

// judgeDraws adds to every complete point how it comes out under the draws. all are
// the policies of the sweep.
func (m *RegimeMap) judgeDraws(samples []Sample, all []variant) error {
	tallies := make([]tally, len(m.Points))
	for samples = m.of(samples); len(samples) > 0; {
		n := 1
		for n < len(samples) && samples[n].Draw == samples[0].Draw {
			n++
		}
		var cells []Cell
		for _, s := range samples[:n] {
			cells = append(cells, s.Cell)
		}
		g, err := newGrid(cells, all)
		if err != nil {
			return fmt.Errorf("draw %d: %w", samples[0].Draw, err)
		}
		for i, r := range m.Points {
			tallies[i].add(r, g)
		}
		m.Draws++
		samples = samples[n:]
	}
	for i, t := range tallies {
		if t.draws > 0 {
			m.Points[i].Drawn = t.drawn()
		}
	}
	return nil
}

// add judges a point of the map under one draw. What is missing is not judged.
func (t *tally) add(r Regime, g Grid) {
	under := regime(g, float64(r.WorkingSet), float64(r.Skew))
	if r.Incomplete() || under.Incomplete() {
		return
	}
	if t.wins == nil {
		t.wins = map[string]int{}
	}
	t.draws++
	if won := under.won(); won != "" {
		t.wins[won]++
	}
	first, _ := g.at(float64(r.WorkingSet), float64(r.Skew), r.Winner)
	if difference(0, 0, under.Lead.Policy, first.Goodput).apart() {
		t.beaten++
	}
}

func (t tally) drawn() *Drawn {
	share := func(n int) Number { return Number(n) / Number(t.draws) }
	d := &Drawn{Draws: t.draws, Wins: []Share{}, Beaten: share(t.beaten), Depends: 100*t.beaten > beatenPercent*t.draws}
	without := t.draws
	for policy, n := range t.wins {
		d.Wins = append(d.Wins, Share{policy, share(n)})
		without -= n
	}
	d.NoWinner = share(without)
	slices.SortFunc(d.Wins, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Policy, b.Policy))
	})
	return d
}

// of is the samples of the map's driver and load, by draw.
func (m *RegimeMap) of(samples []Sample) []Sample {
	return slices.DeleteFunc(sortedSamples(samples), func(s Sample) bool {
		return s.Driver != m.Driver || Number(s.Load) != m.Load
	})
}

// depends says that a point was judged under draws and is not sure.
func (r Regime) depends() bool { return r.Drawn != nil && r.Drawn.Depends }

// dependent is how many points were judged under draws, and how many of them depend
// on the calibration.
func (m RegimeMap) dependent() (depend, judged int) {
	for _, r := range m.Points {
		if r.Drawn != nil {
			judged++
		}
		if r.depends() {
			depend++
		}
	}
	return depend, judged
}

// drawnText says which points depend on the calibration; nothing of a map without
// draws.
func (m RegimeMap) drawnText() string {
	if m.Draws == 0 {
		return ""
	}
	depend, judged := m.dependent()
	verb, of := "depend", "their first policy is beaten"
	switch depend {
	case 0:
		of = "no first policy is beaten"
	case 1:
		verb, of = "depends", "its first policy is beaten"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %d %s on the calibration: %s under more than %d%% of %s", count(depend, "point", "points"), judged, verb, of, beatenPercent, m.draws())
	if m.Repetitions[1] == 1 {
		b.WriteString("; with one repetition chance counts as well, since nothing is within spread")
	}
	b.WriteString("\n")
	for _, r := range m.Points {
		if r.depends() {
			fmt.Fprintf(&b, "  working set %s, skew %s: %s beaten in %s; %s\n", exact(float64(r.WorkingSet)), exact(float64(r.Skew)),
				r.Winner, share(r.Drawn.Beaten), r.Drawn.text(m.Draws))
		}
	}
	return b.String()
}

func (m RegimeMap) draws() string { return count(m.Draws, "draw", "draws") }

// text is who wins how often, of a map of so many draws.
func (d *Drawn) text(draws int) string {
	var parts []string
	for _, s := range d.Wins {
		parts = append(parts, s.Policy+" wins "+share(s.Share))
	}
	if d.NoWinner > 0 {
		parts = append(parts, "nobody "+share(d.NoWinner))
	}
	text := strings.Join(parts, ", ")
	if d.Draws < draws {
		text += fmt.Sprintf(" (of %d)", d.Draws)
	}
	return text
}

// share is a share as a whole percentage.
func share(n Number) string { return fixed(100*n, 0) + "%" }
