// Package sim runs a fleet of LLM replicas in virtual time behind the routing
// core of package policies/router: the same code that stands behind a live
// proxy decides where each request goes.
//
// A Fleet says what the replicas are; it is read from a fleet file in which
// every number has a unit and a source. Run simulates one cell of the multi-turn
// workload or replays a trace; Sweep simulates a pressure grid into a directory
// that the same call resumes. A replica is a front end (a queue), an engine with
// vLLM's scheduler and paged prefix cache (package engine, kvcache), measured
// step times (latency) and a card that warms (thermal). Faults come on a
// schedule, and the router learns of them as late as a live one would.
//
// Equal inputs and seed give equal results, on any number of cores. The package
// reads no clock; what it refuses is to guess: an unknown key of a fleet file, a
// workload no replica could hold and a directory of another sweep are errors.
package sim
