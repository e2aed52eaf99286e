package sim

import (
	"errors"
	"fmt"
)

// audit checks what a run must conserve (design/engine-model.md). It is cheap
// when nothing is open, and costs a look at every replica otherwise.
func (c *cluster) audit(end bool) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("sim: at %v: "+format, append([]any{c.loop.Now()}, args...)...))
	}
	inflight, inside := 0, 0
	for _, n := range c.replicas {
		inflight += c.router.InFlight(n.id)
		inside += len(n.inside)
		if err := n.engine.Audit(); err != nil {
			fault("%s: %w", n.name, err)
		}
		if !n.alive && len(n.inside) > 0 {
			fault("%s: is dead and holds %d calls", n.name, len(n.inside))
		}
		if got, want := c.router.InFlight(n.id), len(n.inside); got != want {
			fault("%s: the router counts %d in flight, %d are there", n.name, got, want)
		}
	}
	if inside > c.openCalls {
		fault("%d calls at replicas, %d open", inside, c.openCalls)
	}
	if end && (inflight != 0 || c.openCalls != 0) {
		fault("at the end %d are in flight and %d open, want none", inflight, c.openCalls)
	}
	return errors.Join(faults...)
}
