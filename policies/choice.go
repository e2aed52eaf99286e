package policies

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Choice is a policy of the catalog with the parameters it was given.
type Choice struct {
	Spec Spec
	set  map[string]value
}

// ParseChoice reads "name" or "name:parameter=value,parameter=value". The error
// joins every fault found: an unknown name (with the nearest known one), a value
// of the wrong kind or out of range, a parameter given twice.
func ParseChoice(text string) (Choice, error) {
	name, rest, given := strings.Cut(text, ":")
	specs := Catalog()
	at := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == name })
	if at < 0 {
		var names []string
		for _, s := range specs {
			names = append(names, s.Name)
		}
		return Choice{}, fmt.Errorf("unknown policy %q: did you mean %q?", name, nearest(name, names))
	}
	c := Choice{Spec: specs[at], set: map[string]value{}}
	if !given {
		return c, nil
	}
	var faults []error
	for _, item := range strings.Split(rest, ",") {
		if err := c.parse(item); err != nil {
			faults = append(faults, fmt.Errorf("policy %s: %w", name, err))
		}
	}
	if len(faults) > 0 {
		return Choice{}, errors.Join(faults...)
	}
	return c, nil
}

// parse takes one parameter=value.
func (c *Choice) parse(item string) error {
	key, text, ok := strings.Cut(item, "=")
	if !ok {
		return fmt.Errorf("%q: expected parameter=value", item)
	}
	at := slices.IndexFunc(c.Spec.Params, func(p Param) bool { return p.Name == key })
	if at < 0 {
		if len(c.Spec.Params) == 0 {
			return fmt.Errorf("unknown parameter %q: it has none", key)
		}
		var names []string
		for _, p := range c.Spec.Params {
			names = append(names, p.Name)
		}
		return fmt.Errorf("unknown parameter %q: did you mean %q?", key, nearest(key, names))
	}
	if _, twice := c.set[key]; twice {
		return fmt.Errorf("%s is given twice", key)
	}
	v, err := c.Spec.Params[at].parse(text)
	if err != nil {
		return err
	}
	c.set[key] = v
	return nil
}

// value is a parameter's effective value; ok is false when it is the fleet's to
// give and the fleet has none.
func (c Choice) value(p Param, b Bounds) (v value, ok bool) {
	if v, ok := c.set[p.Name]; ok {
		return v, true
	}
	if p.FromFleet {
		switch p.Name {
		case "ttl":
			return value{n: float64(b.BeliefTTL)}, b.BeliefTTL > 0
		case "belief_blocks":
			return value{n: float64(b.BeliefBlocks)}, b.BeliefBlocks > 0
		}
	}
	v, err := p.read(p.Default)
	if err != nil {
		panic(fmt.Sprintf("policies: catalog default %s=%q: %v", p.Name, p.Default, err))
	}
	return v, true
}

// ReadsReports says whether the policy, as chosen, reads what engines report of
// their hit rate.
func (c Choice) ReadsReports() bool {
	for _, p := range c.Spec.Params {
		if p.Name == "hit_rate_low_water" {
			v, ok := c.value(p, Bounds{})
			return ok && v.n > 0
		}
	}
	return false
}

// Effective writes every parameter in force, sorted by name, as "k=v" joined by
// commas: equal choices give equal bytes. A value only the fleet could give, and
// did not, is written "missing". It is empty for a policy without parameters.
func (c Choice) Effective(b Bounds) string {
	params := slices.SortedFunc(slices.Values(c.Spec.Params), func(x, y Param) int {
		return cmp.Compare(x.Name, y.Name)
	})
	var parts []string
	for _, p := range params {
		text := "missing"
		if v, ok := c.value(p, b); ok {
			text = p.format(v)
		}
		parts = append(parts, p.Name+"="+text)
	}
	return strings.Join(parts, ",")
}

// New makes the policy. rng is its own random stream and may be nil for policies
// that draw nothing; power_of_two draws. A bound the policy needs and the fleet
// lacks is an error.
func (c Choice) New(b Bounds, rng *rand.Rand) (Policy, error) {
	if c.Spec.make == nil {
		return nil, errors.New("policies: an empty choice makes no policy")
	}
	a := args{values: map[string]value{}, bounds: b, rng: rng}
	for _, p := range c.Spec.Params {
		a.values[p.Name], _ = c.value(p, b)
	}
	p, err := c.Spec.make(a)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", c.Spec.Name, err)
	}
	return p, nil
}

// nearest returns the name that was most likely meant: the first that begins
// with what was written, else the one at the smallest edit distance.
func nearest(name string, names []string) string {
	for _, full := range names {
		if len(name) > 1 && strings.HasPrefix(full, name) {
			return full
		}
	}
	return slices.MinFunc(names, func(a, b string) int {
		return cmp.Compare(editDistance(name, a), editDistance(name, b))
	})
}

// editDistance counts the insertions, deletions and replacements of bytes that
// turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
