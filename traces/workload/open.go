package workload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"kvfleet/traces"
)

// An OpenPlan says how an open loop sends a multi-turn workload.
type OpenPlan struct {
	Epoch    int           // whose bytes are sent
	Rate     float64       // requests per second; required
	Arrivals string        // even (or empty), poisson, gamma
	Shape    float64       // of gamma arrivals
	Think    time.Duration // between a conversation's turns; 0 is 5 s
	Window   time.Duration // arrivals due before it are planned; required

	Tokenizer Tokenizer // of the fleet; required
	BlockSize int       // engine tokens a block; 0 is 16

	// Stop says how many tokens the answer to a slot's turn has, 1 or more; nil
	// is always max_tokens. It is called once a row, in order.
	Stop func(slot, visit, turn int) int
}

const defaultThink = 5 * time.Second

func (p OpenPlan) withDefaults() OpenPlan {
	if p.Think == 0 {
		p.Think = defaultThink
	}
	orDefault(&p.BlockSize, 16)
	return p
}

// Validate reports every fault at once.
func (p OpenPlan) Validate() error {
	p = p.withDefaults()
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("workload: "+format, args...))
	}
	if _, err := NewArrivals(p.Arrivals, p.Rate, p.Shape, nil); err != nil {
		faults = append(faults, err)
	}
	if p.Think < 0 {
		fault("think time: got %v, want zero (for %v) or more", p.Think, defaultThink)
	} else if slots := p.Rate * p.Think.Seconds(); slots > maxSessions {
		fault("think time: got %v at %v requests per second, which is %.4g conversations at once, want at most %d", p.Think, p.Rate, slots, maxSessions)
	}
	if p.Window <= 0 {
		fault("window: got %v, want a positive length", p.Window)
	}
	if err := p.Tokenizer.Validate(); err != nil {
		fault("tokenizer: %w", err)
	}
	if p.BlockSize < 1 {
		fault("block size: got %d, want at least 1", p.BlockSize)
	}
	return errors.Join(faults...)
}

// Warnings says what about a plan makes its conversations other than asked for:
// the last visits cut short, or turns that are not Think apart. turns is the
// workload's.
func (p OpenPlan) Warnings(turns int) []string {
	p = p.withDefaults()
	var out []string
	if period := time.Duration(turns) * p.Think; period > 0 && p.Window%period != 0 {
		out = append(out, fmt.Sprintf("window of %v is %.4g visits of %v (%d turns, %v apart): the last are cut short, so early turns are over-represented",
			p.Window, p.Window.Seconds()/period.Seconds(), period, turns, p.Think))
	}
	slots := Slots(p.Rate, p.Think)
	if want := p.Rate * p.Think.Seconds(); math.Abs(want-float64(slots)) > 1e-9*want {
		apart := time.Duration(float64(slots) / p.Rate * 1e9).Round(time.Millisecond)
		out = append(out, fmt.Sprintf("%v requests per second with %v of think time is %.4g conversations at once: %d are held, with turns %v apart",
			p.Rate, p.Think, want, slots, apart))
	}
	return out
}

// OpenRows is the workload as an open loop sends it: rows that have not been run,
// in order of their due times, which depend on the workload's seed and the epoch.
// Every pass over the source gives the same rows. A row's MaxTokens is how many
// tokens its answer has, as in converted traces. The faults of an invalid
// workload or plan are the error of the first row. Blocks are shared between rows
// and must not be written to.
//
// There is no such source for a closed loop: when its rows are sent depends on
// the answers, so they come to be only in a run.
func (m MultiTurn) OpenRows(plan OpenPlan) traces.Source {
	return func(yield func(traces.Row, error) bool) {
		m, err := m.Resolve()
		if err := errors.Join(err, plan.Validate()); err != nil {
			yield(traces.Row{}, err)
			return
		}
		p := plan.withDefaults()
		arrivals, err := NewArrivals(p.Arrivals, p.Rate, p.Shape, m.Seed.Stream("arrivals", p.Epoch))
		if err != nil {
			panic(err) // Validate accepted it
		}
		content := m.Content(p.Epoch, p.Tokenizer, p.BlockSize)
		dealer := m.Draws().Dealer(p.Epoch, Slots(p.Rate, p.Think))
		for k := 0; ; k++ {
			at := arrivals.Next()
			if at >= p.Window {
				return
			}
			turn := dealer.Next()
			if !yield(m.openRow(&p, k, at, turn, content.Prompt(turn.Session, turn.Turn)), nil) {
				return
			}
		}
	}
}

func (m *MultiTurn) openRow(p *OpenPlan, k int, at time.Duration, turn Conversation, prompt *Prompt) traces.Row {
	r := traces.NewRow()
	r.RequestID = "open-" + strconv.Itoa(p.Epoch) + "-" + strconv.Itoa(k)
	r.Session, r.SessionSource = prompt.Session, traces.SessionSupplied
	r.Turn, r.VirtualUser, r.Epoch = int32(turn.Turn), int32(turn.User), int64(p.Epoch)
	r.ScheduledAt = traces.At(at)
	r.PromptBytes, r.PromptTokens = int64(prompt.Bytes), int64(prompt.Tokens)
	r.BlockSize, r.Blocks = int32(p.BlockSize), prompt.Blocks
	r.SystemPrompt, r.Branch = prompt.System, prompt.Branch
	r.MaxTokens = int64(m.OutputTokens)
	if p.Stop != nil {
		r.MaxTokens = int64(p.Stop(turn.User, turn.Visit, turn.Turn))
	}
	return r
}
