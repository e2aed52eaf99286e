package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"kvfleet/policies"
	"kvfleet/sim/engine"
	"kvfleet/sim/latency"
	"kvfleet/sim/thermal"
	"kvfleet/traces"
	"kvfleet/traces/workload"
)

// A Fleet is everything that is known of a fleet: what its replicas are, how
// fast they step, what happens around the engine, and what a router in front of
// it knows. It is read from a fleet file; LoadFleet decodes it strictly.
type Fleet struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Model       string `yaml:"model"`
	// MaxModelLen is the longest sequence the engine accepts, tokens.
	MaxModelLen int       `yaml:"max_model_len"`
	Replicas    []Replica `yaml:"replicas"`

	Engine    engine.Config      `yaml:"engine"`
	Step      latency.Params     `yaml:"step"`
	FrontEnd  FrontEnd           `yaml:"front_end"`
	Tokenizer workload.Tokenizer `yaml:"tokenizer"`
	Output    Output             `yaml:"output,omitempty"`
	Router    RouterSpec         `yaml:"router"`
	Health    Health             `yaml:"health"`
	SLO       SLOSpec            `yaml:"slo"`
	// Thermal is the cards' heat; absent, every card runs at the reference clock.
	Thermal *Thermal `yaml:"thermal,omitempty"`

	// Provenance says, for every number, its unit and where it comes from, by
	// the number's path in this file; a path stands for all below it.
	Provenance map[string]Provenance `yaml:"provenance"`
	// Draws, if a calibration wrote the file, is what else its numbers may be.
	Draws *Draws `yaml:"draws,omitempty"`
}

// A Replica is one engine process on one GPU.
type Replica struct {
	Name string `yaml:"name"`
	GPU  int    `yaml:"gpu"` // index into thermal.cards

	chassis int // which of several chassis of a scaled fleet
}

// A Provenance says what a number is and where it is from.
type Provenance struct {
	Unit   string `yaml:"unit"`
	Source string `yaml:"source"`
	// What a calibration adds: the 95% interval (low, high), which rows identified
	// the number, whether it was measured, kept as a prior, refused or stated, and
	// the run that would tell it.
	Interval []float64 `yaml:"interval,omitempty,flow"`
	Rows     string    `yaml:"rows,omitempty"`
	Verdict  string    `yaml:"verdict,omitempty"`
	Advice   string    `yaml:"advice,omitempty"`
}

// Draws are draws of a fleet's constants from what a calibration knows of them.
// The values of one draw belong together.
type Draws struct {
	Paths  []string    `yaml:"paths"`
	Values [][]float64 `yaml:"values"` // by draw, in the order of Paths
}

// A FrontEnd is the engine's API process: a queue, not a constant.
type FrontEnd struct {
	// ServiceMS and ServiceTokenMS occupy the process, one request after another:
	// a constant and a part per prompt token.
	ServiceMS      float64 `yaml:"service_ms"`
	ServiceTokenMS float64 `yaml:"service_token_ms"`
	// DelayMS and DelayTokenMS pass without occupying it.
	DelayMS      float64 `yaml:"delay_ms"`
	DelayTokenMS float64 `yaml:"delay_token_ms"`
	// StreamMS of the process's time goes into every token it sends to a client.
	// What is left serves requests.
	StreamMS float64 `yaml:"stream_ms"`
	// LeastShare is what streaming leaves of the process's time at the least, in
	// (0, 1]: a process that is overwhelmed still takes turns.
	LeastShare float64 `yaml:"least_share"`
	// EgressMS passes between a token's step and the client's reading it.
	EgressMS float64 `yaml:"egress_ms"`
}

// service is how long a prompt of so many tokens occupies the front end while
// the engine brings out rate tokens per second.
func (f *FrontEnd) service(tokens, rate float64) time.Duration {
	share := max(f.LeastShare, 1-rate*f.StreamMS/1e3)
	return millis((f.ServiceMS + f.ServiceTokenMS*tokens) / share)
}

