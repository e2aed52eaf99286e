package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Defaults gives a policy's effective parameters, in the form of the column
// parameters, when none is set. It tells which of several variants the plain
// name of a policy means; without it every variant carries what sets it apart.
type Defaults map[string]string

// A variant is one policy with one set of parameters.
type variant struct {
	policy     string
	parameters string
	label      string
}

// variants labels every policy of the cells: its name, and those parameters
// that differ between the variants of that name. The default variant, if the
// defaults name it, is the plain name. Sorted by label.
func variants(cells []Cell, defaults Defaults) []variant {
	byName := map[string][]string{}
	for _, c := range cells {
		if !slices.Contains(byName[c.Policy], c.Parameters) {
			byName[c.Policy] = append(byName[c.Policy], c.Parameters)
		}
	}
	var all []variant
	for name, sets := range byName {
		for _, set := range sets {
			label := name
			if len(sets) > 1 && !sameParameters(defaults[name], set) {
				label += distinct(set, sets)
			}
			all = append(all, variant{name, set, label})
		}
	}
	slices.SortFunc(all, func(a, b variant) int {
		return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(a.parameters, b.parameters))
	})
	return all
}

// distinct is ":k=v,…" of the parameters in set that not all sets share.
func distinct(set string, sets []string) string {
	var kept []string
	for _, p := range pairs(set) {
		for _, other := range sets {
			if !slices.Contains(pairs(other), p) {
				kept = append(kept, p)
				break
			}
		}
	}
	if kept == nil {
		return ":" // this set has nothing the others lack
	}
	return ":" + strings.Join(kept, ",")
}

// find is the variant that "name" or "name:k=v,…" means: by label, else by the
// parameters given (the others may be anything), else by the defaults.
func find(all []variant, spec string, defaults Defaults) (variant, error) {
	name, given, _ := strings.Cut(spec, ":")
	var matches []variant
	for _, v := range all {
		if v.label == spec {
			return v, nil
		}
		if v.policy == name && hasParameters(v.parameters, given) {
			matches = append(matches, v)
		}
	}
	if len(matches) > 1 {
		for _, v := range matches {
			if given == "" && sameParameters(defaults[name], v.parameters) {
				return v, nil
			}
		}
		return variant{}, fmt.Errorf("policy %s is ambiguous here, want one of %s", spec, labels(matches))
	}
	if len(matches) == 0 {
		return variant{}, errNoVariant{spec, labels(all)}
	}
	return matches[0], nil
}

// errNoVariant is the error of find when nothing matches, as opposed to too
// much.
type errNoVariant struct{ spec, have string }

func (e errNoVariant) Error() string {
	return fmt.Sprintf("policy %s is not in the sweep, which has %s", e.spec, e.have)
}

func labels(all []variant) string {
	var names []string
	for _, v := range all {
		names = append(names, v.label)
	}
	return strings.Join(names, ", ")
}

func pairs(parameters string) []string {
	if parameters == "" {
		return nil
	}
	return strings.Split(parameters, ",")
}

// hasParameters reports whether set holds all of given; 1.5 and 1.50 are the
// same value.
func hasParameters(set, given string) bool {
	for _, g := range pairs(given) {
		if !slices.ContainsFunc(pairs(set), func(p string) bool { return sameParameter(p, g) }) {
			return false
		}
	}
	return true
}

func sameParameters(a, b string) bool {
	return len(pairs(a)) == len(pairs(b)) && hasParameters(a, b)
}

func sameParameter(a, b string) bool {
	ka, va, _ := strings.Cut(a, "=")
	kb, vb, _ := strings.Cut(b, "=")
	if ka != kb {
		return false
	}
	na, errA := strconv.ParseFloat(va, 64)
	nb, errB := strconv.ParseFloat(vb, 64)
	return va == vb || errA == nil && errB == nil && na == nb
}

// overlay is the parameters with those given replaced; one that is not among
// them is added, so that it matches nothing.
func overlay(parameters, given string) string {
	set := slices.Clone(pairs(parameters))
	for _, g := range pairs(given) {
		key, _, _ := strings.Cut(g, "=")
		i := slices.IndexFunc(set, func(p string) bool { return strings.HasPrefix(p, key+"=") })
		if i < 0 {
			set = append(set, g)
		} else {
			set[i] = g
		}
	}
	return strings.Join(set, ",")
}

// countPairs is how many parameters "name:k=v,…" gives.
func countPairs(spec string) int {
	_, given, _ := strings.Cut(spec, ":")
	return len(pairs(given))
}
