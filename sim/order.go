package sim

import "kvfleet/sim/des"

// The order of events of one instant: what the world does to replicas first,
// then what engines and networks do, then what routers and clients learn, and
// new arrivals last.
const (
	rankFault des.Rank = iota
	rankHeat
	rankSubmit // requests reach engines
	rankEngine // steps end
	rankHealth // membership, reports and KV events reach the router
	rankClient // tokens and ends reach the router and the client
	rankArrive // requests are sent, or decided after tokenization
)
