// Package policies holds the rules that place requests on the replicas of a
// fleet, and the view they decide on.
//
// A [Policy] sees a request and a [Snapshot] of the replicas in rotation, and
// answers with a [Decision]: a replica, a [Reason] from a closed list, and what
// was weighed. The same policy runs in a simulated fleet and behind a proxy;
// package policies/router keeps the snapshot and calls it.
//
// The package refuses everything that would make two runs differ: it reads no
// clock, starts no goroutine, logs nothing, draws only from a random stream it
// is handed, and lets no map order reach a decision. It does not tokenize,
// render or hash prompts (see policies/block), and it never tells whether a
// replica is healthy: that is decided outside and told to the router.
//
// Policies are made from text by the catalog:
//
//	choice, err := policies.ParseChoice("prefix_affinity:spill_factor=0")
//	policy, err := choice.New(bounds, rng)
package policies
