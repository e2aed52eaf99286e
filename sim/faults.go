package sim

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"kvfleet/policies/router"
	"kvfleet/traces"
)

// A Fault is something that happens to a replica on a schedule.
type Fault struct {
	At      time.Duration `yaml:"at"`
	Replica string        `yaml:"replica"`
	// Kind is kill (the process dies, its cache with it), restart (a process is
	// started; it serves after the fleet's start-up time, with an empty cache),
	// drain (the operator takes it out of rotation; running requests finish),
	// restore (undoes drain), slow (everything takes Factor times as long; it is
	// the machine that is slow, so a restart does not end it), or event_gap (its
	// KV events are lost; nothing replays them, so what the replica stored before
	// the gap stays unknown to the router until it is stored again).
	Kind string `yaml:"kind"`
	// For is how long slow and event_gap last; 0 is to the end of the run.
	For    time.Duration `yaml:"for"`
	Factor float64       `yaml:"factor"` // of slow
}

// faultKinds, in the order they are documented.
var faultKinds = [...]string{"kill", "restart", "drain", "restore", "slow", "event_gap"}

// ValidateFaults reports every fault of a schedule at once.
func ValidateFaults(faults []Fault, f *Fleet) error {
	var errs []error
	for i, x := range faults {
		at := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("faults[%d]: "+format, append([]any{i}, args...)...))
		}
		known := false
		for _, r := range f.Replicas {
			known = known || r.Name == x.Replica
		}
		if !known {
			at("replica: got %q, want one of fleet %s: %s", x.Replica, f.Name, f.someNames())
		}
		kind := false
		for _, k := range faultKinds {
			kind = kind || k == x.Kind
		}
		if !kind {
			at("kind: got %q, want one of %v", x.Kind, faultKinds)
		}
		if x.At < 0 || x.For < 0 {
			at("at, for: got %v, %v, want zero or more", x.At, x.For)
		}
		if x.Kind == "slow" && !(x.Factor > 0 && x.Factor < 1e6) {
			at("factor: got %v, want a positive number: how many times as long everything takes", x.Factor)
		}
		if x.Kind != "slow" && x.Factor != 0 {
			at("factor: given for %s, which has none", x.Kind)
		}
		if x.For > 0 && x.Kind != "slow" && x.Kind != "event_gap" {
			at("for: given for %s, which does not end by itself", x.Kind)
		}
	}
	errs = append(errs, overlaps(faults)...)
	return errors.Join(errs...)
}

// someNames lists replicas for an error; of a large fleet, the first few.
func (f *Fleet) someNames() string {
	const most = 8
	var names []string
	for _, r := range f.Replicas[:min(most, len(f.Replicas))] {
		names = append(names, r.Name)
	}
	if len(f.Replicas) > most {
		names = append(names, fmt.Sprintf("and %d more", len(f.Replicas)-most))
	}
	return strings.Join(names, ", ")
}

// overlaps finds faults of one kind and replica under way at once. The end of
// one would end the other.
func overlaps(faults []Fault) []error {
	var errs []error
	lasts := func(f *Fault) bool { return f.Kind == "slow" || f.Kind == "event_gap" }
	before := func(a, b *Fault) bool { return a.For > 0 && a.At+a.For <= b.At }
	for i := range faults {
		for j := range faults[:i] {
			a, b := &faults[j], &faults[i]
			if lasts(a) && a.Kind == b.Kind && a.Replica == b.Replica && !before(a, b) && !before(b, a) {
				errs = append(errs, fmt.Errorf("faults[%d]: %s of %s overlaps faults[%d]", i, b.Kind, b.Replica, j))
			}
		}
	}
	return errs
}

type faults cluster

// undo marks the event that ends a fault.
const undo = int64(1) << 32

func (c *cluster) scheduleFaults() {
	if len(c.cfg.Faults) == 0 {
		return
	}
	c.faulty = true
	// At one instant what ends goes before what begins, whatever the file's order.
	for i, f := range c.cfg.Faults {
		if f.For > 0 {
			c.loop.At(f.At+f.For, rankFault, (*faults)(c), int64(i)|undo)
		}
	}
	for i, f := range c.cfg.Faults {
		c.loop.At(f.At, rankFault, (*faults)(c), int64(i))
	}
	// Checks of the replicas are spread over the interval.
	every := c.fleet.Health.Interval
	for i := range c.replicas {
		c.loop.At(every*time.Duration(i+1)/time.Duration(len(c.replicas)), rankHealth, (*checks)(c), int64(i))
	}
}

