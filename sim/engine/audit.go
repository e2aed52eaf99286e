package engine

import (
	"errors"
	"fmt"
)

// Audit checks the engine's own conservation laws: blocks free and held add up,
// references are what the running requests hold, nobody found more cached than
// its prompt less one token, nobody holds more or fewer blocks than it computed,
// and every token out was scheduled once.
func (e *Engine) Audit() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("engine: "+format, args...)) }
	if err := e.pool.Audit(); err != nil {
		faults = append(faults, err)
	}
	held := 0
	for _, r := range e.running {
		held += len(r.held)
		if r.Cached > r.Prompt-1 {
			fault("request %d: %d tokens cached of a prompt of %d", r.ID, r.Cached, r.Prompt)
		}
		if len(r.held) != e.blocks(r.computed) {
			fault("request %d: holds %d blocks for %d tokens", r.ID, len(r.held), r.computed)
		}
		if r.out >= r.Stop || r.out > r.sched || r.sched > r.Max {
			fault("request %d: runs with %d tokens out of %d, %d scheduled of %d", r.ID, r.out, r.Stop, r.sched, r.Max)
		}
		if r.computed > r.target && r.computed != r.Prompt+r.sched-1 {
			fault("request %d: %d tokens computed of a prompt of %d and %d answers", r.ID, r.computed, r.Prompt, r.sched)
		}
	}
	if got := e.pool.References(); got != held {
		fault("%d references to blocks, running requests hold %d", got, held)
	}
	displaced := 0
	for _, r := range e.waiting[e.head:] {
		if len(r.held) > 0 || r.computed > 0 {
			fault("request %d: waits, but holds %d blocks of %d tokens", r.ID, len(r.held), r.computed)
		}
		if r.displaced {
			displaced++
		}
	}
	if displaced != e.displaced || len(e.running) > e.cfg.MaxSeqs {
		fault("%d requests preempted and %d running, want %d and at most %d", displaced, len(e.running), e.displaced, e.cfg.MaxSeqs)
	}
	return errors.Join(faults...)
}
