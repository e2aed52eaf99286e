package replay

import (
	"slices"
	"strconv"

	"kvfleet/traces"
)

// Span is from the first request sent to the last, ns.
func (r *Recording) Span() int64 {
	return r.Rows[len(r.Rows)-1].SentAt - r.Rows[0].SentAt
}

// Late is the share of the rows whose answer ended after the last request sent
// had its first token: what ran beside them by then may not be in the trace.
func (r *Recording) Late() float64 {
	served, late := r.Served(), 0
	for i := range r.Rows {
		if e := r.Rows[i].EndedAt; e == traces.None || e > served {
			late++
		}
	}
	return float64(late) / float64(len(r.Rows))
}

// Served is when the last request sent that had a first token had it, ns since
// the run's origin.
func (r *Recording) Served() int64 {
	for i := len(r.Rows) - 1; i >= 0; i-- {
		if at := r.Rows[i].FirstTokenAt; at != traces.None {
			return at
		}
	}
	return r.Rows[len(r.Rows)-1].SentAt
}

// Continued is the recording with further arrivals behind it, as if the trace
// was cut and its load went on as before for so many times its span: the same
// requests again, later, of other content. They are load and are not compared. A
// closed loop goes on by itself and is returned as it is.
func (r *Recording) Continued(spans float64) *Recording {
	if spans <= 0 || r.Closed || len(r.prompts) < 2 {
		return r
	}
	c := *r
	c.prompts = slices.Clone(r.prompts)
	period := r.Span() + r.Span()/int64(len(r.Rows)-1)
	first := r.prompts[0].ScheduledAt
	for copy := int64(1); float64(copy-1) < spans; copy++ {
		for _, p := range r.prompts {
			if p.ScheduledAt-first > int64(float64(period)*(spans-float64(copy-1))) {
				break
			}
			p.RequestID = "continued-" + strconv.Itoa(len(c.prompts))
			p.ScheduledAt += copy * period
			p.Trace = slices.Clone(p.Trace)
			for i := range p.Trace {
				p.Trace[i] ^= uint64(copy) << 48
			}
			if p.Session != "" {
				p.Session += "+" + strconv.FormatInt(copy, 10)
			}
			c.prompts = append(c.prompts, p)
		}
	}
	return &c
}

// Users counts a closed loop's users.
func (r *Recording) Users() int {
	seen := map[int32]bool{}
	for i := range r.Rows {
		seen[r.Rows[i].VirtualUser] = true
	}
	return len(seen)
}
