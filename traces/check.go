package traces

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
)

// A Finding is one inconsistency of a trace.
type Finding struct {
	Row     int64 // from 1
	Request string
	Field   string
	Text    string // what is wrong
}

func (f Finding) String() string {
	return fmt.Sprintf("row %d (%s): %s: %s", f.Row, f.Request, f.Field, f.Text)
}

// A CheckReport is what Check found. Err is the error that ended the rows, if
// one did.
type CheckReport struct {
	Rows     int64
	Outcomes [Cancelled + 1]int64 // rows by outcome
	Faults   int64                // all findings
	Findings []Finding            // the first 100
	Err      error
}

const maxFindings = 100

// Check reads all rows and reports what contradicts itself: times out of order or
// before the start, an outcome that does not fit what happened, more cached tokens
// than an engine can serve, counts that disagree, request ids given twice, turns
// of a session out of order. It keeps some 40 bytes a row.
func Check(rows Source) CheckReport {
	c := checker{ids: map[uint64]int64{}, seed: maphash.MakeSeed()}
	for row, err := range rows {
		if err != nil {
			c.report.Err = err
			break
		}
		c.report.Rows++
		c.row = &row
		c.at = c.report.Rows
		c.identity()
		c.times()
		c.tokens()
		c.outcome()
	}
	c.turns()
	return c.report
}

type checker struct {
	report CheckReport
	row    *Row
	at     int64
	seed   maphash.Seed
	ids    map[uint64]int64 // hashed request id -> first row
	sent   []sentTurn
}

// sentTurn is a turn of one conversation: a session as one user holds it, in one
// epoch.
type sentTurn struct {
	conversation uint64
	at           int64
	row          int64
	turn         int32
}

