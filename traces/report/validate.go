package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Validation is simulated cells held against measured ones.
type Validation struct {
	Cells   []ValidationCell `json:"cells"` // by driver, load, working set, skew, policy
	Summary Summary          `json:"summary"`
	Winners []WinnerVerdict  `json:"winners"` // points whose measured winner is decided
	Frozen  []FrozenPoint    `json:"frozen_point"`
	// What has no counterpart on the other side and was therefore not judged.
	NotSimulated []CellName `json:"not_simulated"`
	NotMeasured  []CellName `json:"not_measured"`
}

// A CellName is a cell without its repetitions.
type CellName struct {
	Driver     string `json:"driver"`
	Load       Number `json:"load"` // null if a measured file does not say
	WorkingSet Number `json:"working_set"`
	Skew       Number `json:"skew"`
	Policy     string `json:"policy"`
}

// A ValidationCell compares one cell. Errors are simulated against measured:
// goodput, TTFT and recomputed prefill as a ratio (0.02 is 2% too high), the
// hit rate as a difference. Simulated measures are medians of the repetitions.
type ValidationCell struct {
	CellName
	Simulated Spread `json:"simulated_goodput_rps"`
	Measured  Spread `json:"measured_goodput_rps"`
	// Stable says that the measured repetitions spread by at most 30% of their
	// median. The others are judged by Overlap alone.
	Stable  bool `json:"stable"`
	Inside  bool `json:"inside"`  // simulated median within the measured range
	Overlap bool `json:"overlap"` // of the two ranges

	GoodputError Number `json:"goodput_error"`
	HitRate      Pair   `json:"prefix_cache_hit_rate"`
	TTFTP50      Pair   `json:"ttft_p50_ms"`
	TTFTP99      Pair   `json:"ttft_p99_ms"`
	Recomputed   Pair   `json:"recomputed_prefill_tokens_per_request"`

	measuredAs string // the policy as the measured file names it
}

// A Pair is one measure on both sides, and the error.
type Pair struct {
	Simulated Number `json:"simulated"`
	Measured  Number `json:"measured"`
	Error     Number `json:"error"`
}

func relativePair(simulated Spread, measured float64) Pair {
	m := Number(measured)
	return Pair{simulated.Median, m, ratio(simulated.Median, m)}
}

func differencePair(simulated Spread, measured float64) Pair {
	m := Number(measured)
	return Pair{simulated.Median, m, simulated.Median - m}
}

// Validate compares cells with measured cells. A measured policy without
// parameters means the simulated one of that name; if there are several
// variants, use a Matcher. A measured file that does not state its driver or
// load can only be held against a sweep of one. It fails if that is ambiguous,
// or if no cell at all has a counterpart.
func Validate(cells []Cell, measured []MeasuredCell) (Validation, error) {
	return Matcher{}.Validate(cells, measured)
}

// A Matcher pairs measured with simulated cells. With the defaults of a policy
// it pairs only equal parameters. Without, a plain name means the only variant
// there is, or the only one that no other measured cell names; if several are
// left it is an error.
type Matcher struct {
	// Defaults tells which variant the plain name of a policy means.
	Defaults Defaults
}

// Validate is the package's Validate with the Matcher's knowledge.
func (m Matcher) Validate(cells []Cell, measured []MeasuredCell) (Validation, error) {
	if len(cells) == 0 || len(measured) == 0 {
		return Validation{}, errors.New("validation needs simulated and measured cells")
	}
	groups := ByLoad(cells)
	specs := measuredSpecs(measured)
	v := Validation{Winners: []WinnerVerdict{}, Frozen: []FrozenPoint{}, NotSimulated: []CellName{}, NotMeasured: []CellName{}}
	matched := make([]bool, len(measured))
	for _, group := range groups {
		g, err := NewGrid(group, m.Defaults)
		if err != nil {
			return Validation{}, err
		}
		labels, err := m.match(group, specs)
		if err != nil {
			return Validation{}, err
		}
		seen := map[CellName]bool{}
		for i, mc := range measured {
			if mc.Driver != "" && mc.Driver != g.Driver || mc.Load != 0 && mc.Load != g.Load {
				continue
			}
			p, ok := g.at(mc.WorkingSet, mc.Skew, labels[mc.spec()])
			if !ok {
				continue
			}
			if len(groups) > 1 && (mc.Driver == "" || mc.Load == 0) {
				return Validation{}, fmt.Errorf("the sweep has several loads (%s, %s, …) and the measured cells do not all say theirs: want columns driver and load",
					LoadName(groups[0][0].Driver, groups[0][0].Load), LoadName(groups[1][0].Driver, groups[1][0].Load))
			}
			name := g.cellName(p)
			if seen[name] {
				return Validation{}, fmt.Errorf("two measured cells mean %s", name)
			}
			seen[name], matched[i] = true, true
			v.Cells = append(v.Cells, newValidationCell(name, p, mc))
		}
		for _, p := range g.Points {
			if name := g.cellName(p); !seen[name] {
				v.NotMeasured = append(v.NotMeasured, name)
			}
		}
	}
	for i, mc := range measured {
		if !matched[i] {
			v.NotSimulated = append(v.NotSimulated, mc.name())
		}
	}
	if len(v.Cells) == 0 {
		return Validation{}, fmt.Errorf("none of the %d measured cells was simulated (the first is %s)", len(measured), measured[0].name())
	}
	v.judge()
	return v, nil
}

