package summary_test

import (
	"fmt"
	"time"

	"kvfleet/traces"
	"kvfleet/traces/summary"
)

func Example() {
	a, err := summary.New(summary.Options{
		Warmup: 50 * time.Second,
		Window: 60 * time.Second,
		SLO:    traces.SLO{TTFT: time.Second},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 120 { // two a second; every fifth is slow
		row := traces.NewRow()
		row.SentAt = int64(i) * int64(500*time.Millisecond)
		row.FirstTokenAt = row.SentAt + int64(400*time.Millisecond)
		if i%5 == 0 {
			row.FirstTokenAt += int64(time.Second)
		}
		row.EndedAt = row.FirstTokenAt
		row.Outcome = traces.Success
		a.Add(&row)
	}
	s := a.Summary()
	fmt.Printf("%d requests, goodput %.1f of %.1f req/s, TTFT p50 %.0f ms\n",
		s.Requests, s.GoodputRPS, s.ThroughputRPS, s.TTFTP50)
	// Output: 20 requests, goodput 1.6 of 2.0 req/s, TTFT p50 400 ms
}
