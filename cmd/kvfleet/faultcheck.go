package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kvfleet/sim"
)

// A faultState is where the faults so far leave a replica. Its zero value is one
// that runs and is in rotation.
type faultState struct{ dead, starting, drained bool }

// idleFaults says of the faults that can do nothing why. end is the window's
// end or the last arrival, which endName says. readsEvents says whether the
// policy learns from KV events.
func idleFaults(faults []sim.Fault, end time.Duration, endName string, readsEvents bool) []string {
	inOrder := slices.Clone(faults)
	slices.SortStableFunc(inOrder, func(a, b sim.Fault) int { return cmp.Compare(a.At, b.At) })
	states := map[string]*faultState{}
	var all []string
	for _, f := range inOrder {
		s := states[f.Replica]
		if s == nil {
			s = &faultState{}
			states[f.Replica] = s
		}
		why := s.take(f.Kind)
		if f.Kind == "event_gap" && !readsEvents {
			why = "the policy reads no KV events, so it changes nothing"
		}
		if f.At >= end {
			why = fmt.Sprintf("it comes after %s (%v), so at most answers still under way feel it", endName, end)
		}
		if why != "" {
			all = append(all, fmt.Sprintf("fault %s of %s at %v: %s", f.Kind, f.Replica, f.At, why))
		}
	}
	return all
}

// take follows a fault and says why it does nothing, if it does nothing.
func (s *faultState) take(kind string) string {
	was := *s
	why := func(idle bool, text string) string {
		if !idle {
			return ""
		}
		return text + ", so it changes nothing"
	}
	switch kind {
	case "kill":
		s.dead, s.starting = true, false
		return why(was.dead && !was.starting, "the replica is dead by then")
	case "restart":
		s.starting = was.dead
		return why(!was.dead || was.starting, "the replica runs or starts by then")
	case "drain":
		s.drained = true
		return why(was.drained, "the replica is drained by then")
	case "restore":
		s.drained = false
		return why(!was.drained, "the replica is not drained by then")
	}
	return ""
}
