package traces

import "iter"

// A StepRow is one engine step: one scheduler iteration and its forward pass.
// Times are nanoseconds since the run's origin. The columns are those of
// engine_steps.csv plus when, where and preemptions.
type StepRow struct {
	Start    int64 // ns
	Duration int64 // ns
	Replica  string
	// PrefillRequests is how many requests were still in prefill, PrefillTokens
	// their new tokens in this step, PrefillContext the sum of their sequence
	// lengths after it.
	PrefillRequests int64
	PrefillTokens   int64
	PrefillContext  int64
	// DecodeRequests is how many requests made one token each, DecodeContext the
	// sum of their sequence lengths.
	DecodeRequests int64
	DecodeContext  int64
	Preemptions    int64
}

// StepSource is one pass over steps; the first error ends it.
type StepSource = iter.Seq2[StepRow, error]

// StepColumns lists the columns of a step log, in stored order.
func StepColumns() []Column[StepRow] {
	return []Column[StepRow]{
		intColumn("start", "ns", func(r *StepRow) *int64 { return &r.Start }),
		intColumn("duration", "ns", func(r *StepRow) *int64 { return &r.Duration }),
		textColumn("replica", KindEnum, func(r *StepRow) *string { return &r.Replica }),
		intColumn("prefill_requests", "", func(r *StepRow) *int64 { return &r.PrefillRequests }),
		intColumn("prefill_tokens", "tokens", func(r *StepRow) *int64 { return &r.PrefillTokens }),
		intColumn("prefill_context", "tokens", func(r *StepRow) *int64 { return &r.PrefillContext }),
		intColumn("decode_requests", "", func(r *StepRow) *int64 { return &r.DecodeRequests }),
		intColumn("decode_context", "tokens", func(r *StepRow) *int64 { return &r.DecodeContext }),
		intColumn("preemptions", "", func(r *StepRow) *int64 { return &r.Preemptions }),
	}
}

// newStepRow is a step of which nothing is known.
func newStepRow() StepRow {
	return StepRow{
		Start: None, Duration: None, PrefillRequests: None, PrefillTokens: None, PrefillContext: None,
		DecodeRequests: None, DecodeContext: None, Preemptions: None,
	}
}
