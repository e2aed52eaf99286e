package judge

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"kvfleet/calibrate/replay"
	"kvfleet/traces"
)

func appendFloat(dst []byte, v float64) []byte { return strconv.AppendFloat(dst, v, 'g', -1, 64) }

// Table is the comparison as aligned text.
func (c *Comparison) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d requests compared", c.Name, c.Requests)
	if c.Missing > 0 {
		fmt.Fprintf(&b, ", %d more measured and not served in simulation", c.Missing)
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tMAPE\tMEAN MS\tSIMULATED\tERROR\tP50\tP90\tP99\tKS\tREPEAT MAPE\tREPEAT MEAN\t")
	for i := range c.Metrics {
		m := &c.Metrics[i]
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%s\t%s\t%s\t%s\t%.3f\t", m.Name, share(m.MAPE), m.Measured.Mean, m.Simulated.Mean,
			signed(m.MeanError()), signed(Error(m.Simulated.P50, m.Measured.P50)), signed(Error(m.Simulated.P90, m.Measured.P90)), signed(Error(m.Simulated.P99, m.Measured.P99)), m.KS)
		if f := m.Floor; f != nil {
			fmt.Fprintf(w, "%s\t%s\t\n", share(f.MAPE), signed(f.Mean))
		} else {
			fmt.Fprint(w, "-\t-\t\n")
		}
	}
	w.Flush()
	if c.Throughput > 0 {
		fmt.Fprintf(&b, "output tokens/s: measured %.1f, simulated %.1f (%s)\n", c.Throughput, c.SimulatedThroughput, signed(c.SimulatedThroughput/c.Throughput-1))
	}
	switch {
	case c.CachedRows > 0 && c.CachedGiven:
		fmt.Fprintf(&b, "hit rate: %.4f, taken from the trace, which does not say which prompts share a prefix\n", float64(c.HitRate))
	case c.CachedRows > 0:
		fmt.Fprintf(&b, "hit rate: measured %.4f, simulated %.4f; cached tokens equal in %.1f%% of %d requests\n",
			float64(c.HitRate), float64(c.SimulatedHitRate), 100*float64(c.CachedEqual), c.CachedRows)
	}
	return b.String()
}

func share(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*v)
}

func signed(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return fmt.Sprintf("%+.2f%%", 100*v)
}

// requestColumns are the columns of WriteRequests.
var requestColumns = []string{"request_id", "sent_ms", "ttft_ms", "e2e_ms", "simulated_ttft_ms", "simulated_e2e_ms",
	"output_tokens", "cached_tokens", "simulated_cached_tokens"}

// WriteRequests writes one line a request of the trace, excluded ones too, as
// CSV. What is not known is empty.
func WriteRequests(w io.Writer, rec *replay.Recording, out []replay.Outcome) error {
	lines := csv.NewWriter(w)
	if err := lines.Write(requestColumns); err != nil {
		return err
	}
	line := func(r *traces.Row, o *replay.Outcome) error {
		return lines.Write([]string{r.RequestID, ms(r.SentAt), ms(r.TTFT()), ms(r.E2E()), ms(o.TTFT), ms(o.E2E),
			whole(r.OutputTokens), whole(r.CachedTokens), whole(o.Cached)})
	}
	for i := range rec.Rows {
		if err := line(&rec.Rows[i], &out[i]); err != nil {
			return err
		}
	}
	none := replay.None()
	for i := range rec.Left {
		if err := line(&rec.Left[i], &none); err != nil {
			return err
		}
	}
	lines.Flush()
	return lines.Error()
}

func ms(v int64) string {
	if v == traces.None {
		return ""
	}
	return strconv.FormatFloat(float64(v)/1e6, 'f', 3, 64)
}

func whole(v int64) string {
	if v == traces.None {
		return ""
	}
	return strconv.FormatInt(v, 10)
}
