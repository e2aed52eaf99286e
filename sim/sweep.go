package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kvfleet/policies"
	"kvfleet/traces/report"
	"kvfleet/traces/seed"
	"kvfleet/traces/workload"
)

// SweepConfig describes a pressure grid: every combination of its axes, under
// every policy, in every repetition, is a cell.
type SweepConfig struct {
	Fleet     *Fleet // required
	FleetHash string // of the fleet file's bytes, hex; part of the sweep's identity
	Program   string // name and version, written down with a new sweep
	Policies  []policies.Choice

	WorkingSets, Skews []float64
	Users              []int     // closed loop: numbers of users
	Rates              []float64 // open loop: requests per second; exactly one of the two
	Arrivals           string    // open loop, as in Config
	Shape              float64
	Think              time.Duration

	Repetitions    int
	Window, Warmup time.Duration // as in Config
	Seed           seed.Seed

	// FleetSamples is how many of the fleet's draws are simulated beside the fleet
	// itself, every cell once under each, into samples.csv. A draw's cells have the
	// seed, the epochs and the prompts of the fleet's own, working sets in KV tokens
	// of the fleet's own; so what differs is the constants' doing. All repetitions
	// are simulated: whether policies are within each other's spread is then judged
	// under a draw as it is under the fleet.
	FleetSamples int

	// Workers is how many cells are simulated at once; 0 is one. It changes no
	// number.
	Workers int
	// Dir receives plan.json and cells.csv, and samples.csv of the draws. Cells it
	// already holds are not simulated again.
	Dir string
	// Progress is told of each finished cell, one at a time; nil is silent.
	Progress func(SweepProgress)
}

// SweepProgress is how far a sweep is. A cell counts once under the fleet and once
// under every draw.
type SweepProgress struct {
	Done, Total int   // cells, those found finished included
	Skipped     int   // cells found finished
	Requests    int64 // simulated by this call so far, warm-up included
	Draw        int   // that Cell is of; 0 is the fleet itself
	Cell        report.Cell
}

// A SweepResult is what a sweep came to.
type SweepResult struct {
	Cells     []report.Cell   // sorted
	Samples   []report.Sample // sorted
	Simulated int             // cells simulated by this call, those of draws included
	Requests  int64           // simulated by this call, warm-up included
	BegunBy   string          // SweepConfig.Program of the call that began the directory
}

// A job is one cell to simulate.
type job struct {
	choice           policies.Choice
	driver           string
	load             float64
	workingSet, skew float64
	repetition       int
	draw             int // 0 is the fleet itself
}

// Validate reports every fault at once.
func (c *SweepConfig) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("sweep: "+format, args...)) }
	if c.Fleet == nil {
		return errors.New("sweep: no fleet")
	}
	if len(c.Policies) == 0 {
		fault("policies: none, want at least one")
	}
	seen := map[string]bool{}
	for _, p := range c.Policies {
		id := p.Spec.Name + ":" + p.Effective(c.Fleet.Bounds())
		if seen[id] {
			fault("policies: %s is given twice", id)
		}
		seen[id] = true
	}
	axis := func(name string, values []float64, ok func(float64) bool, want string) {
		if len(values) == 0 {
			fault("%s: none, want at least one", name)
		}
		seen := map[float64]bool{}
		for _, v := range values {
			if !ok(v) || seen[v] {
				fault("%s: got %v, want %s, each once", name, v, want)
			}
			seen[v] = true
		}
	}
	axis("working set", c.WorkingSets, func(v float64) bool { return v > 0 && v < 1e6 }, "positive ratios")
	axis("skew", c.Skews, func(v float64) bool { return v >= 0 && v < 100 }, "exponents from 0 on")
	switch {
	case len(c.Users) > 0 && len(c.Rates) > 0:
		fault("users and rate: want one of them, a closed loop or an open one")
	case len(c.Rates) > 0:
		axis("rate", c.Rates, func(v float64) bool { return v > 0 && v < 1e9 }, "positive requests per second")
	default:
		var users []float64
		for _, u := range c.Users {
			users = append(users, float64(u))
		}
		axis("users", users, func(v float64) bool { return v >= 1 }, "at least 1")
	}
	if c.Repetitions < 1 {
		fault("repetitions: got %d, want at least 1", c.Repetitions)
	}
	if c.Window <= 0 || c.Warmup < 0 || c.Warmup >= c.Window {
		fault("window and warmup: got %v and %v, want a window longer than its warm-up", c.Window, c.Warmup)
	}
	if c.FleetSamples < 0 {
		fault("fleet samples: got %d, want at least 0", c.FleetSamples)
	} else if _, err := c.Fleet.FirstDraws(c.FleetSamples); err != nil {
		fault("fleet samples: %w", err)
	}
	if c.Dir == "" {
		fault("no output directory")
	}
	return errors.Join(faults...)
}

