package latency_test

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"kvfleet/sim"
	"kvfleet/sim/latency"
)

// stated finds the factor by which the fleet file says that the requests
// stretched the measured times.
var stated = regexp.MustCompile(`times ([01]\.\d+) \[`)

// TestAgainstMeasuredSteps compares the model of the published fleet with the
// measured steps it was reduced from.
func TestAgainstMeasuredSteps(t *testing.T) {
	rows := readSteps(t, "../../../shared/reference/rtx3090/engine_steps.csv")
	fleet, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		t.Fatal(err)
	}
	source := fleet.Provenance["step.decode_ladder[8].ms"].Source
	match := stated.FindStringSubmatch(source)
	factor := 1.0 // unless the requests told another
	if match != nil {
		if factor, err = strconv.ParseFloat(match[1], 64); err != nil {
			t.Fatal(err)
		}
	}
	// This one is not from these steps but from replaying whole requests.
	fleet.Step.PrefillMixedMS, fleet.Step.SmallMixedMS = 0, 0
	m, err := latency.New(fleet.Step)
	if err != nil {
		t.Fatal(err)
	}
	errs := map[string][]float64{}
	for _, r := range rows {
		region := "mixed"
		switch {
		case r.prefills == 0 && r.decodes > 128:
			region = "decode only, more than 128"
		case r.prefills == 0:
			region = "decode only"
		case r.decodes == 0:
			region = "prefill only"
		}
		// The file does not say how the new tokens are spread over the requests.
		got := float64(r.predict(m)) / 1024 / 1e6 / factor
		errs[region] = append(errs[region], math.Abs(got/r.busy-1))
	}
	for _, want := range []struct {
		region              string
		rows                int
		median, ninety, max float64
	}{
		{"prefill only", 9, 0.015, 0.04, 0.04},
		{"decode only", 100, 0.015, 0.04, 0.18},
		{"decode only, more than 128", 10, 0.01, 0.02, 0.02},
		{"mixed", 100, 0.01, 0.02, 0.08},
	} {
		e := errs[want.region]
		slices.Sort(e)
		if len(e) < want.rows {
			t.Fatalf("%s: %d rows, want at least %d", want.region, len(e), want.rows)
		}
		median, ninety, most := e[len(e)/2], e[len(e)*9/10], e[len(e)-1]
		t.Logf("%s: %d rows, absolute error median %.2f%%, 90th percentile %.2f%%, worst %.2f%%", want.region, len(e), 100*median, 100*ninety, 100*most)
		if median > want.median || ninety > want.ninety || most > want.max {
			t.Errorf("%s: want a median of at most %.2f%%, 90th percentile %.2f%%, worst %.2f%%", want.region, 100*want.median, 100*want.ninety, 100*want.max)
		}
	}
}

// A measured row of engine_steps.csv.
type measured struct {
	prefills, tokens, context int
	decodes                   int
	decodeContext             int64
	busy                      float64 // ms
}

// predict spreads the new tokens evenly over the prefilling requests.
func (r measured) predict(m *latency.Model) latency.Ticks {
	if r.prefills == 0 {
		base, per := m.Decode(r.decodes, 1, 1)
		return base + latency.Ticks(r.decodeContext)*per
	}
	var chunks []latency.Chunk
	for i := range r.prefills {
		share := func(total int) int { return total*(i+1)/r.prefills - total*i/r.prefills }
		chunks = append(chunks, latency.Chunk{Tokens: share(r.tokens), Context: share(r.context)})
	}
	return m.Mixed(chunks, r.decodes, r.decodeContext, 1)
}

func readSteps(t *testing.T, path string) []measured {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no measured steps: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []measured
	for _, record := range records[1:] {
		var v [8]float64
		for i, text := range record {
			if v[i], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
		rows = append(rows, measured{
			prefills: int(v[0]), tokens: int(v[1]), context: int(v[2]),
			decodes: int(v[3]), decodeContext: int64(v[4]), busy: v[7],
		})
	}
	return rows
}
