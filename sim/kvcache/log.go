package kvcache

// A Log collects the KV events of one engine step: what a subscriber of a real
// engine's event stream would receive. Hashes are announced per copy.
type Log struct {
	Stored  []uint64
	Removed []uint64
	Cleared bool
}

// Empty reports whether nothing happened.
func (l *Log) Empty() bool { return len(l.Stored) == 0 && len(l.Removed) == 0 && !l.Cleared }

// Reset forgets the events, keeping the room they took.
func (l *Log) Reset() { l.Stored, l.Removed, l.Cleared = l.Stored[:0], l.Removed[:0], false }

func (l *Log) store(h uint64)  { l.Stored = append(l.Stored, h) }
func (l *Log) remove(h uint64) { l.Removed = append(l.Removed, h) }
func (l *Log) clear()          { l.Stored, l.Removed, l.Cleared = l.Stored[:0], l.Removed[:0], true }
