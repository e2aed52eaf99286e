package fit

import "fmt"

// A Verdict says what a parameter's value rests on.
type Verdict uint8

// The verdicts.
const (
	Measured Verdict = iota // the rows identify it
	Prior                   // the rows cannot, and the base file's value is kept
	Refused                 // the rows cannot tell it from another, and neither is kept apart
	Stated                  // a setting that was given, not estimated
)

// String returns the verdict as reports and fleet files have it.
func (v Verdict) String() string {
	names := [...]string{"measured", "prior", "refused", "stated"}
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// An Estimate is one parameter of a fleet file as the rows give it.
type Estimate struct {
	Path  string // in the fleet file, as step.host_ms or step.decode_ladder[8].ms
	Unit  string
	Value float64
	// Low and High bound the 95% interval; equal to Value where there is none.
	Low, High float64
	Verdict   Verdict
	Rows      string // which rows identified it
	How       string // by which method
	// Advice is the run that would identify what these rows do not.
	Advice string
	// Draws are bootstrap draws. Draw k of one fit's estimates belong together.
	Draws []float64
}
