package traces

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// someRow fills every field, through the columns, with values that differ from
// field to field and row to row; about a third are left unknown.
func someRow(n int) Row {
	rng := rand.New(rand.NewPCG(5, uint64(n)))
	r := NewRow()
	columns := Columns()
	for i := range columns {
		c := &columns[i]
		if rng.IntN(3) == 0 {
			continue
		}
		switch c.Kind {
		case KindInt:
			*c.integer(&r) = rng.Int64() - rng.Int64()
		case KindSmall:
			*c.small(&r) = rng.Int32N(1000)
		case KindText:
			*c.text(&r) = fmt.Sprintf("%s-%d", c.Name, n)
		case KindEnum:
			if c.text != nil {
				*c.text(&r) = fmt.Sprintf("%s-%d", c.Name, rng.IntN(1+n/4))
			}
		case KindFlag:
			*c.flag(&r) = true
		case KindList:
			*c.list(&r) = []uint64{rng.Uint64(), uint64(n), 0}[:rng.IntN(4)]
		}
	}
	r.RequestID = fmt.Sprint("r", n)
	r.Outcome = Outcome(n % 5)
	r.SessionSource = SessionSource(n % 3)
	return r
}

func someRows(n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = someRow(i)
	}
	return rows
}

func someMeta() Meta {
	return Meta{
		Producer: "kvfleet 0.1.0", Commit: "abc", RunID: "r1", Seed: 1<<63 + 1, Clock: ClockVirtual, Origin: -5,
		Cell: Cell{Policy: "prefix_affinity", Parameters: "spill_factor=2,ttl=56.97s", Driver: "closed",
			Load: 32, WorkingSet: 0.25, Skew: 1.4, Repetition: 2},
		Workload: "multiturn(sessions=307,skew=0)", SLO: SLO{TTFT: 1200 * time.Millisecond, ITL: 45 * time.Millisecond},
		Fleet:    Fleet{Name: "rtx3090x5", Hash: "h", Replicas: 5, KVTokens: 629760, Engine: "vllm"},
		Evidence: []string{"first remark", "second, with a comma"},
		Extra:    []KeyValue{{"a", "1"}, {"b", "2"}},
	}
}