// delay is how long it takes beyond that.
func (f *FrontEnd) delay(tokens float64) time.Duration {
	return millis(f.DelayMS + f.DelayTokenMS*tokens)
}

// Output says how long answers are.
type Output struct {
	// EarlyShares is the share of answers that stop before max_tokens, by turn;
	// the last entry stands for later turns.
	EarlyShares []float64 `yaml:"early_shares,omitempty"`
	// EarlyTokens is the measured lengths of such answers; one is drawn, scaled
	// if max_tokens is not EarlyOf.
	EarlyTokens []int `yaml:"early_tokens,omitempty"`
	EarlyOf     int   `yaml:"early_of,omitempty"`
}

// RouterSpec is what the router knows of the fleet and what it costs.
type RouterSpec struct {
	BeliefTTL     time.Duration `yaml:"belief_ttl"`
	BeliefBlocks  int           `yaml:"belief_blocks"`
	BytesPerToken float64       `yaml:"bytes_per_token"` // of the rendered prompt
	OverheadMS    float64       `yaml:"overhead_ms"`     // received to dispatched
	// TokenizeMS is what a policy that needs tokens waits for the engine's
	// tokenizer: a median, with a part per prompt token.
	TokenizeMS      float64 `yaml:"tokenize_ms"`
	TokenizeTokenMS float64 `yaml:"tokenize_token_ms"`
	// EventDelayMS is how late a step's KV events reach the router.
	EventDelayMS float64 `yaml:"event_delay_ms"`
	// ReportEvery is how often engine counters are read; 0 never. ReportWindow is
	// the moving window of the hit rate.
	ReportEvery  time.Duration `yaml:"report_every"`
	ReportWindow time.Duration `yaml:"report_window"`
}

// Health is how the router learns of membership.
type Health struct {
	Interval time.Duration `yaml:"interval"` // between checks of a replica
	Failures int           `yaml:"failures"` // in a row that eject
	Passes   int           `yaml:"passes"`   // in a row that readmit
	StartUp  time.Duration `yaml:"start_up"` // of an engine process
}

// SLOSpec is the service level cells are judged by.
type SLOSpec struct {
	TTFTMS float64 `yaml:"ttft_ms"`
	ITLMS  float64 `yaml:"itl_ms"` // of a request's median gap
}

// Thermal is the heat of the chassis.
type Thermal struct {
	AmbientC float64 `yaml:"ambient_c"`
	// Numbers are what the host's telemetry calls the cards; absent, 0, 1, 2 and so
	// on. Nothing in a simulation depends on them.
	Numbers  []int            `yaml:"numbers,omitempty"`
	Cards    []thermal.Params `yaml:"cards"`
	Coupling [][]float64      `yaml:"coupling_k_per_w"` // [i][j]: K at card i per W of card j
	// Warm starts every card at the temperatures it has after this much full
	// load; 0 starts from rest.
	Warm time.Duration `yaml:"warm"`
	// MeasuredBusy is the share of the time that steps were under way when the
	// cards' heat was measured, in (0, 1]: what the cards' constants call fully
	// busy.
	MeasuredBusy float64 `yaml:"measured_busy"`
}

// Limit is the SLO as traces judge it.
func (s SLOSpec) Limit() traces.SLO {
	return traces.SLO{TTFT: millis(s.TTFTMS), ITL: millis(s.ITLMS)}
}

// Bounds is what the fleet file gives the policies.
func (f *Fleet) Bounds() policies.Bounds {
	return policies.Bounds{
		BeliefTTL: f.Router.BeliefTTL, BeliefBlocks: f.Router.BeliefBlocks,
		BytesPerToken: f.Router.BytesPerToken, BlockSize: f.Engine.BlockSize,
	}
}

