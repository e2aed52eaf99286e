package replay

import (
	"fmt"
	"slices"
	"time"

	"kvfleet/traces"
)

// A clock that jumps shows as a pause longer than any load has, or as requests
// that are suddenly sent at another distance from when they were due.
const (
	leastPause = time.Minute
	manyGaps   = 200 // times the median gap between requests
	leastLeap  = 5 * time.Second
)

// findJump looks for a jump of the trace's clock.
func (r *Recording) findJump() {
	if len(r.Rows) < 3 {
		return
	}
	gaps := make([]int64, 0, len(r.Rows)-1)
	for i := 1; i < len(r.Rows); i++ {
		gaps = append(gaps, r.Rows[i].SentAt-r.Rows[i-1].SentAt)
	}
	sorted := slices.Clone(gaps)
	slices.Sort(sorted)
	limit := max(int64(leastPause), manyGaps*sorted[len(sorted)/2])
	for i, gap := range gaps {
		if gap > limit {
			r.Remarks = append(r.Remarks, fmt.Sprintf("nothing was sent for %v between requests %s and %s, where %v is usual: the clock jumped, or the load did",
				time.Duration(gap).Round(time.Millisecond), r.Rows[i].RequestID, r.Rows[i+1].RequestID, time.Duration(sorted[len(sorted)/2]).Round(time.Microsecond)))
			return
		}
	}
	before, known := int64(0), false
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.ScheduledAt == traces.None {
			continue
		}
		lag := row.SentAt - row.ScheduledAt
		if leap := lag - before; known && (leap > int64(leastLeap) || leap < -int64(leastLeap)) {
			r.Remarks = append(r.Remarks, fmt.Sprintf("request %s was sent %v after it was due, the one before %v: the clock jumped, or the client stood still",
				row.RequestID, time.Duration(lag).Round(time.Millisecond), time.Duration(before).Round(time.Millisecond)))
			return
		}
		before, known = lag, true
	}
}
