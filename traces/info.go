package traces

import (
	"hash/maphash"
	"slices"
	"time"
)

// An Info describes a trace's workload. Figures that are not known are NaN, times
// that are not known None.
type Info struct {
	Rows     int64
	Outcomes [Cancelled + 1]int64
	Sessions int64 // distinct; 0 if rows name none

	// Arrivals are by scheduled time, or sent time where there is none.
	FirstArrival, LastArrival int64 // ns
	ArrivalRate               float64
	// DistinctArrivals far below Rows means that arrivals are binned.
	DistinctArrivals int64

	PromptTokens Spread // the engine's count where the workload has none
	OutputTokens Spread // the limit where nothing was generated yet

	Blocks         int64 // block ids over all prompts
	DistinctBlocks int64
	// WideBlocks counts the block ids above 2^53, over all prompts. Exported JSON
	// has them as plain numbers, and a reader that keeps numbers as floating point
	// takes different ones for equal (see package export).
	WideBlocks int64
	// SharedPrefix is the share of prompt tokens whose block an earlier row's
	// prompt began with: the hit rate of a cache that never evicts, filled in row
	// order. NaN without block ids.
	SharedPrefix float64

	Err error // what ended the rows, if an error did
}

// A Spread is the quantiles of a count over rows, type 7.
type Spread struct{ Sum, Min, P50, P90, P99, Max float64 }

// Describe reads all rows. It keeps 24 bytes a row and a map of distinct blocks
// and sessions.
func Describe(rows Source) Info {
	d := describer{seed: maphash.MakeSeed(), sessions: map[uint64]struct{}{}, blocks: map[uint64]struct{}{}}
	for row, err := range rows {
		if err != nil {
			d.info.Err = err
			break
		}
		d.add(&row)
	}
	return d.finish()
}

type describer struct {
	info                      Info
	seed                      maphash.Seed
	sessions, blocks          map[uint64]struct{}
	arrivals, prompts, output []int64
	hit, blockTokens          int64
}

func (d *describer) add(r *Row) {
	i := &d.info
	i.Rows++
	if r.Outcome <= Cancelled {
		i.Outcomes[r.Outcome]++
	}
	if r.Session != "" {
		d.sessions[maphash.String(d.seed, r.Session)] = struct{}{}
	}
	if at := known(r.ScheduledAt, r.SentAt); at != None {
		d.arrivals = append(d.arrivals, at)
	}
	prompt := known(r.PromptTokens, r.EnginePromptTokens)
	if prompt != None {
		d.prompts = append(d.prompts, prompt)
	}
	if n := known(r.OutputTokens, r.MaxTokens); n != None {
		d.output = append(d.output, n)
	}
	if r.BlockSize <= 0 || prompt == None {
		return
	}
	run, matching := int64(0), true
	for _, b := range r.Blocks {
		if b > 1<<53 {
			i.WideBlocks++
		}
		_, seen := d.blocks[b]
		if matching = matching && seen; matching {
			run++
		} else if !seen {
			d.blocks[b] = struct{}{}
		}
	}
	i.Blocks += int64(len(r.Blocks))
	d.hit += min(prompt, run*int64(r.BlockSize))
	d.blockTokens += prompt
}

func (d *describer) finish() Info {
	i := &d.info
	i.Sessions, i.DistinctBlocks = int64(len(d.sessions)), int64(len(d.blocks))
	i.FirstArrival, i.LastArrival = None, None
	slices.Sort(d.arrivals)
	if n := len(d.arrivals); n > 0 {
		i.FirstArrival, i.LastArrival = d.arrivals[0], d.arrivals[n-1]
		i.ArrivalRate = quotient(float64(n-1), time.Duration(i.LastArrival-i.FirstArrival).Seconds())
		i.DistinctArrivals = int64(len(slices.Compact(d.arrivals)))
	} else {
		i.ArrivalRate = quotient(0, 0)
	}
	i.PromptTokens, i.OutputTokens = spread(d.prompts), spread(d.output)
	i.SharedPrefix = quotient(float64(d.hit), float64(d.blockTokens))
	return d.info
}

func spread(values []int64) Spread {
	slices.Sort(values)
	s := Spread{
		Min: Quantile(values, 0), P50: Quantile(values, 0.5), P90: Quantile(values, 0.9),
		P99: Quantile(values, 0.99), Max: Quantile(values, 1),
	}
	for _, v := range values {
		s.Sum += float64(v)
	}
	return s
}