// jobs lists the cells so that those which share bytes follow one another; the
// fleet's own come before those of its draws, which only qualify them.
func (c *SweepConfig) jobs() []job {
	driver, loads := DriverOpen, c.Rates
	if len(c.Users) > 0 {
		driver, loads = DriverClosed, nil
		for _, u := range c.Users {
			loads = append(loads, float64(u))
		}
	}
	var jobs []job
	add := func(firstDraw, lastDraw int) {
		for _, load := range loads {
			for _, ws := range c.WorkingSets {
				for _, skew := range c.Skews {
					for rep := 1; rep <= c.Repetitions; rep++ {
						for draw := firstDraw; draw <= lastDraw; draw++ {
							for _, p := range c.Policies {
								jobs = append(jobs, job{p, driver, load, ws, skew, rep, draw})
							}
						}
					}
				}
			}
		}
	}
	add(0, 0)
	add(1, c.FleetSamples)
	return jobs
}

func (c *SweepConfig) key(j job) cellKey {
	return cellKey{j.draw, j.driver, j.load, j.workingSet, j.skew, j.choice.Spec.Name, j.choice.Effective(c.Fleet.Bounds()), j.repetition}
}

// Sweep simulates what is missing of the grid. Cells without an answer are an
// error once the rest is simulated. Cancelled, it keeps what is
// finished and returns ctx's error; the same call then goes on from there.
func Sweep(ctx context.Context, cfg SweepConfig) (SweepResult, error) {
	if err := cfg.Validate(); err != nil {
		return SweepResult{}, err
	}
	drawn, err := cfg.Fleet.FirstDraws(cfg.FleetSamples)
	if err != nil {
		return SweepResult{}, err
	}
	jobs := cfg.jobs()
	store, err := openStore(&cfg, jobs)
	if err != nil {
		return SweepResult{}, err
	}
	var todo []job
	for _, j := range jobs {
		if !store.has(cfg.key(j)) {
			todo = append(todo, j)
		}
	}
	s := &sweeper{cfg: &cfg, drawn: drawn, store: store, todo: todo, total: len(jobs), skipped: len(jobs) - len(todo)}
	runErr := s.run(ctx)
	cells, samples, err := store.close()
	if err == nil {
		err = runErr
	}
	return SweepResult{Cells: cells, Samples: samples, Simulated: s.done, Requests: s.requests, BegunBy: store.begunBy}, err
}

// A sweeper hands cells to workers and collects them.
type sweeper struct {
	cfg     *SweepConfig
	drawn   []*Fleet
	store   *store
	todo    []job
	total   int
	skipped int

	mu       sync.Mutex
	next     int
	done     int
	requests int64
	err      error
	barren   []error // cells without an answer
}

func (s *sweeper) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for range min(max(1, s.cfg.Workers), max(1, len(s.todo))) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w := &worker{cfg: s.cfg, drawn: s.drawn}
			for {
				j, ok := s.take(ctx)
				if !ok {
					return
				}
				cell, requests, err := w.cell(ctx, j)
				if !s.finish(j.draw, cell, requests, err) {
					stop()
					return
				}
			}
		}()
	}
	wg.Wait()
	if s.err == nil && s.next < len(s.todo) {
		return ctx.Err()
	}
	if s.err != nil {
		return s.err
	}
	slices.SortFunc(s.barren, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(s.barren...)
}

// errNoAnswer is of a cell that no figure can be given for. The rest of the grid
// is simulated all the same.
var errNoAnswer = errors.New("no request of the window completed")

func (s *sweeper) take(ctx context.Context) (job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.todo) || ctx.Err() != nil || s.err != nil {
		return job{}, false
	}
	s.next++
	return s.todo[s.next-1], true
}

