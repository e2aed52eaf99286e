// Package workload generates requests: the multi-turn chat workload of the
// published grid, byte-exact, and the arrival processes of open-loop drivers.
//
// A workload is deterministic in (seed, epoch, user, turn). The same generator
// serves the simulator, which wants hashes and token counts, and a live load
// driver, which wants the text those belong to.
//
// It does not tokenize: token counts come from a Tokenizer's measured bytes per
// token, so that they are right on average and repeat exactly. And it does not
// send anything or keep time.
package workload
