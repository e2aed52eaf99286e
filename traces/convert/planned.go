package convert

import (
	"fmt"
	"time"

	"kvfleet/traces"
)

// The header names each CSV format is recognised by.
var (
	azureColumns = []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}
	vidurColumns = []string{"arrived_at", "num_prefill_tokens", "num_decode_tokens"}
)

// azureRow reads a row of an Azure LLM inference trace. Times of 2023 have no
// zone and are taken as UTC; those of 2024 have one. Either may lack a fraction.
func azureRow(p *pass, c *record, r *traces.Row) {
	const local, zoned = "2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00"
	text := c.value("TIMESTAMP")
	at, err := time.Parse(local, text)
	if err != nil {
		at, err = time.Parse(zoned, text)
	}
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		c.fault("TIMESTAMP", "a time such as 2023-11-16 18:17:03.9799600 or 2024-05-10 00:00:00.009930+00:00")
	}
	c.lengths(p, r, "ContextTokens", "GeneratedTokens")
	r.RequestID = fmt.Sprint("azure-", c.number)
	r.ScheduledAt = at.UnixNano()
}

// vidurRow reads a row of a trace as vidur has them.
func vidurRow(p *pass, c *record, r *traces.Row) {
	r.ScheduledAt = c.duration("arrived_at", 1e9)
	c.lengths(p, r, "num_prefill_tokens", "num_decode_tokens")
	r.RequestID = fmt.Sprint("vidur-", c.number)
}

// vidurLengthsRow reads a row without an arrival time and, at a rate, gives it an
// even one. The k-th is computed from the start, so that no rounding adds up.
func vidurLengthsRow() csvRow {
	good := 0
	return func(p *pass, c *record, r *traces.Row) {
		c.lengths(p, r, "num_prefill_tokens", "num_decode_tokens")
		r.RequestID = fmt.Sprint("vidur-", c.number)
		if c.badField == "" && p.opts.Rate > 0 {
			r.ScheduledAt = nanos(float64(good)/p.opts.Rate, 1e9)
			good++
		}
	}
}