func (s *faults) Fire(at time.Duration, arg int64) {
	c := (*cluster)(s)
	f := c.cfg.Faults[arg&^undo]
	var n *replica
	for _, m := range c.replicas {
		if m.name == f.Replica {
			n = m
		}
	}
	over := arg&undo != 0
	switch f.Kind {
	case "kill":
		c.kill(n)
	case "restart":
		for _, m := range c.together(n) {
			c.loop.At(at+c.fleet.Health.StartUp, rankFault, (*startUps)(c), int64(m.id)|m.started<<32)
		}
	case "drain":
		n.drained = true
		c.setRotation(n, false, false)
	case "restore":
		n.drained = false
		if n.alive {
			c.setRotation(n, true, n.cleared)
		}
	case "slow":
		n.slow = f.Factor
		if over {
			n.slow = 1
		}
		n.engine.SetSlow(n.slow)
		n.engine.Reprice(at)
		n.arm()
	case "event_gap":
		n.muted = !over
	default:
		panic("sim: a fault of kind " + f.Kind + " passed validation")
	}
}

// together is the replicas that live and die with one: its ranks, or itself alone.
func (c *cluster) together(n *replica) []*replica {
	first := int(n.lead.id)
	last := first
	for last < len(c.replicas) && c.replicas[last].lead == n.lead {
		last++
	}
	return c.replicas[first:last]
}

// kill ends a process and the ranks that step with it. What their clients were
// reading is lost; what nobody has seen anything of is placed again.
func (c *cluster) kill(n *replica) {
	all := c.together(n)
	for _, m := range all {
		m.started++
	}
	if !n.alive {
		return
	}
	for _, m := range all {
		m.alive = false
	}
	for _, m := range all {
		c.lose(m)
	}
}

// lose empties a process that has ended.
func (c *cluster) lose(n *replica) {
	now := c.loop.Now()
	n.generation++
	n.armed++
	n.dueAt = -1
	n.engine.CatchUp(now)
	n.engine.Kill()
	n.seq = 0
	n.samples = n.samples[:0]
	lost := append([]int32(nil), n.inside...)
	n.inside = n.inside[:0]
	sort.Slice(lost, func(i, j int) bool { return c.calls[lost[i]].serial < c.calls[lost[j]].serial })
	for _, i := range lost {
		k := &c.calls[i]
		if k.firstSeen >= 0 && k.firstSeen <= now {
			c.finish(i, traces.Dropped, "replica lost mid-stream")
			continue
		}
		c.reroute(i)
	}
}

// refused is a connection that a dead replica did not take: the router ejects
// it at once and places the call again.
func (c *cluster) refused(i int32, n *replica) {
	n.cleared = true
	c.setRotation(n, false, true)
	n.fails = c.fleet.Health.Failures
	c.reroute(i)
}

type startUps cluster

// Fire is a restarted process beginning to serve.
func (s *startUps) Fire(at time.Duration, arg int64) {
	n := (*cluster)(s).replicas[arg&(undo-1)]
	if n.alive || arg>>32 != n.started {
		return
	}
	n.alive = true
	n.frontEnd = at
}

type checks cluster

// Fire is one health check of one replica.
func (s *checks) Fire(at time.Duration, id int64) {
	c := (*cluster)(s)
	n := c.replicas[id]
	h := &c.fleet.Health
	if n.alive {
		n.fails = 0
		n.passes++
		if n.passes >= h.Passes && !n.rotation && !n.drained {
			c.setRotation(n, true, n.cleared)
		}
	} else {
		n.passes = 0
		n.fails++
		if n.fails >= h.Failures {
			n.cleared = true
			c.setRotation(n, false, true)
		}
	}
	if c.running() {
		c.loop.At(at+h.Interval, rankHealth, s, id)
	}
}

// setRotation tells the router of a change of membership.
func (c *cluster) setRotation(n *replica, in, forget bool) {
	if n.rotation == in {
		return
	}
	n.rotation = in
	kind := router.OutOfRotation
	if in {
		kind = router.InRotation
		n.cleared = false
	} else {
		n.passes = 0
	}
	c.router.Observe(c.loop.Now(), router.Observation{Kind: kind, Replica: n.id, Forget: forget})
}
