package sim

import (
	"fmt"
	"time"

	"kvfleet/policies"
	"kvfleet/policies/router"
	"kvfleet/sim/des"
	"kvfleet/sim/engine"
	"kvfleet/sim/kvcache"
	"kvfleet/sim/latency"
	"kvfleet/traces"
)

// A driver decides what is sent and when.
type driver interface {
	start(c *cluster) error
	// more says whether the driver has yet to send something.
	more() bool
	// ended is told that the call with the driver's cookie is over.
	// refused says that no replica took it.
	ended(cookie int64, now time.Duration, refused bool)
}

// A cluster is a fleet at run time: loop, router, replicas and the calls on
// their way.
type cluster struct {
	cfg      *Config
	fleet    *Fleet
	loop     des.Loop
	router   *router.Router
	choice   policies.Choice
	replicas []*replica
	calls    []call
	driver   driver
	sink     func(*traces.Row)

	freeCalls    []int32
	openCalls    int
	lastEnd      time.Duration // of a request
	rejected     []Rejection
	serial       int64
	policyName   string
	keepIDs      bool
	looks        bool // the policy looks for matches
	readsReports bool // the policy reads what engines report

	needsTokens bool
	overhead    time.Duration
	egress      time.Duration
	eventDelay  time.Duration

	buffer      traces.Row
	scratch     []int64
	idle        kvcache.IdleAges // of evicted cached blocks, over the fleet
	batches     []*batch         // on their way to the router, by number
	freeBatches []int64
	heat        []*chassis
	ids         *identities // of a trace's prompts
	faulty      bool
}

func newCluster(cfg *Config, sink func(*traces.Row)) (*cluster, error) {
	f := cfg.Fleet
	policy, err := cfg.Policy.New(f.Bounds(), cfg.Seed.Stream("policy/"+cfg.Policy.Spec.Name, cfg.Epoch))
	if err != nil {
		return nil, err
	}
	model, err := latency.New(f.Step)
	if err != nil {
		return nil, fmt.Errorf("sim: fleet %s: step: %w", f.Name, err)
	}
	c := &cluster{
		cfg: cfg, fleet: f, choice: cfg.Policy, sink: sink,
		router:      router.New(router.Config{Policy: policy}),
		policyName:  policy.Name(),
		needsTokens: cfg.Policy.Spec.NeedsTokens,
		overhead:    millis(f.Router.OverheadMS), egress: millis(f.FrontEnd.EgressMS),
		eventDelay: millis(f.Router.EventDelayMS),
		looks:      cfg.Policy.Spec.NeedsBelief || cfg.Policy.Spec.NeedsEvents,
		keepIDs:    cfg.KeepIDs, readsReports: cfg.Policy.ReadsReports(),
	}
	for i, r := range f.Replicas {
		n := &replica{c: c, id: policies.ReplicaID(i), name: r.Name, alive: true, rotation: true, slow: 1, dueAt: -1}
		opts := engine.Options{
			Events: c.router.WantsEvents(), Evicted: c.idle.Add, Stepwise: cfg.Stepwise,
		}
		if f.Step.NoiseShare > 0 {
			opts.Noise = cfg.Seed.Stream("engine/noise", cfg.Epoch, i)
		}
		if cfg.Steps != nil {
			name := r.Name
			opts.Steps = func(s engine.Step) { cfg.Steps(name, s) }
		}
		n.engine = engine.New(f.Engine, model, n, opts)
		n.lead = n
		c.replicas = append(c.replicas, n)
		c.router.Observe(0, router.Observation{Kind: router.Added, Replica: n.id, Name: n.name})
	}
	c.bind()
	if err := c.warmUp(); err != nil {
		return nil, err
	}
	if every := f.Router.ReportEvery; every > 0 && c.readsReports {
		c.loop.At(every, rankHealth, (*reports)(c), 0)
	}
	c.scheduleFaults()
	return c, nil
}

// bind lets the ranks of data-parallel engines step together.
func (c *cluster) bind() {
	n := c.fleet.Engine.LockstepRanks
	for i := 0; n > 1 && i < len(c.replicas); i += n {
		var engines []*engine.Engine
		for _, r := range c.replicas[i:min(i+n, len(c.replicas))] {
			r.lead = c.replicas[i]
			engines = append(engines, r.engine)
		}
		c.replicas[i].ranks = engine.NewRanks(engines...)
	}
}

// tokenize is how long the router waits for a prompt's tokens.
func (c *cluster) tokenize(tokens int) time.Duration {
	return millis(c.fleet.Router.TokenizeMS + c.fleet.Router.TokenizeTokenMS*float64(tokens))
}

type reports cluster

// Fire reads every replica's counters.
func (s *reports) Fire(at time.Duration, _ int64) {
	c := (*cluster)(s)
	for _, n := range c.replicas {
		if !n.alive {
			continue
		}
		if rate, ok := n.hitRate(at, c.fleet.Router.ReportWindow); ok {
			c.router.Observe(at, router.Observation{Kind: router.Report, Replica: n.id, HitRate: rate})
		}
	}
	if c.running() {
		c.loop.At(at+c.fleet.Router.ReportEvery, rankHealth, s, 0)
	}
}

// running says whether periodic events must go on.
func (c *cluster) running() bool {
	return c.openCalls > 0 || c.loop.Now() < c.cfg.Window || c.driver.more()
}
