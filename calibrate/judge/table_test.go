package judge

import (
	"errors"
	"strings"
	"testing"

	"kvfleet/calibrate/replay"
	"kvfleet/traces"
)

// mixed is a recording with everything that a line of it may lack.
func mixed() (*replay.Recording, []replay.Outcome) {
	rec, out := record(made{0, 100, 500, 110, 450}, made{1500, 200, 700, 0, 0}, made{2250, 300, 900, 300, 1000})
	rec.Rows[0].CachedTokens, out[0].Cached = 64, 48
	rec.Rows[1].FirstTokenAt, rec.Rows[1].OutputTokens = traces.None, traces.None
	rec.Rows[1].RequestID = `a,"quoted" one`
	rec.Rows[2].CachedTokens, out[2].Cached = 0, 0
	bad := traces.NewRow()
	bad.RequestID, bad.SentAt, bad.FirstTokenAt, bad.CachedTokens = "bad", 1000*milli, 1000*milli-milli/2, 16
	rec.Left = []traces.Row{bad, traces.NewRow()}
	rec.Excluded = []traces.Finding{{Row: 2, Request: "bad", Field: "first_token_at"}, {Row: 5, Field: "sent_at"}}
	return rec, out
}

// One line a request in order of being sent, and then those that were left out, of
// which the simulation says nothing. What is not known is empty.
func TestWriteRequests(t *testing.T) {
	rec, out := mixed()
	var b strings.Builder
	if err := WriteRequests(&b, rec, out); err != nil {
		t.Fatal(err)
	}
	want := `request_id,sent_ms,ttft_ms,e2e_ms,simulated_ttft_ms,simulated_e2e_ms,output_tokens,cached_tokens,simulated_cached_tokens
r0,0.000,100.000,500.000,110.000,450.000,11,64,48
"a,""quoted"" one",1500.000,,700.000,,,,,
r2,2250.000,300.000,900.000,300.000,1000.000,11,0,0
bad,1000.000,-0.500,,,,,16,
,,,,,,,,
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	full := errors.New("disk full")
	if err := WriteRequests(failing{full}, rec, out); !errors.Is(err, full) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// The table has what a reader compares: means beside means, the errors of either
// kind and of the percentiles, and how far a repeat of the run is from it.
func TestTable(t *testing.T) {
	rec, out := mixed()
	rec.Identified = true
	want := `open6.csv: 2 requests compared, 1 more measured and not served in simulation
                                    MAPE  MEAN MS  SIMULATED   ERROR      P50      P90      P99     KS  REPEAT MAPE  REPEAT MEAN
                            TTFT   5.00%    200.0      205.0  +2.50%  +10.00%   +0.00%   +0.00%  0.500            -            -
  inter-token, mean of a request  15.83%     50.0       52.0  +4.00%  -15.00%  +16.67%  +16.67%  0.500            -            -
                      end to end  10.56%    700.0      725.0  +3.57%  -10.00%  +11.11%  +11.11%  0.500            -            -
output tokens/s: measured 7.0, simulated 6.8 (-3.08%)
hit rate: measured 0.3200, simulated 0.2400; cached tokens equal in 50.0% of 2 requests
`
	if got := Compare("open6.csv", rec, out, nil).Table(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	// Here no answer was long enough for gaps, nobody waited, and what was cached is
	// the trace's own word.
	rec, out = record(made{0, 100, 500, 110, 450}, made{10, 100, 500, 90, 450})
	repeat, _ := record(made{0, 120, 500, 1, 1}, made{10, 100, 490, 1, 1})
	for i := range rec.Rows {
		rec.Rows[i].OutputTokens, repeat.Rows[i].OutputTokens = 1, 1
		rec.Rows[i].CachedTokens, out[i].Cached = 32, 32
		rec.Rows[i].QueueTime, repeat.Rows[i].QueueTime, out[i].Queue = 0, 0, milli
	}
	c := Compare("one token", rec, out, nil)
	if !c.AddFloor(rec, repeat) {
		t.Fatal("the repeat is none")
	}
	want = `one token: 2 requests compared
                MAPE  MEAN MS  SIMULATED    ERROR      P50      P90      P99     KS  REPEAT MAPE  REPEAT MEAN
        TTFT  10.00%    100.0      100.0   +0.00%  -10.00%  +10.00%  +10.00%  0.500       10.00%      +10.00%
  end to end  10.00%    500.0      450.0  -10.00%  -10.00%  -10.00%  -10.00%  1.000        1.00%       -1.00%
  queue time       -      0.0        1.0        -        -        -        -  1.000            -            -
output tokens/s: measured 3.9, simulated 4.3 (+10.87%)
hit rate: 0.3200, taken from the trace, which does not say which prompts share a prefix
`
	if got := c.Table(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
