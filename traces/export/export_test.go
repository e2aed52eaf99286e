package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"kvfleet/traces"
)

func twoRows() []traces.Row {
	a := traces.NewRow()
	a.RequestID, a.Session, a.SentAt, a.Turn = "a", `s "1", x`, 5, 0
	a.BlockSize, a.Blocks, a.Warmup = 16, []uint64{1<<64 - 1, 7}, true
	a.Replica, a.Outcome, a.Status = "replica-0", traces.Success, 200
	b := traces.NewRow()
	b.RequestID, b.Blocks = "b", []uint64{}
	return []traces.Row{a, b}
}

var errCut = errors.New("cut")

// source yields the rows, then err if there is one.
func source(rows []traces.Row, err error) traces.Source {
	return func(yield func(traces.Row, error) bool) {
		for i := range rows {
			if !yield(rows[i], nil) {
				return
			}
		}
		if err != nil {
			yield(traces.Row{}, err)
		}
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	n, err := CSV(source(twoRows(), nil), &b)
	if n != 2 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	records, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][2]string{}
	for i, name := range records[0] {
		got[name] = [2]string{records[1][i], records[2][i]}
	}
	for name, want := range map[string][2]string{
		"request_id": {"a", "b"}, "session": {`s "1", x`, ""}, "sent_at": {"5", ""}, "turn": {"0", ""},
		"blocks": {"18446744073709551615 7", ""}, "warmup": {"true", "false"}, "outcome": {"success", "pending"},
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}

func TestJSONL(t *testing.T) {
	var b bytes.Buffer
	if n, err := JSONL(source(twoRows(), nil), &b); n != 2 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	var a struct {
		Session string   `json:"session"`
		SentAt  int64    `json:"sent_at"`
		Blocks  []uint64 `json:"blocks"`
		Warmup  bool     `json:"warmup"`
	}
	if err := json.Unmarshal([]byte(lines[0]), &a); err != nil {
		t.Fatal(err)
	}
	if a.Session != `s "1", x` || a.SentAt != 5 || len(a.Blocks) != 2 || a.Blocks[0] != 1<<64-1 || !a.Warmup {
		t.Errorf("got %+v", a)
	}
	if strings.Contains(lines[1], "sent_at") || !strings.Contains(lines[1], `"blocks":[]`) {
		t.Errorf("got %s, want no sent_at and no blocks in a list", lines[1])
	}
}

func TestParquet(t *testing.T) {
	var b bytes.Buffer
	if n, err := Parquet(source(twoRows(), nil), traces.Meta{Workload: "w"}, &b); n != 2 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	type row struct {
		ID      string   `parquet:"request_id,optional"`
		SentAt  *int64   `parquet:"sent_at,optional"`
		Turn    *int32   `parquet:"turn,optional"`
		Replica *string  `parquet:"replica,optional"`
		Warmup  bool     `parquet:"warmup"`
		Blocks  []uint64 `parquet:"blocks,optional,list"`
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := f.Lookup("workload"); !ok || v != "w" {
		t.Errorf("metadata: got workload %q, want w", v)
	}
	columns := traces.Columns()
	for i, path := range f.Schema().Columns() {
		if path[0] != columns[i].Name {
			t.Errorf("column %d: got %s, want %s", i, path[0], columns[i].Name)
		}
	}
	r := parquet.NewGenericReader[row](f)
	got := make([]row, 3)
	n, err := r.Read(got)
	if n != 2 || err != nil && err != io.EOF {
		t.Fatalf("got %d rows, %v", n, err)
	}
	a, last := got[0], got[1]
	if a.ID != "a" || *a.SentAt != 5 || *a.Turn != 0 || *a.Replica != "replica-0" || !a.Warmup || len(a.Blocks) != 2 || a.Blocks[0] != 1<<64-1 {
		t.Errorf("first row: got %+v", a)
	}
	if last.ID != "b" || last.SentAt != nil || last.Turn != nil || last.Replica != nil || last.Warmup || len(last.Blocks) != 0 {
		t.Errorf("second row: got %+v", last)
	}
}

// A truncated trace exports what is whole, and says so.
func TestSourceErrorComesAfterAWholeFile(t *testing.T) {
	for name, write := range map[string]func(traces.Source, io.Writer) (int64, error){
		"csv": CSV, "jsonl": JSONL,
		"parquet": func(rows traces.Source, w io.Writer) (int64, error) { return Parquet(rows, traces.Meta{}, w) },
	} {
		var whole, cut bytes.Buffer
		if _, err := write(source(twoRows(), nil), &whole); err != nil {
			t.Fatal(err)
		}
		n, err := write(source(twoRows(), errCut), &cut)
		if n != 2 || err != errCut {
			t.Errorf("%s: got %d rows and %v, want 2 and the rows' own error", name, n, err)
		}
		if !bytes.Equal(whole.Bytes(), cut.Bytes()) {
			t.Errorf("%s: the file differs from that of the whole trace", name)
		}
		if _, err := write(source(twoRows(), nil), full{}); err == nil {
			t.Errorf("%s: a full disk went unnoticed", name)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func BenchmarkParquet(b *testing.B) {
	row := twoRows()[0]
	rows := func(yield func(traces.Row, error) bool) {
		for range b.N {
			if !yield(row, nil) {
				return
			}
		}
	}
	if _, err := Parquet(rows, traces.Meta{}, io.Discard); err != nil {
		b.Fatal(err)
	}
}
