package sim

import (
	"fmt"
	"time"

	"kvfleet/traces"
	"kvfleet/traces/workload"
)

// A chat is what both drivers of the multi-turn workload need: prompts, and how
// long their answers will be.
type chat struct {
	c       *cluster
	content *workload.Content
	draws   *workload.Draws
	epoch   int
	max     int
	stop    func(user, visit, turn int) int
}

func newChat(c *cluster) *chat {
	w := c.cfg.Workload
	return &chat{
		c: c, content: c.cfg.Content, draws: c.cfg.Draws,
		epoch: c.cfg.Epoch, max: w.OutputTokens,
		stop: c.fleet.Answers(w.Seed, c.cfg.Epoch, w.OutputTokens),
	}
}

// prompt is what a conversation sends next.
func (h *chat) prompt(s workload.Conversation) Prompt {
	p := h.content.Prompt(s.Session, s.Turn)
	return Prompt{
		Session: p.Session, Source: traces.SessionSupplied, Turn: s.Turn, User: s.User,
		Bytes: p.Bytes, Tokens: p.Tokens, Prefix: p.Prefix, Blocks: p.Blocks,
		Max: h.max, Stop: h.stop(s.User, s.Visit, s.Turn), System: p.System, Branch: p.Branch,
		ScheduledAt: traces.None,
	}
}

// A closed driver holds a number of users; each sends its next turn when its
// last answer has ended, until the window closes.
type closed struct {
	*chat
	users []workload.Conversation
}

func (d *closed) start(c *cluster) error {
	d.users = make([]workload.Conversation, c.cfg.Users)
	for u := range d.users {
		d.users[u] = d.draws.Conversation(u)
		d.next(u)
	}
	return nil
}

func (d *closed) next(u int) {
	p := d.prompt(d.users[u])
	p.driverCookie = int64(u)
	d.c.send(p)
}

// retryAfter is how long a client stays away that was refused, because there is
// no replica or its prompt is too long. At once would be for ever: being refused
// takes no time.
const retryAfter = time.Second

func (d *closed) ended(cookie int64, now time.Duration, refused bool) {
	if refused {
		now += retryAfter
	}
	if now >= d.c.cfg.Window {
		return
	}
	d.draws.Advance(&d.users[cookie])
	// A client takes no time to read; the next turn leaves in an event of its own
	// so that a run without replicas does not recurse.
	d.c.loop.At(now, rankArrive, (*closedTurns)(d), cookie)
}

// more is false: users send until the window closes, known by the clock.
func (d *closed) more() bool { return false }

type closedTurns closed

func (t *closedTurns) Fire(_ time.Duration, u int64) { (*closed)(t).next(int(u)) }

// An open driver sends on a schedule, whatever the answers do.
type open struct {
	*chat
	arrivals workload.Arrivals
	dealer   *workload.Dealer
}

func (d *open) start(c *cluster) error {
	arrivals, err := workload.NewArrivals(c.cfg.Arrivals, c.cfg.Rate, c.cfg.Shape, c.cfg.Seed.Stream("arrivals", c.cfg.Epoch))
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	d.arrivals = arrivals
	d.dealer = d.draws.Dealer(d.epoch, workload.Slots(c.cfg.Rate, c.cfg.Think))
	d.due()
	return nil
}

// due schedules the next arrival, if it falls within the window.
func (d *open) due() {
	if at := d.arrivals.Next(); at < d.c.cfg.Window {
		d.c.loop.At(at, rankArrive, d, 0)
	}
}

func (d *open) Fire(at time.Duration, _ int64) {
	p := d.prompt(d.dealer.Next())
	p.ScheduledAt = traces.At(at)
	d.due()
	d.c.send(p)
}

// more is false: what the window has yet to bring is known by the clock.
func (d *open) more() bool { return false }

func (d *open) ended(int64, time.Duration, bool) {}
