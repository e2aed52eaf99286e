package report

import (
	"cmp"
	"fmt"
	"slices"
)

// DefaultPair is the pair a pressure map shows when nobody names one: against
// session_affinity, if the sweep has exactly one variant of it, the policy that
// beats it at most points; else the policy with most wins against the next.
// Ties go to the higher mean goodput over the points. It fails with fewer than
// two policies.
func DefaultPair(g Grid) (policy, baseline string, err error) {
	if len(g.Policies) < 2 {
		return "", "", fmt.Errorf("a pressure map compares two policies, the sweep has only %s", g.Policies[0])
	}
	const usual = "session_affinity"
	if slices.Contains(g.Policies, usual) {
		best := g.ranked(func(label string) int { return g.winsAgainst(label, usual) })
		best = slices.DeleteFunc(best, func(label string) bool { return label == usual })
		return best[0], usual, nil
	}
	regimes := NewRegimeMap(g)
	best := g.ranked(func(label string) int { return regimes.Wins(label) })
	return best[0], best[1], nil
}

// Wins counts the complete points where a policy leads by more than the spread,
// or leads at all where there is one repetition.
func (m RegimeMap) Wins(label string) int {
	n := 0
	for _, p := range m.Points {
		if p.won() == label {
			n++
		}
	}
	return n
}

func (g *Grid) winsAgainst(label, baseline string) int {
	n := 0
	for _, d := range NewPressureMap(*g, label, baseline).Points {
		if d.Shown() && !d.WithinSpread && d.RPS > 0 {
			n++
		}
	}
	return n
}

// ranked is the labels by wins, then by mean of median goodput.
func (g *Grid) ranked(wins func(label string) int) []string {
	type rank struct {
		label string
		wins  int
		mean  float64
	}
	var ranks []rank
	for _, label := range g.Policies {
		r := rank{label: label, wins: wins(label)}
		n := 0
		for _, p := range g.Points {
			if p.Policy == label {
				r.mean += float64(p.Goodput.Median)
				n++
			}
		}
		r.mean /= float64(n)
		ranks = append(ranks, r)
	}
	slices.SortStableFunc(ranks, func(a, b rank) int {
		return cmp.Or(cmp.Compare(b.wins, a.wins), cmp.Compare(b.mean, a.mean))
	})
	var order []string
	for _, r := range ranks {
		order = append(order, r.label)
	}
	return order
}
