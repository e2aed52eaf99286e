package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"kvfleet/sim"
	"kvfleet/traces"
	"kvfleet/traces/convert"
)

// A Recording is a captured trace, ready to be simulated.
type Recording struct {
	Path   string
	Format convert.Format
	Meta   traces.Meta
	// Rows are the requests that are simulated, in order of being sent.
	Rows []traces.Row
	// Judged says which of them are compared: they succeeded, are no warm-up and
	// say when their first token came.
	Judged []bool
	// Excluded are the rows that are not simulated.
	Excluded []traces.Finding
	Left     []traces.Row // those rows
	Remarks  []string
	// Closed says that requests waited for answers: they are simulated so.
	Closed bool
	// Rest says that nothing ran before: cards start cold, whatever the fleet file
	// says.
	Rest bool
	// Identified says that the rows tell which prompts share a prefix.
	Identified bool

	prompts []sim.Prompt
}

// Open reads a trace of any form that has run. Its errors name file and row. A
// trace of planned requests is refused: it was not measured.
func Open(path string) (*Recording, error) {
	t, err := convert.Open(path, convert.Options{})
	if err != nil {
		return nil, err
	}
	r := &Recording{Path: path, Format: t.Format, Meta: t.Meta}
	number := int64(0)
	ids := map[string]int64{}
	var numbers []int64 // of Rows
	for row, err := range t.Rows() {
		if err != nil {
			return nil, err
		}
		number++
		if row.Outcome == traces.Pending {
			return nil, fmt.Errorf("%s: row %d: has not run; want a measured trace", path, number)
		}
		row.Blocks = slices.Clone(row.Blocks)
		if r.take(number, &row, ids) {
			numbers = append(numbers, number)
		}
	}
	r.leaveUnknown(numbers)
	report := t.Report()
	r.Remarks = append(r.Remarks, report.Remarks()...)
	if len(r.Rows) == 0 {
		return nil, fmt.Errorf("%s: none of its %d rows can be simulated: %v", path, number, r.Excluded[0])
	}
	slices.SortStableFunc(r.Rows, func(a, b traces.Row) int { return cmp.Compare(a.SentAt, b.SentAt) })
	r.Rest = r.Format == convert.KvrouteProbe
	r.Closed = r.Meta.Cell.Driver == sim.DriverClosed || r.Format == convert.KvrouteProbe
	if err := r.plan(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.findCap()
	r.findJump()
	return r, nil
}

// take keeps a row or says why not.
func (r *Recording) take(number int64, row *traces.Row, ids map[string]int64) bool {
	field, text := contradiction(row)
	if first, twice := ids[row.RequestID]; field == "" && twice && row.RequestID != "" {
		field, text = "request_id", fmt.Sprintf("is that of row %d too", first)
	}
	if field != "" {
		r.leave(number, row, field, text)
		return false
	}
	ids[row.RequestID] = number
	r.Rows = append(r.Rows, *row)
	return true
}

func (r *Recording) leave(number int64, row *traces.Row, field, text string) {
	r.Excluded = append(r.Excluded, traces.Finding{Row: number, Request: row.RequestID, Field: field, Text: text})
	r.Left = append(r.Left, *row)
}

// leaveUnknown leaves out rows that do not say how long their prompt is, unless
// none does: see Assume.
func (r *Recording) leaveUnknown(numbers []int64) {
	if !slices.ContainsFunc(r.Rows, func(row traces.Row) bool { return promptOf(&row) != traces.None }) {
		return
	}
	kept := r.Rows[:0]
	for i, row := range r.Rows {
		if promptOf(&row) == traces.None {
			r.leave(numbers[i], &row, "prompt_tokens", "are not known")
			continue
		}
		kept = append(kept, row)
	}
	r.Rows = kept
}

// promptOf is how long a prompt is, in tokens: as the engine counted, or as
// planned.
func promptOf(r *traces.Row) int64 {
	if r.EnginePromptTokens != traces.None {
		return r.EnginePromptTokens
	}
	return r.PromptTokens
}

// contradiction names the field of a row that cannot be true, or that it cannot
// be simulated without.
func contradiction(r *traces.Row) (field, text string) {
	ms := func(v int64) string { return strconv.FormatFloat(float64(v)/1e6, 'f', 3, 64) + " ms" }
	prompt := promptOf(r)
	switch {
	case r.SentAt == traces.None:
		return "sent_at", "is not known"
	case r.FirstTokenAt != traces.None && r.FirstTokenAt < r.SentAt:
		return "first_token_at", "comes " + ms(r.SentAt-r.FirstTokenAt) + " before the request was sent"
	case r.FirstTokenAt != traces.None && r.LastTokenAt != traces.None && r.LastTokenAt < r.FirstTokenAt:
		return "last_token_at", "comes " + ms(r.FirstTokenAt-r.LastTokenAt) + " before the first token"
	case r.EndedAt != traces.None && r.EndedAt < r.SentAt:
		return "ended_at", "comes " + ms(r.SentAt-r.EndedAt) + " before the request was sent"
	case prompt != traces.None && prompt < 1:
		return "prompt_tokens", fmt.Sprintf("are %d, want at least 1", prompt)
	case r.CachedTokens != traces.None && prompt != traces.None && r.CachedTokens > prompt:
		return "cached_tokens", fmt.Sprintf("are %d of a prompt of %d", r.CachedTokens, prompt)
	case r.Outcome == traces.Success && r.OutputTokens != traces.None && r.OutputTokens < 1:
		return "output_tokens", fmt.Sprintf("are %d of an answer that succeeded", r.OutputTokens)
	}
	return "", ""
}

// plan makes the prompts.
func (r *Recording) plan() error {
	if promptOf(&r.Rows[0]) == traces.None {
		return nil // Prompts says so, or Assume tells
	}
	prompts, _, err := sim.PromptsFromRows(func(yield func(traces.Row, error) bool) {
		for _, row := range r.Rows {
			if row.OutputTokens < 1 && row.MaxTokens == traces.None { // None is less, too
				row.MaxTokens = 1
			}
			if !yield(row, nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	r.prompts = prompts
	r.Judged = make([]bool, len(r.Rows))
	for i := range r.Rows {
		row, p := &r.Rows[i], &r.prompts[i]
		r.Judged[i] = row.Outcome == traces.Success && !row.Warmup && row.FirstTokenAt != traces.None
		r.Identified = r.Identified || !p.Distinct
		p.RequestID = strconv.Itoa(i)
		p.Replica = row.Replica
		if p.Distinct && row.CachedTokens != traces.None {
			p.Recorded = int(row.CachedTokens) + 1
		}
	}
	if r.Closed {
		r.follow()
	} else {
		r.findCut()
	}
	return nil
}

// findCut looks for a trace that begins in the midst of a run: its first requests
// are later turns, and nothing says what ran beside them. Those of the first
// moments, and of the last, are simulated and not compared.
func (r *Recording) findCut() {
	first := &r.Rows[0]
	if first.Turn <= 0 || first.CachedTokens == traces.None || first.CachedTokens == 0 {
		return
	}
	var e2e []int64
	for i := range r.Rows {
		if d := r.Rows[i].E2E(); r.Judged[i] && d != traces.None {
			e2e = append(e2e, d)
		}
	}
	if len(e2e) == 0 {
		return
	}
	slices.Sort(e2e)
	margin := 2 * e2e[len(e2e)*9/10]
	from, to := first.SentAt+margin, r.Rows[len(r.Rows)-1].SentAt-margin
	left := 0
	for i := range r.Rows {
		if at := r.Rows[i].SentAt; r.Judged[i] && (at < from || at > to) {
			r.Judged[i] = false
			left++
		}
	}
	r.Remarks = append(r.Remarks, fmt.Sprintf("begins in the midst of a run (its first request is a turn %d with %d tokens cached): the %d requests of its first and last %.1f s are not compared, since what ran beside them is not in it",
		first.Turn, first.CachedTokens, left, float64(margin)/1e9))
}

// follow lets each user's requests wait for the one before.
func (r *Recording) follow() {
	last := map[int32]int{}
	for i := range r.Rows {
		row := &r.Rows[i]
		before, ok := last[row.VirtualUser]
		if ok && r.Rows[before].EndedAt != traces.None && row.SentAt >= r.Rows[before].EndedAt {
			r.prompts[i].After = before + 1
			r.prompts[i].ScheduledAt = row.SentAt - r.Rows[before].EndedAt
		}
		last[row.VirtualUser] = i
	}
}

// findCap looks for a client-side limit on concurrency that makes an open loop
// closed: many requests sent late, each as another ends.
func (r *Recording) findCap() {
	if r.Closed {
		return
	}
	late, onEnd, n := 0, 0, 0
	var ends []int64
	for i := range r.Rows {
		if e := r.Rows[i].EndedAt; e != traces.None {
			ends = append(ends, e)
		}
	}
	slices.Sort(ends)
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.ScheduledAt == traces.None {
			continue
		}
		n++
		if row.SentAt-row.ScheduledAt < int64(100*time.Millisecond) {
			continue
		}
		late++
		k, _ := slices.BinarySearch(ends, row.SentAt+1)
		if k > 0 && row.SentAt-ends[k-1] < int64(5*time.Millisecond) {
			onEnd++
		}
	}
	if late > n/20 {
		text := fmt.Sprintf("%d of %d requests were sent over 100 ms late", late, n)
		if onEnd > late*3/4 {
			text += ", most of them as another ended: a limit on the client's concurrency made the open loop closed"
		}
		r.Remarks = append(r.Remarks, text)
	}
}

// ErrNoLengths is what Prompts reports of a trace that does not say how long its
// prompts are.
var ErrNoLengths = errors.New("does not say how long its prompts are")

// Assume gives every prompt of a trace that does not say so a length, and how
// much of it was cached.
func (r *Recording) Assume(prompt, cached int) error {
	for i := range r.Rows {
		r.Rows[i].EnginePromptTokens, r.Rows[i].CachedTokens = int64(prompt), int64(cached)
	}
	r.Remarks = append(r.Remarks, fmt.Sprintf("prompts are taken to be %d tokens, %d of them cached", prompt, cached))
	return r.plan()
}
