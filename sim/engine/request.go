package engine

import (
	"time"

	"kvfleet/sim/latency"
)

// A Request is one request inside an engine. The owner fills the first group of
// fields and may reuse the value after its Finished call by way of Reset.
type Request struct {
	ID     int64    // the owner's
	Blocks []uint64 // hashes of the prompt's whole blocks, in order; read only
	Prompt int      // prompt length, tokens
	Stop   int      // output tokens after which the model stops, 1..Max
	Max    int      // max_tokens
	// Recorded, if not 0, is one more than the prompt tokens that a recording says
	// were cached: they are taken as such, whatever the pool holds.
	Recorded int

	// Cached is the prompt tokens found in the prefix cache at first admission.
	Cached int
	// Submitted, Admitted, First and Last are when the request reached the
	// engine, was first scheduled, and had its first and last token computed.
	Submitted, Admitted, First, Last latency.Ticks
	// Preemptions counts how often it was evicted while running.
	Preemptions int

	computed  int // tokens whose KV is computed or scheduled
	target    int // tokens to compute before the next token comes out
	out       int // tokens out
	sched     int // tokens out once every scheduled step has run
	admitted  bool
	displaced bool // preempted and waiting again
	held      []int32
	own       []ownBlock // full blocks of generated tokens, when it was preempted
	runs      []run
}

// An ownBlock is a block of generated tokens and the slot it was in.
type ownBlock struct {
	hash uint64
	slot int32
}

// A run is n gaps between tokens: first, first+inc, first+2*inc, ...
type run struct {
	first, inc latency.Ticks
	n          int
}

// Reset makes the request ready for another use, keeping its buffers.
func (r *Request) Reset() {
	*r = Request{held: r.held[:0], own: r.own[:0], runs: r.runs[:0]}
}

// Output is the number of tokens out so far.
func (r *Request) Output() int { return r.out }

// Gaps describes the gaps between a request's tokens.
type Gaps struct {
	N                   int
	Mean, P50, P99, Max time.Duration
}

// Gaps summarises the gaps between the tokens so far: N is one less than the
// number of tokens. The percentiles are observed gaps: the smallest with at
// least that share at or under it. scratch is a buffer to reuse.
func (r *Request) Gaps(scratch []int64) (Gaps, []int64) {
	scratch = scratch[:0]
	var sum int64
	for _, g := range r.runs {
		v := int64(g.first)
		for range g.n {
			scratch = append(scratch, v)
			sum += v
			v += int64(g.inc)
		}
	}
	n := len(scratch)
	if n == 0 {
		return Gaps{}, scratch
	}
	longest := scratch[0]
	for _, v := range scratch {
		longest = max(longest, v)
	}
	at := func(share float64) time.Duration {
		rank := min(max(int(share*float64(n)+0.9999999)-1, 0), n-1)
		if rank == n-1 {
			return time.Duration(longest >> 10)
		}
		return time.Duration(nth(scratch, rank) >> 10)
	}
	return Gaps{
		N: n, Mean: time.Duration((sum / int64(n)) >> 10),
		P50: at(0.5), P99: at(0.99), Max: time.Duration(longest >> 10),
	}, scratch
}

// remaining is the number of tokens until the request stops by itself.
func (r *Request) remaining() int { return r.Stop - r.out }

// emit records that k tokens came out, the first at time first and the later
// ones after gaps of gap, gap+inc, ...
func (r *Request) emit(k int, first, gap, inc, last latency.Ticks) {
	if r.out == 0 {
		r.First = first
	} else {
		r.addRun(run{first: first - r.Last, n: 1})
	}
	if k > 1 {
		r.addRun(run{first: gap, inc: inc, n: k - 1})
	}
	r.out += k
	r.Last = last
}

func (r *Request) addRun(g run) { r.runs = append(r.runs, g) }
