package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvfleet/policies"
	"kvfleet/sim/engine"
	"kvfleet/sim/kvcache"
	"kvfleet/traces"
	"kvfleet/traces/seed"
	"kvfleet/traces/summary"
	"kvfleet/traces/workload"
)

// A Config describes one run: a cell of a grid, or a trace. Exactly one of
// Users, Rate and Trace says what drives it.
type Config struct {
	Fleet  *Fleet          // required
	Policy policies.Choice // required
	Seed   seed.Seed       // of everything the run itself draws

	// Workload is the multi-turn workload, resolved; unused with Trace. Content
	// and Draws may be given to share them between runs of one epoch, one after
	// another; nil makes them.
	Workload workload.MultiTurn
	Content  *workload.Content
	Draws    *workload.Draws
	Epoch    int // whose bytes are sent

	Users    int           // closed loop: users
	Rate     float64       // open loop: requests per second
	Arrivals string        // open loop: even (or empty), poisson, gamma
	Shape    float64       // of gamma arrivals
	Think    time.Duration // open loop: between a conversation's turns; 0 is 5 s
	Trace    []Prompt      // replayed at their ScheduledAt, which must not fall

	// Window is the run's whole length, Warmup its uncounted opening. With Trace,
	// a Window of 0 counts every request.
	Window, Warmup time.Duration

	Faults []Fault

	Rows     func(*traces.Row)                   // finished rows; the row is reused
	KeepIDs  bool                                // rows carry request ids and blocks
	Steps    func(replica string, s engine.Step) // step log
	Decided  func(d DecisionRecord)              // decision log
	Stepwise bool                                // never advance decode stretches in closed form
	Audit    bool                                // audit the conservation laws after every event
}

// A Result is what a run came to.
type Result struct {
	Summary summary.Summary
	// IdleBeforeEvict counts the cached blocks evicted by how long they had been
	// idle.
	IdleBeforeEvict kvcache.IdleAges
	Preemptions     int
	Steps           int64         // engine steps
	Events          uint64        // of the event loop
	End             time.Duration // of the last request
	EventGaps       uint64
	Rejected        []Rejection // also rows, failed with status 400
}

// validate reports every fault at once.
func (cfg *Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("sim: "+format, args...)) }
	if cfg.Fleet == nil {
		return errors.New("sim: no fleet")
	}
	drivers := 0
	for _, given := range []bool{cfg.Users != 0, cfg.Rate != 0, cfg.Trace != nil} {
		if given {
			drivers++
		}
	}
	if drivers != 1 {
		fault("want exactly one of users, rate and trace, got %d of them", drivers)
	}
	if cfg.Users < 0 {
		fault("users: got %d, want at least 1", cfg.Users)
	}
	if cfg.Rate < 0 {
		fault("rate: got %v, want a positive number of requests per second", cfg.Rate)
	}
	if cfg.Trace == nil && cfg.Window <= 0 {
		fault("window: got %v, want a positive length", cfg.Window)
	}
	if cfg.Warmup < 0 || cfg.Window > 0 && cfg.Warmup >= cfg.Window {
		fault("warmup: got %v of a window of %v, want it to leave something to count", cfg.Warmup, cfg.Window)
	}
	if err := ValidateFaults(cfg.Faults, cfg.Fleet); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// ParsePolicy reads a policy as a command line states it, NAME[:k=v,...], for
// callers that know fleets and no policies.
func ParsePolicy(text string) (policies.Choice, error) { return policies.ParseChoice(text) }

// Run simulates. The error is a user's mistake, or ctx's.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := cfg.validate(); err != nil {
		return Result{}, err
	}
	if cfg.Think == 0 {
		cfg.Think = 5 * time.Second
	}
	names := make([]string, len(cfg.Fleet.Replicas))
	for i, r := range cfg.Fleet.Replicas {
		names[i] = r.Name
	}
	acc, err := summary.New(summary.Options{
		Warmup: cfg.Warmup, Window: cfg.Window, SLO: cfg.Fleet.SLO.Limit(), Replicas: names,
	})
	if err != nil {
		return Result{}, err
	}
	sink := acc.Add
	if cfg.Rows != nil {
		sink = func(r *traces.Row) { acc.Add(r); cfg.Rows(r) }
	}
	c, err := newCluster(&cfg, sink)
	if err != nil {
		return Result{}, err
	}
	if err := c.setDriver(); err != nil {
		return Result{}, err
	}
	if err := c.driver.start(c); err != nil {
		return Result{}, err
	}
	if err := c.drain(ctx); err != nil {
		return Result{}, err
	}
	if err := c.audit(true); err != nil {
		panic(err)
	}
	return c.result(acc), nil
}

func (c *cluster) setDriver() error {
	cfg := c.cfg
	if cfg.Trace != nil {
		c.driver = &replay{c: c, prompts: cfg.Trace}
		c.ids = newIdentities(cfg.Fleet)
		return nil
	}
	// A session's last turn is the longest. What a single prompt has beyond the
	// mean is looked at when it is sent.
	tok := &cfg.Fleet.Tokenizer
	tokens := int(float64(cfg.Workload.MaxPromptBytes())/tok.BytesPerToken) + cfg.Workload.OutputTokens +
		tok.StartTokens + 2*cfg.Workload.Turns*(tok.HeaderTokens+tok.TrailerTokens)
	if tokens > cfg.Fleet.MaxModelLen {
		return fmt.Errorf("sim: workload %s: its prompts reach about %d tokens, fleet %s takes %d", cfg.Workload.Name(), tokens, cfg.Fleet.Name, cfg.Fleet.MaxModelLen)
	}
	if tokens > cfg.Fleet.Engine.Tokens() {
		return fmt.Errorf("sim: workload %s: its prompts reach about %d tokens, a replica of fleet %s holds %d", cfg.Workload.Name(), tokens, cfg.Fleet.Name, cfg.Fleet.Engine.Tokens())
	}
	if cfg.Content == nil {
		cfg.Content = cfg.Workload.Content(cfg.Epoch, cfg.Fleet.Tokenizer, cfg.Fleet.Engine.BlockSize)
	}
	if cfg.Draws == nil {
		cfg.Draws = cfg.Workload.Draws()
	}
	if cfg.Users > 0 {
		c.driver = &closed{chat: newChat(c)}
	} else {
		c.driver = &open{chat: newChat(c)}
	}
	return nil
}

// drain runs until nothing is left to happen.
func (c *cluster) drain(ctx context.Context) error {
	for i := 0; c.loop.Step(); i++ {
		if c.cfg.Audit {
			if err := c.audit(false); err != nil {
				panic(err)
			}
		}
		if i&0xfff == 0 {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("sim: stopped at %v of virtual time: %w", c.loop.Now(), err)
			}
		}
	}
	return nil
}

func (c *cluster) result(acc *summary.Accumulator) Result {
	r := Result{End: c.lastEnd, Rejected: c.rejected, Events: c.loop.Fired(), EventGaps: c.router.Gaps()}
	for _, n := range c.replicas {
		r.Preemptions += n.engine.Preemptions()
		r.Steps += n.engine.Steps()
	}
	r.IdleBeforeEvict = c.idle
	r.Summary = acc.Summary()
	if p90, ok := c.idle.Quantile(0.9); ok {
		r.Summary.IdleBeforeEvictP90 = p90.Seconds()
	}
	return r
}
