package convert

import (
	"math"
	"slices"

	"kvfleet/traces"
)

// shaper applies the options to rows on their way to the consumer.
type shaper struct {
	*pass
	yield   func(traces.Row, error) bool
	sorted  bool  // the first row is the earliest
	base    int64 // what times count from
	started bool
	last    int64
	held    []traces.Row // rows of one arrival time, when spreading
}

// wants says whether the row is of a session asked for.
func (o *Options) wants(r *traces.Row) bool {
	return len(o.Sessions) == 0 || slices.Contains(o.Sessions, r.Session)
}

func (s *shaper) take(r *traces.Row) error {
	if !s.opts.wants(r) {
		s.report.Filtered++
		return nil
	}
	at := r.ScheduledAt
	if at != traces.None {
		switch {
		case !s.started && s.sorted:
			s.base = at
		case s.started && at < s.last:
			s.report.OutOfOrder++
		}
		s.started, s.last = true, at
	}
	for _, time := range [...]*int64{
		&r.ScheduledAt, &r.SentAt, &r.ReceivedAt, &r.DecidedAt, &r.DispatchedAt,
		&r.FirstByteAt, &r.FirstTokenAt, &r.LastTokenAt, &r.EndedAt,
	} {
		if *time != traces.None {
			*time -= s.base
		}
	}
	if s.opts.SpreadBin > 0 && at != traces.None {
		if len(s.held) > 0 && s.held[0].ScheduledAt != r.ScheduledAt {
			if err := s.flush(); err != nil {
				return err
			}
		}
		s.held = append(s.held, *r)
		return nil
	}
	return s.hand(r)
}

func before(at int64) bool { return at != traces.None && at < 0 }

// flush spreads the held rows over the bin.
func (s *shaper) flush() error {
	for i := range s.held {
		s.held[i].ScheduledAt += int64(s.opts.SpreadBin) * int64(i) / int64(len(s.held))
		if err := s.hand(&s.held[i]); err != nil {
			return err
		}
	}
	s.held = s.held[:0]
	return nil
}

func (s *shaper) hand(r *traces.Row) error {
	if scale := s.opts.RateScale; scale != 0 && r.ScheduledAt != traces.None {
		r.ScheduledAt = int64(math.Round(float64(r.ScheduledAt) / scale))
	}
	if before(r.ScheduledAt) || before(r.SentAt) {
		s.report.BeforeStart++
	}
	s.report.Yielded++
	if !s.yield(*r, nil) || s.report.Yielded == s.opts.Limit {
		return errStop
	}
	return nil
}