func (c *checker) fault(field, format string, args ...any) {
	c.report.Faults++
	if len(c.report.Findings) < maxFindings {
		c.report.Findings = append(c.report.Findings, Finding{c.at, c.row.RequestID, field, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) identity() {
	r := c.row
	if r.RequestID == "" {
		c.fault("request_id", "is empty")
	} else {
		key := maphash.String(c.seed, r.RequestID)
		if first, twice := c.ids[key]; twice {
			c.fault("request_id", "is that of row %d too", first)
		} else {
			c.ids[key] = c.at
		}
	}
	if (r.Session == "") != (r.SessionSource == SessionNone) {
		c.fault("session_source", "is %s with session %q", r.SessionSource, r.Session)
	}
	at := r.SentAt
	if at == None {
		at = r.ScheduledAt
	}
	if r.Session != "" && r.Turn >= 0 && at != None {
		var h maphash.Hash
		h.SetSeed(c.seed)
		fmt.Fprintf(&h, "%d/%d/%s", r.Epoch, r.VirtualUser, r.Session)
		c.sent = append(c.sent, sentTurn{h.Sum64(), at, c.at, r.Turn})
	}
}

// times checks that what happened, happened in order.
func (c *checker) times() {
	r := c.row
	// Time 0 is the start of the run or trace: nothing is due or sent before it.
	for _, start := range [...]struct {
		field string
		at    int64
	}{{"scheduled_at", r.ScheduledAt}, {"sent_at", r.SentAt}} {
		if start.at != None && start.at < 0 {
			c.fault(start.field, "is %d ns, want 0 or more", start.at)
		}
	}
	before, last := "", int64(None)
	for _, event := range [...]struct {
		field string
		at    int64
	}{
		{"scheduled_at", r.ScheduledAt}, {"sent_at", r.SentAt}, {"received_at", r.ReceivedAt},
		{"decided_at", r.DecidedAt}, {"dispatched_at", r.DispatchedAt}, {"first_byte_at", r.FirstByteAt},
		{"first_token_at", r.FirstTokenAt}, {"last_token_at", r.LastTokenAt}, {"ended_at", r.EndedAt},
	} {
		if event.at == None {
			continue
		}
		if event.at < last {
			c.fault(event.field, "is %d ns, before %s at %d ns", event.at, before, last)
		}
		before, last = event.field, event.at
	}
	for _, d := range [...]struct {
		field string
		ns    int64
	}{
		{"signal_age", r.SignalAge}, {"tokenize_time", r.TokenizeTime}, {"router_overhead", r.RouterOverhead},
		{"queue_time", r.QueueTime}, {"prefill_time", r.PrefillTime}, {"itl_mean", r.ITLMean}, {"itl_p50", r.ITLP50},
		{"itl_p99", r.ITLP99}, {"itl_max", r.ITLMax},
	} {
		if d.ns != None && d.ns < 0 {
			c.fault(d.field, "is %d ns, want 0 or more", d.ns)
		}
	}
	ordered := func(field string, low, high int64) {
		if low != None && high != None && low > high {
			c.fault(field, "is %d ns, above the largest of %d ns", low, high)
		}
	}
	ordered("itl_p50", r.ITLP50, r.ITLMax)
	ordered("itl_p99", r.ITLP99, r.ITLMax)
	ordered("itl_mean", r.ITLMean, r.ITLMax)
}

func (c *checker) tokens() {
	r := c.row
	for _, n := range [...]struct {
		field string
		count int64
	}{
		{"prompt_bytes", r.PromptBytes}, {"prompt_tokens", r.PromptTokens}, {"max_tokens", r.MaxTokens},
		{"engine_prompt_tokens", r.EnginePromptTokens}, {"cached_tokens", r.CachedTokens}, {"output_tokens", r.OutputTokens},
		{"match_bytes", r.MatchBytes}, {"match_tokens", r.MatchTokens}, {"inflight_at_choice", r.InFlightAtChoice},
		{"chunks", r.Chunks}, {"bytes", r.Bytes}, {"reroutes", int64(r.Reroutes)}, {"block_size", int64(r.BlockSize)},
	} {
		if n.count != None && n.count < 0 {
			c.fault(n.field, "is %d, want 0 or more", n.count)
		}
	}
	// An engine always computes the last prompt token itself.
	if r.CachedTokens > 0 && r.EnginePromptTokens != None && r.CachedTokens > r.EnginePromptTokens-1 {
		c.fault("cached_tokens", "is %d of %d prompt tokens, want at most all but one", r.CachedTokens, r.EnginePromptTokens)
	}
	if r.OutputTokens != None && r.MaxTokens > 0 && r.OutputTokens > r.MaxTokens {
		c.fault("output_tokens", "is %d, above max_tokens of %d", r.OutputTokens, r.MaxTokens)
	}
	if len(r.Blocks) > 0 && r.BlockSize <= 0 {
		c.fault("block_size", "is %d with %d blocks", r.BlockSize, len(r.Blocks))
	} else if r.BlockSize > 0 && r.PromptTokens > 0 {
		size := int64(r.BlockSize)
		if n := int64(len(r.Blocks)); n != 0 && (n < r.PromptTokens/size || n > (r.PromptTokens-1)/size+1) {
			c.fault("blocks", "has %d ids of %d tokens for a prompt of %d", n, size, r.PromptTokens)
		}
	}
	if r.Reroutes > 0 && r.ReroutedFrom == "" {
		c.fault("rerouted_from", "is empty after %d reroutes", r.Reroutes)
	}
}

// outcome checks that the outcome fits what happened.
func (c *checker) outcome() {
	r := c.row
	if r.Outcome > Cancelled {
		c.fault("outcome", "is %s", r.Outcome)
		return
	}
	c.report.Outcomes[r.Outcome]++
	known := func(field string, at int64, want bool) {
		if (at != None) != want {
			state := "is missing"
			if !want {
				state = "is known"
			}
			c.fault(field, "%s in a row whose outcome is %s", state, r.Outcome)
		}
	}
	switch r.Outcome {
	case Pending:
		known("first_token_at", r.FirstTokenAt, false)
		known("ended_at", r.EndedAt, false)
	case Success:
		known("sent_at", r.SentAt, true)
		known("first_token_at", r.FirstTokenAt, true)
		known("ended_at", r.EndedAt, true)
		if r.OutputTokens == 0 {
			c.fault("output_tokens", "is 0 in an answered row")
		}
	}
	// A dropped request may have a first token: its replica was lost mid-stream.
}

// turns checks each conversation in the order it was sent: a turn is the one
// after the last, the last again, or the first of another visit.
func (c *checker) turns() {
	slices.SortFunc(c.sent, func(a, b sentTurn) int {
		switch {
		case a.conversation != b.conversation:
			return cmp.Compare(a.conversation, b.conversation)
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(a.turn, b.turn)
	})
	var wrong []sentTurn
	for i := 1; i < len(c.sent); i++ {
		a, b := c.sent[i-1], c.sent[i]
		if a.conversation == b.conversation && b.turn != 0 && b.turn != a.turn && b.turn != a.turn+1 {
			b.at = int64(a.turn)
			wrong = append(wrong, b)
		}
	}
	slices.SortFunc(wrong, func(a, b sentTurn) int { return cmp.Compare(a.row, b.row) })
	c.row = &Row{}
	for _, w := range wrong {
		c.at = w.row
		c.fault("turn", "is %d, sent after turn %d of its conversation", w.turn, w.at)
	}
}
