package traces

import "math"

// neverNull is the none of a small column all of whose values mean something.
const neverNull = math.MinInt32

// Columns lists the columns of a trace, in stored order. Names are a contract;
// a column may be added in a minor version.
//
// Session, request id and error are plain text rather than dictionaries: a
// client chooses them, and a dictionary of them would grow with the trace in
// the writer and in every reader.
func Columns() []Column[Row] {
	ns := func(name string, at func(*Row) *int64) Column[Row] { return intColumn(name, "ns", at) }
	tokens := func(name string, at func(*Row) *int64) Column[Row] { return intColumn(name, "tokens", at) }
	bytes := func(name string, at func(*Row) *int64) Column[Row] { return intColumn(name, "bytes", at) }
	count := func(name string, at func(*Row) *int64) Column[Row] { return intColumn(name, "", at) }
	return []Column[Row]{
		// Identity.
		textColumn("request_id", KindText, func(r *Row) *string { return &r.RequestID }),
		textColumn("session", KindText, func(r *Row) *string { return &r.Session }),
		sessionSourceColumn(),
		smallColumn("turn", -1, func(r *Row) *int32 { return &r.Turn }),
		smallColumn("virtual_user", -1, func(r *Row) *int32 { return &r.VirtualUser }),
		count("epoch", func(r *Row) *int64 { return &r.Epoch }),
		// Workload.
		ns("scheduled_at", func(r *Row) *int64 { return &r.ScheduledAt }),
		bytes("prompt_bytes", func(r *Row) *int64 { return &r.PromptBytes }),
		tokens("prompt_tokens", func(r *Row) *int64 { return &r.PromptTokens }),
		tokens("max_tokens", func(r *Row) *int64 { return &r.MaxTokens }),
		smallColumn("block_size", 0, func(r *Row) *int32 { return &r.BlockSize }),
		{Name: "blocks", Kind: KindList, list: func(r *Row) *[]uint64 { return &r.Blocks }},
		flagColumn("system_prompt", func(r *Row) *bool { return &r.SystemPrompt }),
		flagColumn("branch", func(r *Row) *bool { return &r.Branch }),
		// Router.
		ns("received_at", func(r *Row) *int64 { return &r.ReceivedAt }),
		ns("decided_at", func(r *Row) *int64 { return &r.DecidedAt }),
		ns("dispatched_at", func(r *Row) *int64 { return &r.DispatchedAt }),
		textColumn("policy", KindEnum, func(r *Row) *string { return &r.Policy }),
		textColumn("reason", KindEnum, func(r *Row) *string { return &r.Reason }),
		textColumn("replica", KindEnum, func(r *Row) *string { return &r.Replica }),
		count("inflight_at_choice", func(r *Row) *int64 { return &r.InFlightAtChoice }),
		bytes("match_bytes", func(r *Row) *int64 { return &r.MatchBytes }),
		tokens("match_tokens", func(r *Row) *int64 { return &r.MatchTokens }),
		textColumn("declined_replica", KindEnum, func(r *Row) *string { return &r.DeclinedReplica }),
		tokens("declined_match", func(r *Row) *int64 { return &r.DeclinedMatch }),
		count("declined_inflight", func(r *Row) *int64 { return &r.DeclinedInFlight }),
		ns("signal_age", func(r *Row) *int64 { return &r.SignalAge }),
		ns("tokenize_time", func(r *Row) *int64 { return &r.TokenizeTime }),
		ns("router_overhead", func(r *Row) *int64 { return &r.RouterOverhead }),
		smallColumn("reroutes", neverNull, func(r *Row) *int32 { return &r.Reroutes }),
		textColumn("rerouted_from", KindEnum, func(r *Row) *string { return &r.ReroutedFrom }),
		// Engine.
		tokens("engine_prompt_tokens", func(r *Row) *int64 { return &r.EnginePromptTokens }),
		tokens("cached_tokens", func(r *Row) *int64 { return &r.CachedTokens }),
		ns("queue_time", func(r *Row) *int64 { return &r.QueueTime }),
		ns("prefill_time", func(r *Row) *int64 { return &r.PrefillTime }),
		// Client.
		ns("sent_at", func(r *Row) *int64 { return &r.SentAt }),
		ns("first_byte_at", func(r *Row) *int64 { return &r.FirstByteAt }),
		ns("first_token_at", func(r *Row) *int64 { return &r.FirstTokenAt }),
		ns("last_token_at", func(r *Row) *int64 { return &r.LastTokenAt }),
		ns("ended_at", func(r *Row) *int64 { return &r.EndedAt }),
		tokens("output_tokens", func(r *Row) *int64 { return &r.OutputTokens }),
		ns("itl_mean", func(r *Row) *int64 { return &r.ITLMean }),
		ns("itl_p50", func(r *Row) *int64 { return &r.ITLP50 }),
		ns("itl_p99", func(r *Row) *int64 { return &r.ITLP99 }),
		ns("itl_max", func(r *Row) *int64 { return &r.ITLMax }),
		count("chunks", func(r *Row) *int64 { return &r.Chunks }),
		bytes("bytes", func(r *Row) *int64 { return &r.Bytes }),
		// Outcome.
		outcomeColumn(),
		smallColumn("status", 0, func(r *Row) *int32 { return &r.Status }),
		textColumn("error", KindText, func(r *Row) *string { return &r.Error }),
		flagColumn("warmup", func(r *Row) *bool { return &r.Warmup }),
	}
}

func sessionSourceColumn() Column[Row] {
	return Column[Row]{
		Name: "session_source", Kind: KindEnum,
		get: func(r *Row) string { return r.SessionSource.String() },
		set: func(r *Row, name string) (err error) {
			r.SessionSource, err = ParseSessionSource(name)
			return err
		},
	}
}

func outcomeColumn() Column[Row] {
	return Column[Row]{
		Name: "outcome", Kind: KindEnum,
		get: func(r *Row) string { return r.Outcome.String() },
		set: func(r *Row, name string) (err error) {
			r.Outcome, err = ParseOutcome(name)
			return err
		},
	}
}
