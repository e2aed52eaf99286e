package des

import "time"

// A Handler is told when an event of its own falls due. What arg means is the
// handler's affair.
type Handler interface {
	Fire(at time.Duration, arg int64)
}

// A Rank orders events of one instant: lower first.
type Rank uint8

type event struct {
	at  time.Duration
	seq uint64 // rank in the top byte, then insertion
	h   Handler
	arg int64
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// A Loop runs events. The zero value is an empty loop at time 0.
type Loop struct {
	now   time.Duration
	seq   uint64
	queue []event // a 4-ary heap
	fired uint64
}

// Now is the time of the event being handled, or of the last one.
func (l *Loop) Now() time.Duration { return l.now }

// Fired counts the events handled so far.
func (l *Loop) Fired() uint64 { return l.fired }

// Len is the number of events waiting.
func (l *Loop) Len() int { return len(l.queue) }

// At schedules an event.
func (l *Loop) At(at time.Duration, rank Rank, h Handler, arg int64) {
	if at < l.now {
		panic("des: scheduling into the past")
	}
	l.seq++
	l.push(event{at: at, seq: uint64(rank)<<56 | l.seq, h: h, arg: arg})
}

// Next returns the time of the earliest waiting event.
func (l *Loop) Next() (time.Duration, bool) {
	if len(l.queue) == 0 {
		return 0, false
	}
	return l.queue[0].at, true
}

// Step handles the earliest event; it reports false when none is waiting.
func (l *Loop) Step() bool {
	if len(l.queue) == 0 {
		return false
	}
	e := l.pop()
	l.now = e.at
	l.fired++
	e.h.Fire(e.at, e.arg)
	return true
}

func (l *Loop) push(e event) {
	l.queue = append(l.queue, e)
	i := len(l.queue) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&l.queue[parent]) {
			break
		}
		l.queue[i] = l.queue[parent]
		i = parent
	}
	l.queue[i] = e
}

func (l *Loop) pop() event {
	q := l.queue
	top := q[0]
	n := len(q) - 1
	e := q[n]
	q[n] = event{}
	q = q[:n]
	l.queue = q
	if n == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, n); c++ {
			if q[c].before(&q[least]) {
				least = c
			}
		}
		if !q[least].before(&e) {
			break
		}
		q[i] = q[least]
		i = least
	}
	q[i] = e
	return top
}
