package policies

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Kind is the type of a parameter.
type Kind uint8

// The kinds of parameter, and how each is written.
const (
	KindFloat    Kind = iota // 0.25
	KindInt                  // 128
	KindBool                 // true
	KindDuration             // 30s
	KindEnum                 // one of Param.Values
)

// String returns the kind's name, for example "duration".
func (k Kind) String() string {
	names := [...]string{"float", "int", "bool", "duration", "enum"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// A Param is one parameter of a policy. Default, Min and Max are written as the
// parameter is; Min and Max are empty where there is no such bound.
type Param struct {
	Name    string
	Unit    string
	Kind    Kind
	Default string // empty if FromFleet
	Min     string // smallest value; exclusive if MinOpen
	Max     string // largest value; exclusive if MaxOpen
	MinOpen bool
	MaxOpen bool
	Values  []string // of an enum
	// Off is a value outside the range that is accepted too and switches the
	// parameter's rule off; empty if there is none.
	Off string
	Doc string
	// FromFleet says that the value is the fleet's unless it is given.
	FromFleet bool
}

// Range writes the accepted values for people, for example "0 (off), or >= 1".
func (p Param) Range() string {
	if p.Kind == KindEnum {
		return strings.Join(p.Values, " | ")
	}
	var parts []string
	if p.Min != "" {
		op := ">= "
		if p.MinOpen {
			op = "> "
		}
		parts = append(parts, op+p.Min)
	}
	if p.Max != "" {
		op := "<= "
		if p.MaxOpen {
			op = "< "
		}
		parts = append(parts, op+p.Max)
	}
	text := strings.Join(parts, " and ")
	if p.Off != "" {
		text = p.Off + " (off), or " + text
	}
	return text
}

// A value is a parameter's value: numbers and durations (in nanoseconds) as n,
// enums and booleans as text.
type value struct {
	n    float64
	text string
}

// parse reads a value and checks its range.
func (p Param) parse(text string) (value, error) {
	v, err := p.read(text)
	if err != nil {
		return v, fmt.Errorf("%s=%q: expected %s", p.Name, text, p.expected())
	}
	if p.Off != "" {
		if off, _ := p.read(p.Off); v == off {
			return v, nil
		}
	}
	if p.Min != "" {
		if low, _ := p.read(p.Min); v.n < low.n || p.MinOpen && v.n == low.n {
			return v, fmt.Errorf("%s=%s is out of range: expected %s", p.Name, text, p.expected())
		}
	}
	if p.Max != "" {
		if high, _ := p.read(p.Max); v.n > high.n || p.MaxOpen && v.n == high.n {
			return v, fmt.Errorf("%s=%s is out of range: expected %s", p.Name, text, p.expected())
		}
	}
	return v, nil
}

func (p Param) expected() string {
	kind := p.Kind.String()
	if p.Kind == KindEnum {
		return "one of " + p.Range()
	}
	if limits := p.Range(); limits != "" {
		return kind + " " + limits
	}
	return kind
}

// read converts text to a value of the parameter's kind, whatever its range.
func (p Param) read(text string) (value, error) {
	switch p.Kind {
	case KindInt:
		n, err := strconv.ParseInt(text, 10, 32)
		return value{n: float64(n)}, err
	case KindBool:
		b, err := strconv.ParseBool(text)
		return value{text: strconv.FormatBool(b)}, err
	case KindDuration:
		d, err := time.ParseDuration(text)
		return value{n: float64(d)}, err
	case KindEnum:
		if !slices.Contains(p.Values, text) {
			return value{}, fmt.Errorf("unknown value")
		}
		return value{text: text}, nil
	default:
		n, err := strconv.ParseFloat(text, 64)
		if err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
			err = fmt.Errorf("not finite")
		}
		return value{n: n}, err
	}
}

// format writes a value so that equal values have equal text.
func (p Param) format(v value) string {
	switch p.Kind {
	case KindInt, KindFloat:
		return strconv.FormatFloat(v.n, 'f', -1, 64)
	case KindDuration:
		return time.Duration(v.n).String()
	default:
		return v.text
	}
}
