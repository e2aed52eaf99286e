// Package heat fits the thermal section of a fleet file from telemetry of the
// GPUs: temperature, SM clock and board power in bins of some seconds, while the
// cards of one host work and while they rest.
//
// The fit replays the measured load through sim/thermal, all cards of the
// telemetry together since they heat each other, and searches for the constants
// whose replay is nearest. Loaded, straddling and idle bins are found in the
// telemetry.
//
// It refuses to tell apart what cards loaded alike cannot: the room from the heat
// sinks, the neighbours' heat from a card's own, prefill's power from decode's.
// Those keep the base file's values, and each estimate names the run that would
// tell.
package heat
