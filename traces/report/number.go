package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Number is a result. NaN means it does not exist: null in JSON, "n/a" in a
// table.
type Number float64

// MarshalJSON keeps 6 decimals, which is below what any measure here resolves
// and hides the last bit in which machines may differ.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.known() {
		return []byte("null"), nil
	}
	r := math.Round(float64(n)*1e6)/1e6 + 0
	return json.Marshal(r)
}

func (n Number) known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

func unknown() Number { return Number(math.NaN()) }

// A Spread is a measure over the repetitions of a cell. Over an even number
// the median is the mean of the middle two. Repetitions without a value do not
// count; with none left everything is NaN.
type Spread struct {
	Median      Number `json:"median"`
	Min         Number `json:"min"`
	Max         Number `json:"max"`
	Repetitions int    `json:"repetitions"`
}

// NewSpread reduces values, skipping NaN.
func NewSpread(values []float64) Spread {
	v := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(v) == 0 {
		return Spread{unknown(), unknown(), unknown(), 0}
	}
	slices.Sort(v)
	return Spread{Number(Quantile(v, 0.5)), Number(v[0]), Number(v[len(v)-1]), len(v)}
}

// Overlaps reports whether the two ranges share a value. A spread without
// values overlaps nothing.
func (s Spread) Overlaps(o Spread) bool { return s.Min <= o.Max && o.Min <= s.Max }

// Holds reports whether v is within the range.
func (s Spread) Holds(v Number) bool { return s.Min <= v && v <= s.Max }

// Quantile is the q-quantile (0..1) of sorted values by linear interpolation
// between order statistics (type 7, NumPy's default); NaN of none.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// ratio is a/b - 1, unknown where b is not above 0.
func ratio(a, b Number) Number {
	if !(b > 0) {
		return unknown()
	}
	return a/b - 1
}

// fixed is n with decimals, or "n/a".
func fixed(n Number, decimals int) string {
	if !n.known() {
		return "n/a"
	}
	return strconv.FormatFloat(round(float64(n), decimals), 'f', decimals, 64)
}

// signed is fixed with a sign, except on what rounds to 0.
func signed(n Number, decimals int) string {
	if !n.known() {
		return "n/a"
	}
	r := round(float64(n), decimals)
	if r == 0 {
		return strconv.FormatFloat(0, 'f', decimals, 64)
	}
	return fmt.Sprintf("%+.*f", decimals, r)
}

// percent is a ratio of 0.25 as "+25%", with a decimal below 10%.
func percent(n Number) string {
	if !n.known() {
		return "n/a"
	}
	decimals := 0
	if math.Abs(round(float64(n)*100, 1)) < 10 {
		decimals = 1
	}
	return signed(n*100, decimals) + "%"
}

func round(v float64, decimals int) float64 {
	scale := math.Pow(10, float64(decimals))
	return math.Round(v*scale)/scale + 0
}
