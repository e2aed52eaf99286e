package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
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

	opts     Options
	report   Report
	surveyed bool
	earliest int64  // time due or sent in the source, once surveyed; None if none is known
	clocks   clocks // of a trace that has two, once surveyed
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
	if err := errors.Join(o.validate(), o.validateFor(path, f)); err != nil {
		return nil, err
	}
	dir, err := kind(path)
	switch {
	case f == Arrow && errors.Is(err, fs.ErrNotExist):
		// There may be one not yet finished, under another name.
	case err != nil:
		return nil, err
	case dir && f != Weka:
		return nil, fmt.Errorf("%s: is a directory, want a %s file", path, f)
	}
	t := &Trace{Path: path, Format: f, opts: o}
	t.Meta = traces.Meta{Clock: traces.ClockRecorded, Evidence: evidence(f, o.Rate)}
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

// NeedTimes is an error if the rows have no arrival times, for a consumer that
// cannot do without: it says how to give them some.
func (t *Trace) NeedTimes() error {
	if t.Format == VidurLengths && t.opts.Rate == 0 {
		return fmt.Errorf("%s: %s traces have no arrival times; give a rate", t.Path, t.Format)
	}
	return nil
}

// finished says that the rows of the format have run.
func (f Format) finished() bool {
	switch f {
	case KvrouteRows, KvrouteProbe, Blis, LLMServingSim, VLLMCPU:
		return true
	}
	return false
}

// twoClocks says that the format's times are of two clocks.
func (f Format) twoClocks() bool { return f == Blis || f == LLMServingSim }

// Rows is a pass over the rows, in file order; Weka sessions are merged in order
// of arrival. Times count from the earliest arrival, wherever in the file it is:
// the first call reads the trace once more to find it, and once more again if its
// times are of two clocks. Finished rows, those of kvroute, blis, LLMServingSim
// and vllm-cpu, keep their times unless some are negative, and are then all
// shifted alike. Rows of kvfleet's own traces are kept as they are. Each pass reads the
// trace again and resets the Report. A trace that yields nothing is an error.
func (t *Trace) Rows() traces.Source {
	return func(yield func(traces.Row, error) bool) {
		t.survey()
		t.report = Report{}
		p := &pass{opts: &t.opts, file: t.Path, report: &t.report, clocks: &t.clocks}
		s := &shaper{pass: p, yield: yield, sorted: t.Format == Weka}
		switch {
		case t.earliest == traces.None:
		case t.Format.finished():
			s.base = min(t.earliest, 0)
			t.report.Shifted = -s.base
		default:
			s.base = t.earliest
		}
		switch t.Format {
		case Azure:
			t.report.Origin = s.base
		case Blis:
			t.report.Origin = t.clocks.ahead
		case LLMServingSim:
			t.report.Origin = t.clocks.first
		}
		p.emit = s.take
		err := t.read(p)
		if err == nil {
			err = s.flush()
		}
		if err == nil && t.report.Yielded == 0 {
			err = fmt.Errorf("%s: no rows", t.Path)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(traces.Row{}, err)
		}
	}
}

// survey finds the earliest arrival among the rows that a pass yields. It ends
// where the pass will end; if that is at an error, the pass reports it.
func (t *Trace) survey() {
	if t.surveyed {
		return
	}
	t.surveyed, t.earliest = true, traces.None
	if t.Format == Arrow || t.Format == VidurLengths || t.Format == Weka {
		return
	}
	if t.Format.twoClocks() {
		// The clocks are the whole file's, whatever of it is taken.
		_ = t.read(&pass{
			opts: &Options{MaxErrors: -1}, file: t.Path, report: &Report{}, clocks: &t.clocks,
			emit: func(*traces.Row) error { return nil },
		})
	}
	p := &pass{opts: &t.opts, file: t.Path, report: &Report{}, clocks: &t.clocks}
	p.emit = func(r *traces.Row) error {
		if !t.opts.wants(r) {
			return nil
		}
		for _, at := range [...]int64{r.ScheduledAt, r.SentAt} {
			if at != traces.None && (t.earliest == traces.None || at < t.earliest) {
				t.earliest = at
			}
		}
		if p.report.Yielded++; p.report.Yielded == t.opts.Limit {
			return errStop
		}
		return nil
	}
	_ = t.read(p)
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
	case Blis:
		return readCSV(p, blisColumns, blisRow, blisOptional...)
	case LLMServingSim:
		return readLines(p, llmservingsimRow)
	case VLLMCPU:
		return readCSV(p, vllmCPUColumns, vllmCPURow)
	}
	return fmt.Errorf("%s: cannot read format %s", t.Path, t.Format)
}

func readArrow(p *pass) (err error) {
	r, err := traces.Open(p.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for row, err := range r.Rows() {
		if err != nil {
			return err
		}
		if row.Outcome != traces.Pending && (p.opts.RateScale != 0 || p.opts.SpreadBin != 0) {
			return fmt.Errorf("%s: request %s has run; its times cannot be spread or scaled", p.file, row.RequestID)
		}
		if err := p.emit(&row); err != nil {
			return err
		}
	}
	return nil
}

// evidence is what a format's rows do not hold.
func evidence(f Format, rate float64) []string {
	switch f {
	case Azure, Vidur, VidurLengths:
		all := []string{"no prefix identity in the source: every prompt is distinct, no hit rate may be claimed"}
		switch {
		case f == VidurLengths && rate == 0:
			all = append(all, "no arrival times in the source")
		case f == VidurLengths:
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
	case Blis:
		return []string{
			"finished rows; no prefix identity in the source: every prompt is distinct, no hit rate may be claimed, and cached tokens are not stated",
			"planned arrivals are of the run's clock, what was measured is of the client's wall clock: they are laid over each other so that no request is sent before it is due and one is sent just then",
			"the first token is taken to come with the first chunk, which holds the role only; the first text follows within microseconds",
			"the time between tokens is that from first to last chunk over output_tokens - 1; its median and largest are not stated",
			"prompt_tokens is what the load asked for, engine_prompt_tokens what the server counted; max_tokens is the output of an answered row",
			"tenant, class, model, deadline and finish reason are not kept",
		}
	case LLMServingSim:
		return []string{
			"finished rows; no prefix identity in the source: every prompt is distinct, no hit rate may be claimed",
			"arrivals are of the wall clock, what the engine did is of its monotonic clock: they are laid over each other so that no request is queued before it arrives and one is queued just then",
			"the source does not state when requests were due: they are taken to be due when they arrived",
			"times are the engine's, not a client's; the time between tokens is a mean, its median and largest are not stated",
		}
	case VLLMCPU:
		return []string{
			"finished rows; prompts are named pieces, so shared prefixes are exact to the token: ids of 16 tokens, whatever the blocks of the engine, and none for a tail of fewer",
			"only answered requests are in the source",
		}
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
