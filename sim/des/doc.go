// Package des is the event loop of a simulation: events in virtual time,
// ordered by (time, rank, insertion). Scheduling into the past panics, since
// only a bug of ours can do it. It knows nothing of what the events mean.
package des
