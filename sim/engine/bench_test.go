package engine

import (
	"testing"
	"time"

	"kvfleet/sim/kvcache"
	"kvfleet/sim/latency"
)

type nobody struct{}

func (nobody) FirstToken(*Request, time.Duration)  {}
func (nobody) Finished(*Request, time.Duration)    {}
func (nobody) Stepped(time.Duration, *kvcache.Log) {}

// Both benchmarks serve requests like the published workload's, 3,000 tokens of
// prompt, two thirds of them cached, and 64 of answer, at about the load of the
// pressure grid. Their ratio is what the closed form is worth.
func BenchmarkRequestStretch(b *testing.B)  { benchmarkRequest(b, Options{}) }
func BenchmarkRequestStepwise(b *testing.B) { benchmarkRequest(b, Options{Stepwise: true}) }
func BenchmarkRequestEvents(b *testing.B)   { benchmarkRequest(b, Options{Events: true}) }

func benchmarkRequest(b *testing.B, opts Options) {
	p := testParams()
	p.PairMS, p.MixedContextMS = 1e-5, 1e-4
	m, err := latency.New(p)
	if err != nil {
		b.Fatal(err)
	}
	e := New(Config{BlockSize: 16, Blocks: 7872, TokenBudget: 2048, MaxSeqs: 256}, m, nobody{}, opts)
	const inFlight = 64
	requests := make([]*Request, inFlight)
	for i := range requests {
		requests[i] = &Request{Blocks: make([]uint64, 190)}
	}
	at := time.Duration(0)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		r := requests[n%inFlight]
		if n >= inFlight && r.Output() < r.Stop {
			b.Fatalf("overloaded: %d running, %d waiting", e.Running(), e.Waiting())
		}
		blocks := r.Blocks
		r.Reset()
		session := uint64(n*7919%30) * 256
		for i := range blocks {
			blocks[i] = 1 + session + uint64(i)
			if i >= 126 {
				blocks[i] = 1<<32 + uint64(n)*256 + uint64(i)
			}
		}
		r.ID, r.Blocks, r.Prompt, r.Max, r.Stop = int64(n), blocks, 190*16+5, 64, 64
		at += 400 * time.Millisecond
		if n < 100 {
			at += time.Second // while the cache fills
		}
		for due, ok := e.Due(); ok && due < at; due, ok = e.Due() {
			e.Fire()
		}
		e.Submit(r, at)
		n++
	}
	b.ReportMetric(float64(e.Steps())/float64(n), "steps/op")
}

// Eight requests generate a thousand tokens each, side by side.
func BenchmarkLongAnswersStretch(b *testing.B)  { benchmarkLong(b, Options{}) }
func BenchmarkLongAnswersStepwise(b *testing.B) { benchmarkLong(b, Options{Stepwise: true}) }

func benchmarkLong(b *testing.B, opts Options) {
	m, err := latency.New(testParams())
	if err != nil {
		b.Fatal(err)
	}
	e := New(Config{BlockSize: 16, Blocks: 7872, TokenBudget: 2048, MaxSeqs: 256}, m, nobody{}, opts)
	var requests [8]Request
	at := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		for i := range requests {
			r := &requests[i]
			r.Reset()
			r.Prompt, r.Max, r.Stop = 15, 1000, 1000
			e.Submit(r, at)
		}
		for due, ok := e.Due(); ok; due, ok = e.Due() {
			at = due + 1
			e.Fire()
		}
	}
}
