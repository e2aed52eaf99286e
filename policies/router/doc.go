// Package router is the one routing core: it folds what is observed of a fleet
// into a snapshot, asks a policy, and keeps the ledger of requests in flight.
//
//	r := router.New(router.Config{Policy: policy})
//	r.Observe(at, router.Observation{Kind: router.Added, Replica: 0, Name: "r0"})
//	d, err := r.Route(at, request) // counted in flight from here on
//	r.Prefilled(at, d.Replica, d.Pending)
//	r.Done(at, d.Replica, 0)
//
// A simulated fleet calls it in virtual time, a proxy in real time under one
// lock. It starts no goroutine, reads no clock and logs nothing. It forwards no
// request and judges no replica's health: who is in rotation is observed.
//
// The ledger is exact: every Route that placed a request must be answered by
// exactly one Done, by whatever ended the request. One too many panics.
package router
