package convert

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kvfleet/traces"
)

// A Trace is an opened trace of a recognised format.
type Trace struct {
	Path   string
	Format Format
	// Meta says where the rows come from and what they do not hold. Its Workload
	// names every option that changes a row.
	Meta traces.Meta

	opts   Options
	report Report
}

// Open recognises the file or directory at path and checks the options against
// it. Nothing stays open between passes.
func Open(path string, o Options) (*Trace, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	format, err := Detect(path)
	if err != nil {
		return nil, err
	}
	return OpenAs(path, format, o)
}

// OpenAs opens a trace as a given format.
func OpenAs(path string, f Format, o Options) (*Trace, error) {
	if err := errors.Join(o.validate(), o.validateFor(f)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t := &Trace{Path: path, Format: f, opts: o}
	t.Meta = traces.Meta{Clock: traces.ClockRecorded, Evidence: evidence(f)}
	if f == Arrow {
		r, err := traces.Open(path)
		if err != nil {
			return nil, err
		}
		t.Meta = r.Meta()
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	if f != Arrow || o.changes() {
		t.Meta.Workload = t.workload()
	}
	return t, nil
}

// changes reports whether the options make the rows others than the source's.
func (o *Options) changes() bool {
	return o.Limit > 0 || len(o.Sessions) > 0 || o.RateScale != 0 || o.SpreadBin != 0
}

// workload names the trace by everything that changes a row.
func (t *Trace) workload() string {
	o := &t.opts
	parts := []string{"format=" + t.Format.String(), "file=" + filepath.Base(t.Path)}
	if info, err := os.Stat(t.Path); err == nil && !info.IsDir() {
		parts = append(parts, fmt.Sprint("bytes=", info.Size()))
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, option := range []struct {
		name, value string
		set         bool
	}{
		{"limit", fmt.Sprint(o.Limit), o.Limit > 0},
		{"rate_scale", number(o.RateScale), o.RateScale != 0},
		{"rate", number(o.Rate), o.Rate != 0},
		{"spread_bin", o.SpreadBin.String(), o.SpreadBin != 0},
		{"stagger", o.Stagger.String(), o.Stagger != 0},
		{"sessions", strings.Join(o.Sessions, "+"), len(o.Sessions) > 0},
	} {
		if option.set {
			parts = append(parts, option.name+"="+option.value)
		}
	}
	return "trace(" + strings.Join(parts, ",") + ")"
}

// Report is what the last pass over Rows did, or has done so far.
func (t *Trace) Report() Report { return t.report }

// Rows is a pass over the rows, in file order; Weka sessions are merged in order
// of arrival. Each pass reads the trace again and resets the Report. A trace
// that yields nothing is an error.
func (t *Trace) Rows() traces.Source {
	return func(yield func(traces.Row, error) bool) {
		t.report = Report{}
		p := &pass{opts: &t.opts, file: t.Path, report: &t.report}
		s := &shaper{pass: p, keepTimes: t.Format == Arrow || t.Format == KvrouteRows || t.Format == KvrouteProbe, yield: yield}
		p.emit = s.take
		err := t.read(p)
		if err == nil {
			err = s.flush()
		}
		if err == nil && t.report.Yielded == 0 {
			err = fmt.Errorf("convert: %s: no rows", t.Path)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(traces.Row{}, err)
		}
	}
}

func (t *Trace) read(p *pass) error {
	switch t.Format {
	case Arrow:
		return readArrow(p)
	case Weka:
		return readWeka(p)
	case Mooncake:
		return readLines(p, mooncakeRow)
	case RAGPulse:
		return readLines(p, ragpulseRow())
	case Azure:
		return readCSV(p, azureColumns, azureRow)
	case Vidur:
		return readCSV(p, vidurColumns, vidurRow)
	case VidurLengths:
		return readCSV(p, vidurColumns[1:], vidurLengthsRow())
	case KvrouteRows:
		return readCSV(p, kvrouteRowColumns, kvrouteRow)
	case KvrouteProbe:
		return readCSV(p, kvrouteProbeColumns, kvrouteProbeRow)
	}
	return fmt.Errorf("convert: %s: cannot read format %s", t.Path, t.Format)
}

func readArrow(p *pass) (err error) {
	r, err := traces.Open(p.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for row, err := range r.Rows() {
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		if row.Outcome != traces.Pending && (p.opts.RateScale != 0 || p.opts.SpreadBin != 0) {
			return fmt.Errorf("convert: %s: request %s has run; its times cannot be spread or scaled", p.file, row.RequestID)
		}
		if err := p.emit(&row); err != nil {
			return err
		}
	}
	return nil
}

// evidence is what a format's rows do not hold.
func evidence(f Format) []string {
	switch f {
	case Azure, Vidur, VidurLengths:
		all := []string{"no prefix identity in the source: every prompt is distinct, no hit rate may be claimed"}
		if f == VidurLengths {
			all = append(all, "no arrival times in the source: even arrivals at the given rate")
		}
		return all
	case Mooncake:
		return []string{"no sessions in the source", "512-token blocks: a shared prefix shorter than a block is not seen"}
	case RAGPulse:
		return []string{fmt.Sprintf("component ids are taken as %d-token pieces in order; real lengths differ, so shared prefixes are approximate", ragpulseBlock)}
	case Weka:
		return []string{
			"hash ids mean something within one session only: sessions share no prefix",
			"arrivals are as recorded, whatever the fleet's answers take; tails of under 64 tokens have no id",
		}
	case KvrouteRows, KvrouteProbe:
		return []string{"finished rows; the source does not state block ids or limits on output"}
	}
	return nil
}

// shaper applies the options to rows on their way to the consumer.
type shaper struct {
	*pass
	keepTimes bool
	yield     func(traces.Row, error) bool
	started   bool
	first     int64
	last      int64
	held      []traces.Row // rows of one arrival time, when spreading
}

func (s *shaper) take(r *traces.Row) error {
	if len(s.opts.Sessions) > 0 && !slices.Contains(s.opts.Sessions, r.Session) {
		s.report.Filtered++
		return nil
	}
	at := r.ScheduledAt
	if at != traces.None {
		if !s.started {
			s.started, s.first, s.last = true, at, at
		}
		if at < s.last {
			s.report.OutOfOrder++
		}
		s.last = at
		if !s.keepTimes {
			r.ScheduledAt = at - s.first
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
	s.report.Yielded++
	if !s.yield(*r, nil) || s.report.Yielded == s.opts.Limit {
		return errStop
	}
	return nil
}

// Sorted collects a source and yields its rows in order of arrival; rows of one
// arrival time, and rows without one, which come last, keep their order. It
// holds the whole trace in memory.
func Sorted(rows traces.Source) traces.Source {
	return func(yield func(traces.Row, error) bool) {
		var all []traces.Row
		for r, err := range rows {
			if err != nil {
				yield(traces.Row{}, err)
				return
			}
			all = append(all, r)
		}
		key := func(i int) int64 {
			if all[i].ScheduledAt == traces.None {
				return math.MaxInt64
			}
			return all[i].ScheduledAt
		}
		sort.SliceStable(all, func(i, j int) bool { return key(i) < key(j) })
		for i := range all {
			if !yield(all[i], nil) {
				return
			}
		}
	}
}
