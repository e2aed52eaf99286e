package policies

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Bounds are what a fleet's calibration tells policies. They come from the fleet
// file; nothing in code stands in for a missing one, and a zero is missing.
type Bounds struct {
	BeliefTTL     time.Duration // how long a placement is believed
	BeliefBlocks  int           // the most prefix blocks believed, over the fleet
	BytesPerToken float64       // of the rendered prompt
	BlockSize     int           // tokens in an engine block
}

type boundSet uint8

const (
	needBeliefTTL boundSet = 1 << iota
	needBeliefBlocks
	needBytesPerToken
	needBlockSize
	needBelief = needBeliefTTL | needBeliefBlocks
)

// need reports every bound of the set that is missing or absurd.
func (b Bounds) need(which boundSet) error {
	var faults []error
	want := func(bit boundSet, ok bool, name, unit string, got any) {
		if which&bit != 0 && !ok {
			faults = append(faults, fmt.Errorf(
				"the fleet's bound %s (%s) is %v, expected more than 0: it has no default", name, unit, got))
		}
	}
	want(needBeliefTTL, b.BeliefTTL > 0, "ttl", "duration", b.BeliefTTL)
	want(needBeliefBlocks, b.BeliefBlocks > 0, "belief_blocks", "prefix blocks", b.BeliefBlocks)
	want(needBytesPerToken, b.BytesPerToken > 0 && !math.IsInf(b.BytesPerToken, 0),
		"bytes_per_token", "bytes", b.BytesPerToken)
	want(needBlockSize, b.BlockSize > 0, "block_size", "tokens", b.BlockSize)
	return errors.Join(faults...)
}