// EngineText is the engine's settings in words, as traces record them.
func (f *Fleet) EngineText() string {
	e := &f.Engine
	return fmt.Sprintf("block_size=%d,num_gpu_blocks=%d,max_num_batched_tokens=%d,max_num_seqs=%d,max_model_len=%d",
		e.BlockSize, e.Blocks, e.TokenBudget, e.MaxSeqs, f.MaxModelLen)
}

// KVTokens is the fleet's KV capacity as the engines announce it
// (num_gpu_blocks, the null block included), in tokens: what a working set
// ratio is a ratio of.
func (f *Fleet) KVTokens() int {
	return len(f.Replicas) * f.Engine.Blocks * f.Engine.BlockSize
}

// has says whether the fleet has a replica of that name.
func (f *Fleet) has(name string) bool {
	return slices.ContainsFunc(f.Replicas, func(r Replica) bool { return r.Name == name })
}

// Validate reports every fault at once.
func (f *Fleet) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	within := func(section string, err error) {
		if err != nil {
			fault("%s: %w", section, err)
		}
	}
	if f.Name == "" {
		fault("name: missing")
	}
	if len(f.Replicas) == 0 {
		fault("replicas: none, want at least one")
	}
	seen := map[string]bool{}
	for i, r := range f.Replicas {
		if r.Name == "" || seen[r.Name] {
			fault("replicas[%d].name: got %q, want a name of its own", i, r.Name)
		}
		seen[r.Name] = true
		if f.Thermal != nil && (r.GPU < 0 || r.GPU >= len(f.Thermal.Cards)) {
			fault("replicas[%d].gpu: got %d, want 0 to %d, a card of thermal.cards", i, r.GPU, len(f.Thermal.Cards)-1)
		}
	}
	if f.MaxModelLen < 2 {
		fault("max_model_len: got %d, want at least 2", f.MaxModelLen)
	}
	within("engine", f.Engine.Validate())
	if n := f.Engine.LockstepRanks; n > 1 && len(f.Replicas)%n != 0 {
		fault("engine.lockstep_ranks: got %d, which does not divide the %d replicas", n, len(f.Replicas))
	}
	within("step", f.Step.Validate())
	within("tokenizer", f.Tokenizer.Validate())
	within("output", f.Output.validate())
	for _, v := range []struct {
		name string
		v    float64
	}{
		{"front_end.service_ms", f.FrontEnd.ServiceMS}, {"front_end.service_token_ms", f.FrontEnd.ServiceTokenMS},
		{"front_end.delay_ms", f.FrontEnd.DelayMS}, {"front_end.delay_token_ms", f.FrontEnd.DelayTokenMS},
		{"front_end.stream_ms", f.FrontEnd.StreamMS}, {"front_end.egress_ms", f.FrontEnd.EgressMS}, {"router.overhead_ms", f.Router.OverheadMS},
		{"router.tokenize_ms", f.Router.TokenizeMS}, {"router.tokenize_token_ms", f.Router.TokenizeTokenMS},
		{"router.event_delay_ms", f.Router.EventDelayMS}, {"slo.ttft_ms", f.SLO.TTFTMS}, {"slo.itl_ms", f.SLO.ITLMS},
	} {
		if !(v.v >= 0) || v.v > 1e9 {
			fault("%s: got %v, want zero or more", v.name, v.v)
		}
	}
	if f.FrontEnd.StreamMS > 0 && !(f.FrontEnd.LeastShare > 0 && f.FrontEnd.LeastShare <= 1) {
		fault("front_end.least_share: got %v, want over 0 and up to 1", f.FrontEnd.LeastShare)
	}
	if f.SLO.TTFTMS == 0 || f.SLO.ITLMS == 0 {
		fault("slo: got ttft_ms %v and itl_ms %v, want both: without them every answer would count as good", f.SLO.TTFTMS, f.SLO.ITLMS)
	}
	if f.Router.BeliefTTL <= 0 || f.Router.BeliefBlocks < 1 {
		fault("router: got belief_ttl %v and belief_blocks %d, want a positive time and at least 1 block", f.Router.BeliefTTL, f.Router.BeliefBlocks)
	}
	if !(f.Router.BytesPerToken > 0) || f.Router.BytesPerToken > 1e6 {
		fault("router.bytes_per_token: got %v, want a positive number", f.Router.BytesPerToken)
	}
	if f.Health.Interval <= 0 || f.Health.Failures < 1 || f.Health.Passes < 1 || f.Health.StartUp < 0 {
		fault("health: want a positive interval, at least 1 failure and 1 pass, and a start-up of zero or more")
	}
	if f.Router.ReportEvery < 0 || f.Router.ReportEvery > 0 && f.Router.ReportWindow < f.Router.ReportEvery {
		fault("router.report_window: got %v, want at least report_every (%v)", f.Router.ReportWindow, f.Router.ReportEvery)
	}
	if f.Thermal != nil {
		f.validateThermal(fault)
	}
	if f.Draws != nil {
		f.validateDraws(fault)
	}
	return errors.Join(faults...)
}

