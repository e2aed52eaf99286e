// Package ring is a consistent-hash ring: each replica owns many points of a
// circle of 64-bit numbers, and a key belongs to the replica of the first point
// at or after it.
//
// Points depend on the names of the replicas and on nothing else, so that two
// routers agree and a replica that leaves moves only its own keys. The package
// knows no load and no health: walking on past the first replica is for the
// caller to decide. A ring is not safe for concurrent use, because a walk marks
// what it has visited.
package ring
