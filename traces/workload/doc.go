// Package workload generates requests: the multi-turn chat workload of the
// published grid, byte-exact, and the arrivals and dealing of open-loop drivers.
//
// A workload is deterministic in (seed, epoch, user, turn). The same generator
// serves the simulator, which wants hashes and token counts, and a live load
// driver, which wants the text those belong to. OpenRows is an open loop as a
// trace not yet run; a closed loop has none, since when its requests are sent
// depends on the answers.
//
// It does not tokenize: token counts come from a Tokenizer's measured bytes per
// token, so that they are right on average and repeat exactly. And it does not
// send anything or keep time.
package workload
