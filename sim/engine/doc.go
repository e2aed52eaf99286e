// Package engine is one simulated vLLM V1 engine: a waiting queue, a running
// list, a scheduler with a token budget and chunked prefill, the paged KV cache
// of package kvcache, and the step times of package latency.
//
// With Config.Async a step is scheduled one step ahead: while step k runs, step
// k+1 is already composed, so a request that arrives now joins step k+2 at the
// earliest, and a request that stops early burns one more slot.
//
// A stretch of steps that only decode, over an unchanged set of requests, is
// advanced in closed form. Options.Stepwise turns that off; the results are the
// same to the tick, and a test holds the two together. What an owner reads or
// kills in the middle of a stretch is only exact after CatchUp.
//
// The engine knows nothing of routers, front ends or clients, and reads no
// clock: its owner calls Submit and Fire.
package engine
