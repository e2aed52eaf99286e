package sim

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"
	"time"

	"kvfleet/sim/des"
	"kvfleet/sim/engine"
	"kvfleet/sim/kvcache"
	"kvfleet/sim/latency"
	"kvfleet/sim/thermal"
)

// The replica is believed because it answers single-replica measurements
// request by request. These tests replay the released rows through one
// simulated replica: arrivals, prompt and cached tokens and output lengths are
// the measured ones, times are the model's.

const measurements = "../../shared/reference/rtx3090"

// A measuredRow is one released row, in milliseconds, and what the model makes
// of it.
type measuredRow struct {
	session, replica           string
	user                       int
	start, ttft, total, itlP50 float64
	prompt, cached, output     int
	warmup                     bool
	sentSim, ttftSim, totalSim float64
	itlSim                     float64
}

// csvRows reads a released CSV, or skips the test where it is not.
func csvRows(t *testing.T, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(measurements, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not here", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, r := range records[1:] {
		row := map[string]string{}
		for i, name := range records[0] {
			row[name] = r[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func numberOf(t *testing.T, row map[string]string, field string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(row[field], 64)
	if err != nil {
		t.Fatalf("%s: %v", field, err)
	}
	return v
}

// probeTokens is a probe's prompt of 2,048 bytes in tokens; 16 of them are
// cached, the template's.
const probeTokens = 1288

func probe(t *testing.T, name string) []*measuredRow {
	var rows []*measuredRow
	for _, m := range csvRows(t, name) {
		rows = append(rows, &measuredRow{
			replica: "replica-0", user: int(numberOf(t, m, "virtual_user")),
			start: numberOf(t, m, "started_ms") + 10, ttft: numberOf(t, m, "ttft_ms"),
			total: numberOf(t, m, "total_ms"), itlP50: numberOf(t, m, "itl_p50_ms"),
			prompt: probeTokens, cached: 16, output: int(numberOf(t, m, "output_tokens")),
			warmup: m["warmup"] == "true",
		})
	}
	return rows
}

func openRows(t *testing.T) []*measuredRow {
	var rows []*measuredRow
	for _, m := range csvRows(t, "rows_session_affinity_open6.csv") {
		rows = append(rows, &measuredRow{
			session: m["session"], replica: m["replica"],
			start: numberOf(t, m, "started_ms"), ttft: numberOf(t, m, "ttft_ms"),
			total: numberOf(t, m, "total_ms"), itlP50: numberOf(t, m, "itl_p50_ms"),
			prompt: int(numberOf(t, m, "prompt_tokens")), cached: int(numberOf(t, m, "cached_tokens")),
			output: int(numberOf(t, m, "output_tokens")),
		})
	}
	return rows
}

// A bench is one replica under measured arrivals.
type bench struct {
	fleet    *Fleet
	loop     des.Loop
	engine   *engine.Engine
	chassis  *thermal.Chassis
	gpu      int
	others   thermal.Activity
	rows     []*measuredRow
	requests []*engine.Request
	after    []int // closed loop: the row that follows, or -1
	frontEnd time.Duration
	dueAt    time.Duration
	armed    int64
	left     int
	busy     time.Duration
	prefill  time.Duration
}

func (b *bench) FirstToken(*engine.Request, time.Duration) {}
func (b *bench) Stepped(time.Duration, *kvcache.Log)       {}

func (b *bench) Finished(q *engine.Request, at time.Duration) {
	if q.ID < 0 {
		return
	}
	r := b.rows[q.ID]
	ms := func(t latency.Ticks) float64 { return float64(t.Duration()) / 1e6 }
	egress := b.fleet.FrontEnd.EgressMS
	gaps, _ := q.Gaps(nil)
	r.ttftSim, r.totalSim = ms(q.First)+egress-r.sentSim, ms(q.Last)+egress-r.sentSim
	r.itlSim = float64(gaps.P50) / 1e6
	b.left--
	if b.after != nil && b.after[q.ID] >= 0 {
		b.loop.At(at+millis(egress+0.45), rankArrive, (*benchSends)(b), int64(b.after[q.ID]))
	}
}

type benchSends bench

func (s *benchSends) Fire(at time.Duration, i int64) {
	b := (*bench)(s)
	f := &b.fleet.FrontEnd
	r := b.rows[i]
	r.sentSim = float64(at) / 1e6
	b.frontEnd = max(at, b.frontEnd) + f.service(float64(r.prompt), b.engine.TokenRate())
	b.loop.At(b.frontEnd+f.delay(float64(r.prompt)), rankSubmit, (*benchSubmits)(b), i)
}

type benchSubmits bench

func (s *benchSubmits) Fire(at time.Duration, i int64) {
	b := (*bench)(s)
	b.engine.Submit(b.requests[i], at)
	b.arm()
}

func (b *bench) arm() {
	if due, ok := b.engine.Due(); ok && due != b.dueAt {
		b.dueAt = due
		b.armed++
		b.loop.At(due, rankEngine, b, b.armed)
	}
}

func (b *bench) Fire(_ time.Duration, armed int64) {
	if armed == b.armed {
		b.dueAt = -1
		b.engine.Fire()
		b.arm()
	}
}

type benchHeat bench

func (h *benchHeat) Fire(at time.Duration, _ int64) {
	b := (*bench)(h)
	all := make([]thermal.Activity, len(b.fleet.Thermal.Cards))
	for i := range all {
		all[i] = b.others
	}
	busy, prefill := b.engine.Usage()
	all[b.gpu] = thermal.Activity{}
	if worked, prefilled := b.fleet.Thermal.second(busy-b.busy, prefill-b.prefill); worked > 0 {
		b.busy, b.prefill = b.busy+worked, b.prefill+prefilled
		all[b.gpu] = b.fleet.Thermal.activity(worked, prefilled)
	}
	b.chassis.Advance(at-benchOrigin+time.Second, all)
	b.engine.SetClock(b.chassis.ComputeFactor(b.gpu), b.chassis.MemoryFactor(b.gpu))
	if b.left > 0 {
		b.loop.At(at+time.Second, rankHeat, h, 0)
	}
}

// benchOrigin leaves time to fill the cache before the first arrival.
const benchOrigin = 1000 * time.Second

// replayRows runs one replica's rows. Closed loops start each user's next row
// when its last one has ended. A fleet around it keeps the other cards at the
// given activity.
func replayRows(t *testing.T, f *Fleet, rows []*measuredRow, closedLoop bool, others thermal.Activity) {
	t.Helper()
	model, err := latency.New(f.Step)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{fleet: f, rows: rows, dueAt: -1, left: len(rows), others: others}
	b.engine = engine.New(f.Engine, model, b, engine.Options{})
	b.chassis, err = thermal.New(f.Thermal.Cards, f.Thermal.Coupling, f.Thermal.AmbientC)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range f.Replicas {
		if r.Name == rows[0].replica {
			b.gpu = i
		}
	}
	if others.Busy > 0 {
		all := make([]thermal.Activity, len(f.Thermal.Cards))
		for i := range all {
			all[i] = others
		}
		b.chassis.Preheat(10*time.Minute, all)
	}
	b.fill()
	if closedLoop {
		b.after = followers(rows)
	}
	first := map[int]bool{}
	for i := range rows {
		first[i] = true
	}
	for _, j := range b.after {
		delete(first, j)
	}
	for i, r := range rows {
		if first[i] {
			b.loop.At(benchOrigin+millis(r.start), rankArrive, (*benchSends)(b), int64(i))
		}
	}
	b.loop.At(benchOrigin, rankHeat, (*benchHeat)(b), 0)
	for b.loop.Step() {
	}
}

// fill gives every row the blocks that make it find exactly the cached tokens it
// was measured to find, and puts those in the cache.
func (b *bench) fill() {
	size := b.fleet.Engine.BlockSize
	next := uint64(1)
	fresh := func(dst []uint64, n int) []uint64 {
		for len(dst) < n {
			dst = append(dst, next)
			next++
		}
		return dst
	}
	warm := map[string][]uint64{}
	var sessions []string
	for _, r := range b.rows {
		if warm[r.session] == nil {
			sessions = append(sessions, r.session)
		}
		warm[r.session] = fresh(warm[r.session], max(1, r.cached/size))
	}
	at := time.Duration(0)
	for _, s := range sessions {
		blocks := warm[s]
		b.engine.Submit(&engine.Request{ID: -1, Blocks: blocks, Prompt: len(blocks)*size + 1, Stop: 1, Max: 1}, at)
		for due, ok := b.engine.Due(); ok; due, ok = b.engine.Due() {
			b.engine.Fire()
			at = due
		}
		at += time.Millisecond
	}
	b.busy, b.prefill = b.engine.Usage()
	for i, r := range b.rows {
		blocks := append([]uint64(nil), warm[r.session][:r.cached/size]...)
		b.requests = append(b.requests, &engine.Request{
			ID: int64(i), Blocks: fresh(blocks, r.prompt/size), Prompt: r.prompt,
			Stop: max(1, r.output), Max: 64,
		})
	}
}

func followers(rows []*measuredRow) []int {
	after := make([]int, len(rows))
	for i, r := range rows {
		after[i] = -1
		best := math.Inf(1)
		for j, o := range rows {
			if o.user == r.user && o.start > r.start && o.start < best {
				best, after[i] = o.start, j
			}
		}
	}
	return after
}

func medianOf(v []float64) float64 {
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	return s[len(s)/2]
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// within fails the test if a relative error leaves its bound.
func within(t *testing.T, what string, got, want, bound float64) {
	t.Helper()
	e := got/want - 1
	line := fmt.Sprintf("%s: simulated %.1f, measured %.1f: %+.1f%%", what, got, want, e*100)
	if math.Abs(e) > bound {
		t.Errorf("%s, want within %.0f%%", line, bound*100)
		return
	}
	t.Log(line)
}

func loadReference(t *testing.T) *Fleet {
	t.Helper()
	f, err := LoadFleet("rtx3090x5")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// One user, one replica, 79 requests one after another.
func TestProbeOfOneUser(t *testing.T) {
	rows := probe(t, "probe_c1_replica0.csv")
	replayRows(t, loadReference(t), rows, true, thermal.Activity{})
	var ttft, ttftSim, decode, decodeSim []float64
	for _, r := range rows {
		if !r.warmup {
			ttft, ttftSim = append(ttft, r.ttft), append(ttftSim, r.ttftSim)
			decode, decodeSim = append(decode, r.total-r.ttft), append(decodeSim, r.totalSim-r.ttftSim)
		}
	}
	within(t, "TTFT p50, ms", medianOf(ttftSim), medianOf(ttft), 0.02)
	within(t, "mean time from first to last token, ms", meanOf(decodeSim), meanOf(decode), 0.02)
}

// 32 users on one replica, closed loop, chunked prefill mixed with decode.
func TestProbeOf32Users(t *testing.T) {
	rows := probe(t, "probe_c32_replica0.csv")
	replayRows(t, loadReference(t), rows, true, thermal.Activity{})
	var ttft, ttftSim, total, totalSim []float64
	for _, r := range rows {
		if r.start > 8000 && r.start < 57000 { // between the cold burst and the drain
			ttft, ttftSim = append(ttft, r.ttft), append(ttftSim, r.ttftSim)
			total, totalSim = append(total, r.total), append(totalSim, r.totalSim)
		}
	}
	within(t, "mean TTFT, ms", meanOf(ttftSim), meanOf(ttft), 0.05)
	within(t, "mean end to end, ms", meanOf(totalSim), meanOf(total), 0.02)
}

// 219 requests of the multi-turn workload at 6 a second over five replicas:
// hits, partial hits and misses beside decoding ones.
func TestRowsOfTheOpenLoop(t *testing.T) {
	f := loadReference(t)
	byReplica := map[string][]*measuredRow{}
	for _, r := range openRows(t) {
		byReplica[r.replica] = append(byReplica[r.replica], r)
	}
	var ttft, decode, itl []float64
	for _, replica := range f.Replicas {
		rows := byReplica[replica.Name]
		replayRows(t, f, rows, false, thermal.Activity{Busy: 0.65, Prefill: 0.4})
		for _, r := range rows {
			// The rows begin and end in mid-run: what ran beside the outer ones is
			// not released.
			if r.start < 53000 || r.start > 83000 {
				continue
			}
			ttft = append(ttft, r.ttftSim/r.ttft)
			decode = append(decode, (r.totalSim-r.ttftSim)/(r.total-r.ttft))
			itl = append(itl, r.itlSim/r.itlP50)
		}
	}
	within(t, "TTFT, median ratio, %", medianOf(ttft)*100, 100, 0.02)
	within(t, "first to last token, median ratio, %", medianOf(decode)*100, 100, 0.03)
	within(t, "inter-token p50, median ratio, %", medianOf(itl)*100, 100, 0.03)
	var off []float64
	for _, x := range ttft {
		off = append(off, math.Abs(x-1))
	}
	if m := medianOf(off); m > 0.04 {
		t.Errorf("TTFT, median absolute error: %.1f%%, want at most 4%%", m*100)
	} else {
		t.Logf("TTFT, median absolute error: %.1f%%", m*100)
	}
}