func written(t testing.TB, rows []Row, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, someMeta(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readAll(data []byte) ([]Row, error) {
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var rows []Row
	for row, err := range r.Rows() {
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func TestRoundTrip(t *testing.T) {
	for _, o := range []Options{{}, {BatchRows: 7}, {BatchRows: 100, Compression: LZ4}, {BatchRows: 7, Compression: Zstd}} {
		for _, n := range []int{0, 1, 7, 700} {
			rows := someRows(n)
			got, err := readAll(written(t, rows, o))
			if err != nil {
				t.Fatalf("%+v, %d rows: %v", o, n, err)
			}
			if len(got) != n {
				t.Fatalf("%+v: got %d rows, want %d", o, len(got), n)
			}
			for i := range rows {
				if !reflect.DeepEqual(got[i], rows[i]) {
					t.Fatalf("%+v: row %d:\ngot  %+v\nwant %+v", o, i, got[i], rows[i])
				}
			}
		}
	}
}

func TestMetaRoundTrip(t *testing.T) {
	for _, want := range []Meta{someMeta(), {}} {
		m := want
		var b bytes.Buffer
		w, err := NewWriter(&b, m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Meta(); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// Every field of Row must lie in exactly one column, or a trace would lose it.
func TestColumnsCoverRow(t *testing.T) {
	covered := map[uintptr]string{}
	var r Row
	base := reflect.ValueOf(&r).Pointer()
	columns := Columns()
	for i := range columns {
		c := &columns[i]
		var at any
		switch {
		case c.integer != nil:
			at = c.integer(&r)
		case c.small != nil:
			at = c.small(&r)
		case c.text != nil:
			at = c.text(&r)
		case c.flag != nil:
			at = c.flag(&r)
		case c.list != nil:
			at = c.list(&r)
		case c.Name == "outcome":
			at = &r.Outcome
		case c.Name == "session_source":
			at = &r.SessionSource
		}
		offset := reflect.ValueOf(at).Pointer() - base
		if other, ok := covered[offset]; ok {
			t.Errorf("%s and %s are the same field", c.Name, other)
		}
		covered[offset] = c.Name
	}
	for i := range reflect.TypeOf(r).NumField() {
		f := reflect.TypeOf(r).Field(i)
		if _, ok := covered[f.Offset]; !ok {
			t.Errorf("field %s has no column", f.Name)
		}
	}
}

// A stream cut anywhere yields exactly the rows of its whole batches, and says
// that it is truncated.
func TestTruncationRecoversWholeBatches(t *testing.T) {
	const perBatch, batches = 5, 6
	rows := someRows(perBatch * batches)
	for compression, step := range map[Compression]int{Uncompressed: 37, Zstd: 499} {
		o := Options{BatchRows: perBatch, Compression: compression}
		whole := written(t, rows, o)
		ends := flushPoints(t, rows, o)
		cuts := []int{len(whole) - 9, len(whole) - 8, len(whole) - 1}
		for _, end := range ends {
			cuts = append(cuts, end-1, end, end+1)
		}
		for cut := 0; cut < len(whole); cut += step {
			cuts = append(cuts, cut)
		}
		for _, cut := range cuts {
			want := 0
			for i, end := range ends {
				if cut >= end {
					want = (i + 1) * perBatch
				}
			}
			got, err := readAll(whole[:cut])
			if len(got) != want {
				t.Fatalf("cut at %d of %d: got %d rows, want %d", cut, len(whole), len(got), want)
			}
			for i := range got {
				if !reflect.DeepEqual(got[i], rows[i]) {
					t.Fatalf("cut at %d: row %d differs", cut, i)
				}
			}
			var truncated *TruncatedError
			if errors.As(err, &truncated) {
				if truncated.After != int64(want) {
					t.Fatalf("cut at %d: got %v, want after row %d", cut, err, want)
				}
			} else if err != nil || cut < len(whole)-8 {
				t.Fatalf("cut at %d of %d: got error %v, want a TruncatedError", cut, len(whole), err)
			}
		}
	}
}

// flushPoints is how long the stream is after each batch.
func flushPoints(t *testing.T, rows []Row, o Options) []int {
	var b bytes.Buffer
	w, err := NewWriter(&b, someMeta(), o)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int
	for i := range rows {
		before := w.Rows()
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
		if w.Rows() > before {
			ends = append(ends, b.Len())
		}
	}
	return ends
}

func TestMissingBatchIsNoticed(t *testing.T) {
	rows := someRows(10)
	o := Options{BatchRows: 5}
	whole, ends := written(t, rows, o), flushPoints(t, rows, o)
	// No new dictionary values in the second batch would be needed for this to
	// be a clean cut; whatever the reader meets, it must not call it whole.
	got, err := readAll(append(bytes.Clone(whole[:ends[0]]), whole[ends[1]:]...))
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || len(got) != 5 || corrupt.After != 5 {
		t.Errorf("got %d rows and %v, want 5 and corrupt after row 5", len(got), err)
	}
}

func TestFlippedBytesNeverPanic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, o := range []Options{{BatchRows: 5}, {BatchRows: 5, Compression: Zstd}, {BatchRows: 5, Compression: LZ4}} {
		whole := written(t, someRows(20), o)
		for range 400 {
			bad := bytes.Clone(whole)
			for range 1 + rng.IntN(3) {
				bad[rng.IntN(len(bad))] ^= byte(1 << rng.IntN(8))
			}
			_, _ = readAll(bad)
		}
	}
}

func TestUnknownColumnsAreIgnored(t *testing.T) {
	data := foreign(t, "1.7", func(b *array.RecordBuilder) {
		b.Field(1).(*array.Float64Builder).Append(1.5)
	}, arrow.Field{Name: "novelty", Type: arrow.PrimitiveTypes.Float64})
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.UnknownColumns(); len(got) != 1 || got[0] != "novelty" {
		t.Errorf("unknown columns: got %v, want [novelty]", got)
	}
	for row, err := range r.Rows() {
		want := NewRow()
		want.RequestID = "only"
		if err != nil || !reflect.DeepEqual(row, want) {
			t.Errorf("got %+v, %v, want a row of which only the id is known", row, err)
		}
	}
}

// foreign writes one row with a request id and another column, as another
// program would: no trailer but Arrow's own.
func foreign(t *testing.T, version string, fill func(*array.RecordBuilder), extra arrow.Field) []byte {
	t.Helper()
	meta := arrow.NewMetadata([]string{keySchema, keyVersion}, []string{schemaTrace, version})
	schema := arrow.NewSchema([]arrow.Field{{Name: "request_id", Type: arrow.BinaryTypes.String}, extra}, &meta)
	build := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	build.Field(0).(*array.StringBuilder).Append("only")
	fill(build)
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	if err := w.Write(build.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReaderRefuses(t *testing.T) {
	text := func(b *array.RecordBuilder) { b.Field(1).(*array.StringBuilder).Append("soon") }
	outcome := arrow.Field{Name: "outcome", Type: arrow.BinaryTypes.String}
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"a newer major", "newer", foreign(t, "2.0", text, outcome)},
		{"no version", "major.minor", foreign(t, "", text, outcome)},
		{"a wrong type", "sent_at is utf8, want int64", foreign(t, "1.0", text, arrow.Field{Name: "sent_at", Type: arrow.BinaryTypes.String})},
		{"an unknown outcome", `outcome "soon"`, foreign(t, "1.0", text, outcome)},
		{"text", "no Arrow stream", []byte("request_id,session\n1,2\n")},
		{"nothing", "truncated after row 0", nil},
	} {
		_, err := readAll(c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to say %q", c.name, err, c.want)
		}
	}
	_, err := readAll(foreign(t, "2.0", text, outcome))
	if !errors.Is(err, ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
}

func TestStepRoundTrip(t *testing.T) {
	var b bytes.Buffer
	w, err := NewStepWriter(&b, someMeta(), Options{BatchRows: 3})
	if err != nil {
		t.Fatal(err)
	}
	var want []StepRow
	for i := range int64(10) {
		s := StepRow{i, i + 1, fmt.Sprint("replica-", i%4), i + 2, i + 3, i + 4, i + 5, i + 6, i + 7}
		want = append(want, s)
		if err := w.Write(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := NewReader(bytes.NewReader(b.Bytes())); err == nil {
		t.Error("a step log was read as a trace")
	}
	r, err := NewStepReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var got []StepRow
	for s, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFileEarnsItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.arrows")
	rows := someRows(20)
	w, err := Create(path, someMeta(), Options{BatchRows: 8})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	// As a killed writer would leave it: two batches of eight.
	if n, err := countFile(path); n != 16 || err == nil {
		t.Errorf("unclosed: got %d rows and %v, want 16 and an error", n, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := countFile(path); n != 20 || err != nil {
		t.Errorf("closed: got %d rows and %v, want 20", n, err)
	}
	if _, err := os.Stat(path + PartSuffix); err == nil {
		t.Error("the .part file is still there")
	}
	if err := w.Write(&rows[0]); err == nil {
		t.Error("a closed writer took a row")
	}
}

func TestAbortKeepsRowsAndPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.arrows")
	w, err := Create(path, someMeta(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	row := someRow(0)
	if err := errors.Join(w.Write(&row), w.Abort()); err != nil {
		t.Fatal(err)
	}
	var truncated *TruncatedError
	if n, err := countFile(path); n != 1 || !errors.As(err, &truncated) {
		t.Errorf("got %d rows and %v, want 1 and a TruncatedError", n, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("an aborted trace took its final name")
	}
}

func countFile(path string) (int, error) {
	r, err := Open(path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	n := 0
	for _, err := range r.Rows() {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// fullDisk takes so many bytes and no more.
type fullDisk struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.Len()+len(p) > d.room {
		n, _ := d.Buffer.Write(p[:d.room-d.Len()])
		return n, errFull
	}
	return d.Buffer.Write(p)
}

func TestFullDisk(t *testing.T) {
	rows := someRows(100)
	whole := written(t, rows, Options{BatchRows: 10})
	disk := &fullDisk{room: len(whole) / 2}
	w, err := NewWriter(disk, someMeta(), Options{BatchRows: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err = w.Write(&rows[i]); err != nil {
			break
		}
	}
	if !errors.Is(err, errFull) {
		t.Fatalf("got %v, want %v", err, errFull)
	}
	if again := w.Close(); !errors.Is(again, errFull) {
		t.Errorf("Close after a failure: got %v, want %v", again, errFull)
	}
	got, err := readAll(disk.Bytes())
	if int64(len(got)) != w.Rows() || err == nil {
		t.Errorf("got %d rows and %v, want the %d flushed and an error", len(got), err, w.Rows())
	}
}

func TestOptionsFaultsComeTogether(t *testing.T) {
	_, err := NewWriter(io.Discard, Meta{}, Options{BatchRows: -1, Compression: 9})
	if err == nil || !strings.Contains(err.Error(), "batch") || !strings.Contains(err.Error(), "compression") {
		t.Errorf("got %v, want both faults", err)
	}
}

func FuzzArrowReader(f *testing.F) {
	f.Add(written(f, someRows(12), Options{BatchRows: 5}))
	f.Add(written(f, someRows(3), Options{Compression: Zstd}))
	f.Add(written(f, nil, Options{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := readAll(data)
		var truncated *TruncatedError
		if errors.As(err, &truncated) && truncated.After != int64(len(rows)) {
			t.Errorf("%v, but %d rows were read", err, len(rows))
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	rows := benchRows(1000)
	w, err := NewWriter(io.Discard, someMeta(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := w.Write(&rows[i%len(rows)]); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRead(b *testing.B) {
	data := written(b, benchRows(50000), Options{})
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		r, err := NewReader(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range r.Rows() {
			if err != nil {
				b.Fatal(err)
			}
			if n++; n == b.N {
				break
			}
		}
	}
}

// benchRows look like a simulated run's: no block ids, few enum values.
func benchRows(n int) []Row {
	rows := someRows(n)
	for i := range rows {
		rows[i].Blocks = nil
		rows[i].Replica = fmt.Sprint("replica-", i%5)
		rows[i].Policy, rows[i].Reason, rows[i].DeclinedReplica, rows[i].ReroutedFrom = "prefix_affinity", "COLD", "", ""
	}
	return rows
}
