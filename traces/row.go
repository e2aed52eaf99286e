package traces

import (
	"iter"
	"math"
	"time"
)

// None marks a time or count that did not happen or is not known. It is stored
// as null.
const None = math.MinInt64

// An Outcome is how a request ended. Every request ends in exactly one.
type Outcome uint8

// The outcomes. Pending is the outcome of a workload row that has not been run.
const (
	Pending Outcome = iota
	Success
	Failed
	Dropped
	Cancelled
)

// A SessionSource says where a row's session id came from.
type SessionSource uint8

// The session sources.
const (
	SessionNone SessionSource = iota
	SessionSupplied
	SessionDerived
)

// A Row is one request: of a workload that has not run, of a simulated or live
// run, or of an imported trace. Times are nanoseconds since the run's origin;
// None means the event did not happen or is not known. Counts that an engine or
// a source did not state are None too.
type Row struct {
	// Identity.
	RequestID     string
	Session       string
	SessionSource SessionSource
	Turn          int32 // 0-based turn within the session; -1 if unknown
	VirtualUser   int32 // closed loop: the user; open loop: the conversation slot; -1 if none
	Epoch         int64

	// Workload.
	ScheduledAt  int64 // due time; None in a closed loop
	PromptBytes  int64
	PromptTokens int64 // as planned by the workload
	MaxTokens    int64
	// BlockSize is how many tokens one entry of Blocks stands for (16 for vLLM
	// engine blocks, 512 for Mooncake's, 64 for Weka's); 0 if there are none.
	BlockSize int32
	// Blocks identifies the prompt's leading whole or partial blocks; equal ids
	// mean equal prompts up to and including that block.
	Blocks       []uint64
	SystemPrompt bool
	Branch       bool

	// Router.
	ReceivedAt       int64
	DecidedAt        int64
	DispatchedAt     int64
	Policy           string
	Reason           string
	Replica          string
	InFlightAtChoice int64
	MatchBytes       int64
	MatchTokens      int64
	DeclinedReplica  string
	DeclinedMatch    int64 // tokens
	DeclinedInFlight int64
	SignalAge        int64 // ns
	TokenizeTime     int64 // ns
	RouterOverhead   int64 // ns
	Reroutes         int32
	ReroutedFrom     string

	// Engine.
	EnginePromptTokens int64
	CachedTokens       int64
	QueueTime          int64 // ns
	PrefillTime        int64 // ns

	// Client.
	SentAt       int64
	FirstByteAt  int64
	FirstTokenAt int64
	LastTokenAt  int64
	EndedAt      int64 // the whole answer was received, or the request failed
	OutputTokens int64
	ITLMean      int64 // ns
	ITLP50       int64 // ns
	ITLP99       int64 // ns
	ITLMax       int64 // ns
	Chunks       int64
	Bytes        int64

	// Outcome.
	Outcome Outcome
	Status  int32 // HTTP status; 0 if none
	Error   string
	Warmup  bool
}

// NewRow returns a row of which nothing is known yet: every time and count is
// None, Turn and VirtualUser are -1, the outcome is Pending.
func NewRow() Row {
	return Row{
		Turn: -1, VirtualUser: -1,
		ScheduledAt: None, PromptBytes: None, PromptTokens: None, MaxTokens: None,
		ReceivedAt: None, DecidedAt: None, DispatchedAt: None, InFlightAtChoice: None,
		MatchBytes: None, MatchTokens: None, DeclinedMatch: None, DeclinedInFlight: None,
		SignalAge: None, TokenizeTime: None, RouterOverhead: None,
		EnginePromptTokens: None, CachedTokens: None, QueueTime: None, PrefillTime: None,
		SentAt: None, FirstByteAt: None, FirstTokenAt: None, LastTokenAt: None, EndedAt: None,
		OutputTokens: None, ITLMean: None, ITLP50: None, ITLP99: None, ITLMax: None,
		Chunks: None, Bytes: None,
	}
}

// Source is one pass over rows; the first error ends it.
type Source = iter.Seq2[Row, error]

// A Sink takes rows in any order. It is not safe for concurrent use. Close
// writes the trailer that proves completeness.
type Sink interface {
	Write(*Row) error
	Close() error
}

// TTFT is the time from sent to first content token, or None.
func (r *Row) TTFT() int64 { return since(r.SentAt, r.FirstTokenAt) }

// E2E is the time from sent to the end of the answer, or None.
func (r *Row) E2E() int64 { return since(r.SentAt, r.EndedAt) }

// Plan is the row as a workload that has not run: identity and workload are
// kept, everything that happened is forgotten. A finished row is due when it was
// due, or else when it was sent; its prompt and output are as long as they turned
// out to be where the workload did not say.
func (r *Row) Plan() Row {
	p := NewRow()
	p.RequestID, p.Session, p.SessionSource = r.RequestID, r.Session, r.SessionSource
	p.Turn, p.VirtualUser, p.Epoch = r.Turn, r.VirtualUser, r.Epoch
	p.ScheduledAt = known(r.ScheduledAt, r.SentAt)
	p.PromptBytes, p.PromptTokens = r.PromptBytes, known(r.PromptTokens, r.EnginePromptTokens)
	p.MaxTokens = known(r.MaxTokens, r.OutputTokens)
	p.BlockSize, p.Blocks = r.BlockSize, r.Blocks
	p.SystemPrompt, p.Branch, p.Warmup = r.SystemPrompt, r.Branch, r.Warmup
	return p
}

func known(v, otherwise int64) int64 {
	if v == None {
		return otherwise
	}
	return v
}

func since(from, to int64) int64 {
	if from == None || to == None {
		return None
	}
	return to - from
}

// At converts a virtual or monotonic time since the origin into a Row time.
func At(t time.Duration) int64 { return int64(t) }
