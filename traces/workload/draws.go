package workload

import (
	"math"
	"slices"
)

// A Draws picks sessions by Zipf's law: session i has weight 1/(i+1)^skew.
// It is not changed by use, so drivers may share one.
type Draws struct {
	m          MultiTurn
	cumulative []float64
}

// Draws builds the exact cumulative table of a resolved workload's pool.
func (m MultiTurn) Draws() *Draws {
	d := &Draws{m: m, cumulative: make([]float64, m.Sessions)}
	total := 0.0
	for i := range d.cumulative {
		total += math.Pow(float64(i+1), -m.Skew)
		d.cumulative[i] = total
	}
	for i := range d.cumulative {
		d.cumulative[i] /= total
	}
	return d
}

// Session is the session of a user's v-th visit. It depends on (seed, user,
// visit) alone, so every epoch offers the same shape of load.
func (d *Draws) Session(user, visit int) int {
	i, _ := slices.BinarySearch(d.cumulative, d.m.visit(user, visit))
	return min(i, len(d.cumulative)-1)
}

// A Conversation is where a user of a closed loop, or a slot of an open one,
// stands: the turn it sends next.
type Conversation struct {
	User    int // the user or slot
	Visit   int
	Session int // of this visit
	Turn    int
}

// Conversation is a user's first turn of its first visit.
func (d *Draws) Conversation(user int) Conversation {
	return Conversation{User: user, Session: d.Session(user, 0)}
}

// Advance moves a conversation to its next turn, or, after the last one, to the
// first turn of the user's next visit.
func (d *Draws) Advance(c *Conversation) {
	if c.Turn++; c.Turn < d.m.Turns {
		return
	}
	c.Turn = 0
	c.Visit++
	c.Session = d.Session(c.User, c.Visit)
}
