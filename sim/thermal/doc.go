// Package thermal says how hot the cards of one chassis are, what they draw
// and at which clock they run, in virtual time.
//
// Each card is a die over a heat sink over its own local air. The air is the
// ambient plus what the neighbours' sinks give off, each weighted by a coupling
// in kelvin per watt and delayed by the air's lag. A power limit picks the
// highest step of the clock ladder whose draw stays under the limit; leakage
// grows with the die's temperature, so a power-capped clock falls slowly as the
// card warms. A temperature limit lowers a ceiling on the ladder step by step
// and raises it again only below a hysteresis band. From the clock follow two
// factors: one on compute-bound time (prefill), one on bandwidth-bound time
// (decode), which hardly moves.
//
// What it refuses: it has no clock, no goroutine and no randomness; it knows
// nothing of requests; it does not model memory-junction temperature, fan curves
// or the hardware slowdown some ten kelvin above the software limit. One Chassis
// is one host: a fleet of many hosts has many of them, and heat does not pass
// between hosts.
package thermal
