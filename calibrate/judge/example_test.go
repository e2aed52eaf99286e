package judge_test

import (
	"fmt"
	"os"

	"kvfleet/calibrate/judge"
	"kvfleet/calibrate/replay"
	"kvfleet/traces"
)

// Two requests whose first tokens came after 100 and 300 ms, simulated at 150 and
// 250: the mean is right, and no request is.
func Example() {
	var recording replay.Recording
	var outcomes []replay.Outcome
	for i, ttft := range []int64{100e6, 300e6} {
		row := traces.NewRow()
		row.RequestID, row.SentAt = fmt.Sprint("r", i), int64(i)*1e9
		row.FirstTokenAt, row.EndedAt = row.SentAt+ttft, row.SentAt+500e6
		row.OutputTokens = 21
		recording.Rows = append(recording.Rows, row)
		recording.Judged = append(recording.Judged, true)
		simulated := replay.None()
		simulated.Sent, simulated.TTFT, simulated.E2E = row.SentAt, (ttft+200e6)/2, 500e6
		simulated.Ended = simulated.Sent + simulated.E2E
		outcomes = append(outcomes, simulated)
	}
	c := judge.Compare("two requests", &recording, outcomes, nil)
	ttft := c.Metric(judge.TTFT)
	fmt.Printf("TTFT: MAPE %.1f%%, error of the mean %.1f%%, KS %.2f\n", 100*ttft.MAPE, 100*ttft.MeanError(), ttft.KS)
	if err := judge.WriteRequests(os.Stdout, &recording, outcomes); err != nil {
		fmt.Println(err)
	}
	// Output:
	// TTFT: MAPE 33.3%, error of the mean 0.0%, KS 0.50
	// request_id,sent_ms,ttft_ms,e2e_ms,simulated_ttft_ms,simulated_e2e_ms,output_tokens,cached_tokens,simulated_cached_tokens
	// r0,0.000,100.000,500.000,150.000,500.000,21,,
	// r1,1000.000,300.000,500.000,250.000,500.000,21,,
}
