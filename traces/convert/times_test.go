package convert

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kvfleet/traces"
)

// backwards is the file with its lines in reverse, but for so many at the head.
func backwards(t *testing.T, path string, head int) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Reverse(lines[head:])
	return file(t, "backwards", strings.Join(lines, "\n")+"\n")
}

// Times count from the earliest arrival, not from the first row.
func TestReversedTraceHasTheSameTimes(t *testing.T) {
	for name, head := range map[string]int{
		"mooncake_arxiv_fragment_56rows.jsonl": 0, "ragpulse_trace_first1500.jsonl": 0,
		"azure_llm_2023_code_first3000.csv": 1, "vidur_splitwise_conv_first3000.csv": 1,
	} {
		path := sample(t, name)
		want, straight := all(t, path, Options{})
		got, reversed := all(t, backwards(t, path, head), Options{})
		slices.Reverse(got)
		if len(got) != len(want) {
			t.Fatalf("%s: got %d rows, want %d", name, len(got), len(want))
		}
		for i := range want {
			if got[i].ScheduledAt != want[i].ScheduledAt || got[i].ScheduledAt < 0 {
				t.Fatalf("%s: row %d from the end: got %d ns, want %d", name, i, got[i].ScheduledAt, want[i].ScheduledAt)
			}
		}
		r := reversed.Report()
		if r.OutOfOrder == 0 || r.Origin != straight.Report().Origin {
			t.Errorf("%s: got %+v, want rows out of order and the straight trace's origin", name, r)
		}
	}
}

// The earliest is that of the rows taken.
func TestEarliestIsOfRowsTaken(t *testing.T) {
	path := file(t, "x", mooncakeText(5000, 4000, 1000, 7000))
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "4s 3s 0s 6s"},
		{Options{Limit: 2}, "1s 0s"},
		{Options{RateScale: 2}, "2s 1.5s 0s 3s"},
	} {
		rows, _ := all(t, path, c.o)
		if got := arrivals(rows); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.o, got, c.want)
		}
	}
	rag := `{"timestamp":%d,"input_length":100,"output_length":5,"hash_ids":{},"session_id":"%s"}` + "\n"
	path = file(t, "y", fmt.Sprintf(rag, 9, "a")+fmt.Sprintf(rag, 1, "b")+fmt.Sprintf(rag, 7, "a"))
	if rows, _ := all(t, path, Options{Sessions: []string{"a"}}); arrivals(rows) != "2s 0s" {
		t.Errorf("one session: got %s, want 2s 0s", arrivals(rows))
	}
}

func TestKvrouteTimesBeforeTheStartAreShifted(t *testing.T) {
	head := strings.Join(kvrouteProbeColumns, ",") + "\n"
	row := "0,0,true,%v,3,9,11,4,4,9,success\n"
	rows, tr := all(t, file(t, "x", head+fmt.Sprintf(row, 1.5)+fmt.Sprintf(row, -0.5)), Options{})
	r := tr.Report()
	if rows[0].SentAt != 2e6 || rows[1].SentAt != 0 || rows[1].TTFT() != 3e6 || rows[1].E2E() != 9e6 || r.Shifted != 5e5 {
		t.Errorf("got sent at %d and %d, %+v; want 2 ms and 0, half a ms later", rows[0].SentAt, rows[1].SentAt, r)
	}
	if got := fmt.Sprint(r.Remarks()); !strings.Contains(got, "500µs later than in the source") {
		t.Errorf("got remarks %s, want the shift", got)
	}
	rows, tr = all(t, file(t, "x", head+fmt.Sprintf(row, 1.5)), Options{})
	if rows[0].SentAt != 15e5 || tr.Report().Shifted != 0 {
		t.Errorf("none before the start: got sent at %d, want 1.5 ms as in the source", rows[0].SentAt)
	}
}

func TestNegativeArrowTimesAreKeptAndCounted(t *testing.T) {
	path := t.TempDir() + "/x.arrows"
	w, err := traces.Create(path, traces.Meta{}, traces.Options{})
	if err != nil {
		t.Fatal(err)
	}
	row := traces.NewRow()
	row.RequestID, row.ScheduledAt = "r", -int64(time.Second)
	if err := w.Write(&row); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rows, tr := all(t, path, Options{})
	r := tr.Report()
	if rows[0].ScheduledAt != row.ScheduledAt || fmt.Sprint(r.Remarks()) != "[1 row due or sent before time 0]" {
		t.Errorf("got %d and %q, want the row as it is, and counted", rows[0].ScheduledAt, r.Remarks())
	}
}

// Every time of a row is moved when times before the start are.
func TestEveryTimeIsShifted(t *testing.T) {
	r := traces.NewRow()
	times := map[string]*int64{
		"ScheduledAt": &r.ScheduledAt, "SentAt": &r.SentAt, "ReceivedAt": &r.ReceivedAt, "DecidedAt": &r.DecidedAt,
		"DispatchedAt": &r.DispatchedAt, "FirstByteAt": &r.FirstByteAt, "FirstTokenAt": &r.FirstTokenAt,
		"LastTokenAt": &r.LastTokenAt, "EndedAt": &r.EndedAt,
	}
	for _, at := range times {
		*at = 1000
	}
	r.QueueTime, r.PrefillTime, r.ITLMean, r.SignalAge = 1000, 1000, 1000, 1000
	got := traces.NewRow()
	s := &shaper{pass: &pass{opts: &Options{}, report: &Report{}}, base: -7, yield: func(moved traces.Row, _ error) bool {
		got = moved
		return true
	}}
	if err := s.take(&r); err != nil {
		t.Fatal(err)
	}
	want := r
	for name, at := range times {
		if *at != 1007 {
			t.Errorf("%s: got %d, want 1007", name, *at)
		}
	}
	if got.LastTokenAt != want.LastTokenAt || got.QueueTime != 1000 || got.PrefillTime != 1000 || got.ITLMean != 1000 || got.SignalAge != 1000 {
		t.Errorf("got %+v, want times moved and durations kept", got)
	}
	r = traces.NewRow()
	if err := s.take(&r); err != nil || r.LastTokenAt != traces.None || r.ReceivedAt != traces.None {
		t.Errorf("unknown times: got %d, %d and %v, want them unknown", r.LastTokenAt, r.ReceivedAt, err)
	}
}
