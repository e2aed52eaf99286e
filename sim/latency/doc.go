// Package latency says how long one engine step takes on one GPU.
//
// The model has the structure that 1,001 measured steps of an 8B AWQ model on
// an RTX 3090 show (see the fleet files for the measurement): dense work in
// tiles of rows, a floor for reading the weights, attention by query tile and
// key, and decode-only batches that run as CUDA graphs padded to a captured
// size. Times are in ticks of 1/1024 ns, so that the sum of a run of decode
// steps, whose context grows by one token a request a step, is exact in closed
// form.
package latency