func (v *Validation) judge() {
	byName := func(a, b CellName) int { return a.compare(b) }
	slices.SortFunc(v.Cells, func(a, b ValidationCell) int { return a.compare(b.CellName) })
	slices.SortFunc(v.NotMeasured, byName)
	slices.SortFunc(v.NotSimulated, byName)
	v.Summary = summarize(v.Cells)
	v.Winners = append(v.Winners, judgeWinners(v.Cells)...)
	v.Frozen = append(v.Frozen, frozenPoints(v.Cells)...)
}

func measuredSpecs(measured []MeasuredCell) []string {
	var specs []string
	for _, m := range measured {
		specs = append(specs, m.spec())
	}
	slices.Sort(specs)
	return slices.Compact(specs)
}

// match gives the label that each measured policy means. Names with parameters
// choose first; a plain name may then mean what they left over. A policy that
// was not simulated has no label.
func (m Matcher) match(cells []Cell, specs []string) (map[string]string, error) {
	all := variants(cells, m.Defaults)
	found := map[string]string{}
	slices.SortStableFunc(specs, func(a, b string) int { return cmp.Compare(countPairs(b), countPairs(a)) })
	for _, spec := range specs {
		v, err := m.find(all, spec)
		if none := (errNoVariant{}); errors.As(err, &none) {
			continue
		}
		if err != nil {
			var free []variant
			for _, v := range all {
				if !taken(found, v.label) {
					free = append(free, v)
				}
			}
			v, err = m.find(free, spec)
		}
		if err != nil {
			return nil, fmt.Errorf("measured cells: %w", err)
		}
		found[spec] = v.label
	}
	return found, nil
}

// find is the package's find, except that known defaults leave no parameter
// open: a sweep of spill_factor=0 alone is not what a plain name means.
func (m Matcher) find(all []variant, spec string) (variant, error) {
	name, given, _ := strings.Cut(spec, ":")
	defaults, known := m.Defaults[name]
	if !known {
		return find(all, spec, nil)
	}
	want := overlay(defaults, given)
	for _, v := range all {
		if v.policy == name && sameParameters(v.parameters, want) {
			return v, nil
		}
	}
	return variant{}, errNoVariant{spec, labels(all)}
}

func taken(found map[string]string, label string) bool {
	for _, l := range found {
		if l == label {
			return true
		}
	}
	return false
}

func newValidationCell(name CellName, p Point, m MeasuredCell) ValidationCell {
	c := ValidationCell{CellName: name, Simulated: p.Goodput, Measured: m.Goodput(), Stable: m.stable(), measuredAs: m.spec()}
	c.Inside = c.Measured.Holds(c.Simulated.Median)
	c.Overlap = c.Measured.Overlaps(c.Simulated)
	c.GoodputError = ratio(c.Simulated.Median, c.Measured.Median)
	c.HitRate = differencePair(p.HitRate, m.PrefixCacheHitRate)
	c.TTFTP50 = relativePair(p.TTFTP50, m.TTFTP50MS)
	c.TTFTP99 = relativePair(p.TTFTP99, m.TTFTP99MS)
	c.Recomputed = relativePair(p.Recomputed, m.RecomputedPrefillTokens)
	return c
}

func (g *Grid) cellName(p Point) CellName {
	return CellName{g.Driver, Number(g.Load), Number(p.WorkingSet), Number(p.Skew), p.Policy}
}

func (m MeasuredCell) name() CellName {
	load := Number(m.Load)
	if m.Load == 0 {
		load = unknown()
	}
	return CellName{m.Driver, load, Number(m.WorkingSet), Number(m.Skew), m.spec()}
}

func (n CellName) compare(o CellName) int {
	return cmp.Or(cmp.Compare(n.Driver, o.Driver), cmp.Compare(n.Load, o.Load), cmp.Compare(n.WorkingSet, o.WorkingSet),
		cmp.Compare(n.Skew, o.Skew), cmp.Compare(n.Policy, o.Policy))
}

func (n CellName) samePoint(o CellName) bool {
	return n.Driver == o.Driver && n.Load == o.Load && n.WorkingSet == o.WorkingSet && n.Skew == o.Skew
}

// String is "working set 1, skew 0, prefix_affinity".
func (n CellName) String() string {
	return fmt.Sprintf("working set %s, skew %s, %s", exact(float64(n.WorkingSet)), exact(float64(n.Skew)), n.Policy)
}
