package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"kvfleet/traces"
	"kvfleet/traces/seed"
	"kvfleet/traces/workload"
)

// A chat is what both drivers of the multi-turn workload need: prompts, and how
// long their answers will be.
type chat struct {
	c       *cluster
	content *workload.Content
	draws   *workload.Draws
	seed    seed.Seed
	epoch   int
	turns   int
	max     int
}

func newChat(c *cluster) *chat {
	w := c.cfg.Workload
	return &chat{
		c: c, content: c.cfg.Content, draws: c.cfg.Draws, seed: w.Seed,
		epoch: c.cfg.Epoch, turns: w.Turns, max: w.OutputTokens,
	}
}

// prompt is what a user's visit sends as its k-th turn.
func (h *chat) prompt(user, visit, session, turn int) Prompt {
	p := h.content.Prompt(session, turn)
	return Prompt{
		Session: p.Session, Source: traces.SessionSupplied, Turn: turn, User: user,
		Bytes: p.Bytes, Tokens: p.Tokens, Prefix: p.Prefix, Blocks: p.Blocks,
		Max: h.max, Stop: h.stop(user, visit, turn), System: p.System, Branch: p.Branch,
		ScheduledAt: traces.None,
	}
}

// stop draws how many tokens the answer has: max_tokens, or fewer for the share
// of answers measured to stop early.
func (h *chat) stop(user, visit, turn int) int {
	o := &h.c.fleet.Output
	if len(o.EarlyShares) == 0 {
		return h.max
	}
	share := o.EarlyShares[min(turn, len(o.EarlyShares)-1)]
	u := seed.Unit(h.seed.Value("stop", h.epoch, user, visit, turn))
	if u >= share {
		return h.max
	}
	n := o.EarlyTokens[int(u/share*float64(len(o.EarlyTokens)))]
	return max(1, n*h.max/o.EarlyOf)
}

// A Closed driver holds a number of users; each sends its next turn when its
// last answer has ended, until the window closes.
type closed struct {
	*chat
	users []closedUser
}

type closedUser struct{ visit, turn, session int }

func (d *closed) start(c *cluster) error {
	d.users = make([]closedUser, c.cfg.Users)
	for u := range d.users {
		d.users[u].session = d.draws.Session(u, 0)
		d.next(u)
	}
	return nil
}

func (d *closed) next(u int) {
	s := &d.users[u]
	p := d.prompt(u, s.visit, s.session, s.turn)
	p.driverCookie = int64(u)
	d.c.send(p)
}

// retryAfter is how long a client stays away that was told there is no replica.
// At once would be for ever: being refused takes no time.
const retryAfter = time.Second

func (d *closed) ended(cookie int64, now time.Duration, refused bool) {
	if refused {
		now += retryAfter
	}
	if now >= d.c.cfg.Window {
		return
	}
	s := &d.users[cookie]
	s.turn++
	if s.turn == d.turns {
		s.turn = 0
		s.visit++
		s.session = d.draws.Session(int(cookie), s.visit)
	}
	// A client takes no time to read; the next turn leaves in an event of its own
	// so that a run without replicas does not recurse.
	d.c.loop.At(now, rankArrive, (*closedTurns)(d), cookie)
}

// more is false: users send until the window closes, known by the clock.
func (d *closed) more() bool { return false }

type closedTurns closed

func (t *closedTurns) Fire(_ time.Duration, u int64) { (*closed)(t).next(int(u)) }

// An open driver sends on a schedule, whatever the answers do. Arrivals are
// dealt over a pool of concurrent conversations, rate times think time of them,
// in an order shuffled anew each round; each conversation's turns come in order.
type open struct {
	*chat
	arrivals workload.Arrivals
	slots    []closedUser
	order    []int
	round    int
	k        int
	rng      *rand.Rand
}

func (d *open) start(c *cluster) error {
	n := max(1, int(math.Round(c.cfg.Rate*c.cfg.Think.Seconds())))
	d.slots = make([]closedUser, n)
	for i := range d.slots {
		d.slots[i].session = d.draws.Session(i, 0)
	}
	d.order = make([]int, n)
	d.rng = c.cfg.Seed.Stream("arrivals", c.cfg.Epoch)
	arrivals, err := workload.NewArrivals(c.cfg.Arrivals, c.cfg.Rate, c.cfg.Shape, d.rng)
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	d.arrivals = arrivals
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
	i := d.k % len(d.slots)
	if i == 0 {
		for j := range d.order {
			d.order[j] = j
		}
		rng := d.seed.Stream("deal", d.epoch, d.round)
		rng.Shuffle(len(d.order), func(a, b int) { d.order[a], d.order[b] = d.order[b], d.order[a] })
		d.round++
	}
	d.k++
	slot := d.order[i]
	s := &d.slots[slot]
	p := d.prompt(slot, s.visit, s.session, s.turn)
	p.ScheduledAt = traces.At(at)
	s.turn++
	if s.turn == d.turns {
		s.turn = 0
		s.visit++
		s.session = d.draws.Session(slot, s.visit)
	}
	d.due()
	d.c.send(p)
}

// more is false: what the window has yet to bring is known by the clock.
func (d *open) more() bool { return false }

func (d *open) ended(int64, time.Duration, bool) {}