func (s *sweeper) finish(draw int, cell report.Cell, requests int64, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errNoAnswer) {
		s.barren = append(s.barren, err)
		return true
	}
	if err == nil {
		err = s.store.add(report.Sample{Draw: draw, Cell: cell})
	}
	if err != nil {
		if s.err == nil || errors.Is(s.err, context.Canceled) {
			s.err = err
		}
		return false
	}
	s.done++
	s.requests += requests
	if s.cfg.Progress != nil {
		s.cfg.Progress(SweepProgress{
			Done: s.done + s.skipped, Total: s.total, Skipped: s.skipped, Requests: s.requests, Draw: draw, Cell: cell,
		})
	}
	return true
}

// A worker simulates cells one after another; cells of one epoch share their
// prompts.
type worker struct {
	cfg       *SweepConfig
	drawn     []*Fleet
	epoch     int
	load      workload.MultiTurn
	tokenizer workload.Tokenizer // a draw may have another, and other blocks
	blockSize int
	content   *workload.Content
	draws     *workload.Draws
}

func (w *worker) cell(ctx context.Context, j job) (report.Cell, int64, error) {
	c, fleet, under := w.cfg, w.cfg.Fleet, ""
	if j.draw > 0 {
		fleet, under = w.drawn[j.draw-1], fmt.Sprintf("draw %d, ", j.draw)
	}
	load, err := workload.Published(j.workingSet, j.skew, c.Fleet.KVTokens(), c.Seed).Resolve()
	if err != nil {
		return report.Cell{}, 0, fmt.Errorf("sweep: working set %v, skew %v: %w", j.workingSet, j.skew, err)
	}
	epoch := Epoch(j.driver, j.load, j.workingSet, j.skew, j.repetition)
	if w.content == nil || epoch != w.epoch || load != w.load || fleet.Tokenizer != w.tokenizer || fleet.Engine.BlockSize != w.blockSize {
		w.epoch, w.load, w.tokenizer, w.blockSize = epoch, load, fleet.Tokenizer, fleet.Engine.BlockSize
		w.content = load.Content(epoch, w.tokenizer, w.blockSize)
		w.draws = load.Draws()
	}
	cfg := Config{
		Fleet: fleet, Policy: j.choice, Seed: c.Seed,
		Workload: load, Content: w.content, Draws: w.draws, Epoch: epoch,
		Arrivals: c.Arrivals, Shape: c.Shape, Think: c.Think,
		Window: c.Window, Warmup: c.Warmup,
	}
	if j.driver == DriverClosed {
		cfg.Users = int(j.load)
	} else {
		cfg.Rate = j.load
	}
	r, err := Run(ctx, cfg)
	if err != nil {
		return report.Cell{}, 0, err
	}
	if r.Summary.Success == 0 {
		why := errNoAnswer
		if r.Summary.Requests == 0 {
			why = fmt.Errorf("%w: none was sent in the time counted", errNoAnswer)
		}
		return report.Cell{}, 0, fmt.Errorf("sweep: %s%s, working set %v, skew %v, %s (%s), repetition %d: %w",
			under, report.LoadName(j.driver, j.load), j.workingSet, j.skew, j.choice.Spec.Name, j.choice.Effective(c.Fleet.Bounds()), j.repetition, why)
	}
	cell := NewCell(j.driver, j.load, j.workingSet, j.skew, j.choice.Spec.Name, j.choice.Effective(c.Fleet.Bounds()), j.repetition, &r)
	return cell, r.Summary.Rows(), nil
}

// NewCell writes a run's result as a row of cells.csv.
func NewCell(driver string, load, workingSet, skew float64, policy, parameters string, repetition int, r *Result) report.Cell {
	s := &r.Summary
	return report.Cell{
		Driver: driver, Load: load, WorkingSet: workingSet, Skew: skew,
		Policy: policy, Parameters: parameters, Repetition: repetition,
		Requests: int(s.Requests), Success: int(s.Success), SLOViolation: int(s.SLOViolation),
		Failed: int(s.Failed), Dropped: int(s.Dropped), Cancelled: int(s.Cancelled),
		GoodputRPS: s.GoodputRPS, ThroughputRPS: s.ThroughputRPS,
		TTFTP50MS: s.TTFTP50, TTFTP99MS: s.TTFTP99, ITLP50MS: s.ITLP50, E2EP50MS: s.E2EP50,
		PrefixCacheHitRate: s.HitRate, RecomputedPrefillTokens: s.RecomputedPerRequest,
		BusiestReplicaShare: s.BusiestShare, SpillShare: s.SpillShare,
		IdleBeforeEvictP90Second: s.IdleBeforeEvictP90,
	}
}