func (f *Fleet) validateThermal(fault func(string, ...any)) {
	t := f.Thermal
	if _, err := thermal.New(t.Cards, t.Coupling, t.AmbientC); err != nil {
		fault("%w", err)
	}
	if len(t.Numbers) > 0 && len(t.Numbers) != len(t.Cards) {
		fault("thermal.numbers: got %d, want one for each of %d cards", len(t.Numbers), len(t.Cards))
	}
	if t.Warm < 0 {
		fault("thermal.warm: got %v, want zero or more", t.Warm)
	}
	if !(t.MeasuredBusy > 0 && t.MeasuredBusy <= 1) {
		fault("thermal.measured_busy: got %v, want over 0 and up to 1", t.MeasuredBusy)
	}
	type card struct{ chassis, gpu int }
	on := map[card]string{}
	for i, r := range f.Replicas {
		k := card{r.chassis, r.GPU}
		if other, taken := on[k]; taken {
			fault("replicas[%d].gpu: got %d, which is %s's", i, r.GPU, other)
		}
		on[k] = r.Name
	}
}

func (o Output) validate() error {
	var faults []error
	for i, s := range o.EarlyShares {
		if !(s >= 0 && s <= 1) {
			faults = append(faults, fmt.Errorf("early_shares[%d]: got %v, want 0 to 1", i, s))
		}
	}
	if len(o.EarlyShares) > 0 && (len(o.EarlyTokens) == 0 || o.EarlyOf < 2) {
		faults = append(faults, errors.New("early_tokens and early_of: missing, want the lengths that early answers have and of which max_tokens"))
	}
	for i, n := range o.EarlyTokens {
		if n < 1 || n >= o.EarlyOf {
			faults = append(faults, fmt.Errorf("early_tokens[%d]: got %d, want 1 to %d", i, n, o.EarlyOf-1))
		}
	}
	return errors.Join(faults...)
}

// Scale returns the fleet with n replicas like its own, which repeat in order. A
// fleet larger than the file's is several chassis of it side by side, and its
// replicas are renamed replica-0 to replica-(n-1). KV capacity scales; what the
// file says of the router's belief bounds scales with it.
func (f *Fleet) Scale(n int) *Fleet {
	scaled := *f
	scaled.Replicas = make([]Replica, n)
	for i := range scaled.Replicas {
		r := f.Replicas[i%len(f.Replicas)]
		r.chassis = i / len(f.Replicas)
		if n > len(f.Replicas) {
			r.Name = fmt.Sprintf("replica-%d", i)
		}
		scaled.Replicas[i] = r
	}
	scaled.Router.BeliefBlocks = max(1, f.Router.BeliefBlocks*n/len(f.Replicas))
	return &scaled
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
