package replay

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"kvfleet/traces"
)

// Load goes on behind the trace as it was before: the same arrivals again, of other
// content. What is compared stays what it was, and what was done before the copies
// came is not touched by them.
func TestContinued(t *testing.T) {
	f := madeFleet(t)
	var rows []traces.Row
	for i := range 10 {
		r := answered(fmt.Sprint("r", i), time.Second+time.Duration(i)*ms*100, 3*time.Second)
		r.Session, r.SessionSource, r.Turn = fmt.Sprint("s", i%2), traces.SessionSupplied, int32(i/2)
		r.Blocks, r.BlockSize = []uint64{uint64(1 + i%2), uint64(3 + i%2), 5, 6, 7, uint64(100 + i)}, 16
		r.Replica, r.OutputTokens, r.MaxTokens = "b", 50, 50
		rows = append(rows, r)
	}
	r := open(t, traces.Meta{}, rows...)
	before := fmt.Sprintf("%+v", r.prompts)
	if r.Continued(0) != r || r.Continued(-1) != r {
		t.Error("continued for no time: want the recording itself")
	}
	own := map[uint64]bool{}
	for _, p := range r.prompts {
		for _, b := range p.Trace {
			own[b] = true
		}
	}
	for _, spans := range []float64{0.5, 1, 2.25} {
		c := r.Continued(spans)
		if !reflect.DeepEqual(c.Rows, r.Rows) || !slices.Equal(c.Judged, r.Judged) || !reflect.DeepEqual(c.prompts[:10], r.prompts) {
			t.Fatalf("%v spans: the recording's own requests have changed", spans)
		}
		copies := c.prompts[10:]
		// A period is one arrival longer than the trace's 900 ms, and copies are due
		// from one period on for spans of them.
		if least, most := int(spans*10), int(spans*10)+1+int(spans); len(copies) < least || len(copies) > most {
			t.Errorf("%v spans: %d copies, want %d to %d", spans, len(copies), least, most)
		}
		seen := map[string]int{}
		for i, p := range copies {
			at := time.Duration(p.ScheduledAt)
			if want := 2*time.Second + time.Duration(i)*100*ms; at != want {
				t.Errorf("%v spans: copy %d is due at %v, want %v", spans, i, at, want)
			}
			of := r.prompts[i%10]
			if p.Tokens != of.Tokens || p.Stop != of.Stop || p.Replica != of.Replica || p.Session == of.Session || len(p.Trace) != len(of.Trace) {
				t.Errorf("%v spans: copy %d is %+v, of %+v", spans, i, p, of)
			}
			for _, b := range p.Trace {
				if own[b] {
					t.Errorf("%v spans: copy %d shares block %d with the trace", spans, i, b)
				}
			}
			if seen[p.RequestID]++; seen[p.RequestID] > 1 {
				t.Errorf("%v spans: two copies are called %s", spans, p.RequestID)
			}
			// Copies of one pass share among themselves what the trace's do.
			if shared := p.Trace[0] == copies[i/10*10].Trace[0]; shared != (i%2 == 0) {
				t.Errorf("%v spans: copy %d and the first of its pass share a block: %v", spans, i, shared)
			}
		}
		plain, loaded := simulate(t, r, f, ""), simulate(t, c, f, "")
		slower := 0
		for i := range plain {
			if plain[i].Ended < int64(2*time.Second) && plain[i] != loaded[i] {
				t.Errorf("%v spans: request %d ended before the copies came, and is another with them", spans, i)
			}
			if loaded[i].E2E > plain[i].E2E {
				slower++
			}
		}
		if slower == 0 {
			t.Errorf("%v spans: the copies are no load", spans)
		}
		c.Free() // what is done to it is not done to the recording
	}
	if got := fmt.Sprintf("%+v", r.prompts); got != before {
		t.Error("continuing a recording has changed it")
	}
}

// A long trace's period is its span and one arrival more, without overflow.
func TestContinuedLongTrace(t *testing.T) {
	r := open(t, traces.Meta{}, answered("a", 0, ms), answered("b", 100_000*time.Hour, ms))
	r.Rows = slices.Repeat(r.Rows[:1], 100_000)
	r.Rows[99_999].SentAt = int64(100_000 * time.Hour)
	c := r.Continued(1)
	if got, most := time.Duration(c.prompts[2].ScheduledAt), 100_002*time.Hour; got < 100_000*time.Hour || got > most {
		t.Errorf("the first copy is due at %v, want just over the span of 100,000 h", got)
	}
}

// Late is the share of requests that were still under way when the last one sent
// had its first token.
func TestLate(t *testing.T) {
	lost := answered("lost", 10*ms, 300*ms)
	lost.EndedAt, lost.LastTokenAt = traces.None, traces.None
	r := open(t, traces.Meta{}, answered("a", 0, 30*ms), lost, answered("b", 20*ms, 600*ms), answered("c", 40*ms, 90*ms))
	if got := time.Duration(r.Served()); got != 70*ms {
		t.Errorf("served by %v, want 70ms", got)
	}
	if r.Late() != 0.75 || time.Duration(r.Span()) != 40*ms {
		t.Errorf("%v of the requests late over %v, want all but the first over 40ms", r.Late(), time.Duration(r.Span()))
	}
}
