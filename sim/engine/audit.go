package engine

import (
	"errors"
	"fmt"
)

// Audit checks the engine's own conservation laws: blocks free and held add up,
// nobody found more cached than its prompt less one token, nobody holds fewer
// blocks than it computed.
func (e *Engine) Audit() error {
	var faults []error
	if err := e.pool.Audit(); err != nil {
		faults = append(faults, err)
	}
	for _, r := range e.running {
		if r.Cached > r.Prompt-1 {
			faults = append(faults, fmt.Errorf("engine: request %d: %d tokens cached of a prompt of %d", r.ID, r.Cached, r.Prompt))
		}
		if len(r.held) < e.blocks(r.computed) {
			faults = append(faults, fmt.Errorf("engine: request %d: holds %d blocks for %d tokens", r.ID, len(r.held), r.computed))
		}
		if r.out > r.Stop || r.sched > r.Max {
			faults = append(faults, fmt.Errorf("engine: request %d: %d tokens out of %d, %d scheduled of %d", r.ID, r.out, r.Stop, r.sched, r.Max))
		}
	}
	return errors.Join(faults...)
}
