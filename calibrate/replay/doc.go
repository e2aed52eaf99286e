// Package replay simulates a captured trace's own requests and sets what the
// simulation says of each beside what was measured.
//
// Arrivals, prompts and answer lengths are the trace's. Where it names replicas,
// requests go where they went; where it says how much was cached but not which
// prompts share it, that much is taken as cached; a closed loop's requests follow
// the simulated end of the one before. Rows that contradict themselves are
// excluded and named, never mended.
package replay
