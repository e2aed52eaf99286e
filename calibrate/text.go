package calibrate

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"kvfleet/calibrate/fit"
	"kvfleet/sim"
)

// Summary is the calibration in words and tables, for a terminal.
func (r *Result) Summary() string {
	var b strings.Builder
	count := map[fit.Verdict]int{}
	for _, e := range r.Estimates {
		count[e.Verdict]++
	}
	fmt.Fprintf(&b, "%d numbers measured, %d stated, %d kept from the base because the rows do not tell them, %d refused\n\n",
		count[fit.Measured], count[fit.Stated], count[fit.Prior], count[fit.Refused])
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NUMBER\tVALUE\t95% INTERVAL\tUNIT\tVERDICT")
	for _, e := range r.short() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Path, figure(e.Value), interval(e), e.Unit, e.Verdict)
	}
	w.Flush()
	if s := r.stepsText(); s != "" {
		b.WriteString("\n" + s)
	}
	if r.Requests != nil && len(r.Requests.Tried) > 1 {
		fmt.Fprintf(&b, "\nhypotheses, mean loss: ")
		for i, t := range r.Requests.Tried {
			if i > 0 {
				b.WriteString("; ")
			}
			fmt.Fprintf(&b, "%s %.3f", t.Hypothesis, t.Cost)
		}
		fmt.Fprintf(&b, "\nchosen: %s\n", r.Requests.Chosen)
	}
	for _, c := range r.InSample {
		b.WriteString("\nfitted: " + c.Table())
	}
	for _, c := range r.Held {
		b.WriteString("\nheld out: " + c.Table())
	}
	return b.String()
}

// short is the estimates without the ladder's rungs and the single cards, which
// the file and the report have.
func (r *Result) short() []fit.Estimate {
	var out []fit.Estimate
	for _, e := range r.Estimates {
		if strings.HasPrefix(e.Path, "step.decode_ladder[") || strings.HasPrefix(e.Path, "thermal.cards[") && !strings.HasPrefix(e.Path, "thermal.cards[0]") {
			continue
		}
		if e.Verdict == fit.Prior && strings.HasPrefix(e.Path, "thermal.") {
			continue
		}
		out = append(out, e)
	}
	return out
}

func figure(v float64) string { return fmt.Sprintf("%.5g", v) }

func interval(e fit.Estimate) string {
	if e.Low >= e.High {
		return "-"
	}
	return fmt.Sprintf("%.4g to %.4g", e.Low, e.High)
}

// stepsText is the step times' errors by region.
func (r *Result) stepsText() string {
	if r.Steps == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("step times, absolute error by region, fitted and with whole shapes held out in turn:\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tROWS\tMEDIAN\tP90\tWORST\tHELD OUT MEDIAN\tP90\tWORST\tSIGNED\t")
	for _, g := range r.Steps.Regions {
		fmt.Fprintf(w, "%s\t%d\t%.2f%%\t%.2f%%\t%.2f%%\t%.2f%%\t%.2f%%\t%.2f%%\t%+.2f%%\t\n", g.Name, g.InSample.Rows,
			100*g.InSample.Median, 100*g.InSample.P90, 100*g.InSample.Worst,
			100*g.HeldOut.Median, 100*g.HeldOut.P90, 100*g.HeldOut.Worst, 100*g.HeldOut.Bias)
	}
	w.Flush()
	return b.String()
}

// Encode is the fleet file, with what it was made from at its head.
func (r *Result) Encode() ([]byte, error) {
	comment := "Written by kvfleet calibrate from base " + r.Inputs.BaseName + ". Every number's unit,\n" +
		"interval and source is under provenance; draws holds what else they may be."
	return r.Fleet.Encode(comment)
}

// Difference is one number of two fleets.
type Difference struct {
	Path          string
	Before, After float64
}

// Changes lists the numbers that the calibration changed against its base.
func (r *Result) Changes() []Difference {
	var out []Difference
	seen := map[string]bool{}
	for _, e := range r.Estimates {
		a, err := r.Inputs.Base.Number(e.Path)
		b, err2 := r.Fleet.Number(e.Path)
		if err == nil && err2 == nil && sim.Round(a, valueDigits) != b && !seen[e.Path] {
			seen[e.Path] = true
			out = append(out, Difference{e.Path, a, b})
		}
	}
	return out
}
