package convert

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvfleet/traces"
)

const samples = "../../../shared/data/traces/"

func sample(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(samples, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("sample %s is not here", name)
	}
	return path
}

func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func all(t testing.TB, path string, o Options) ([]traces.Row, *Trace) {
	t.Helper()
	tr, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	var rows []traces.Row
	for r, err := range tr.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows, tr
}

func TestSamples(t *testing.T) {
	for _, c := range []struct {
		name   string
		format Format
		rows   int
		in     int64 // prompt tokens of the first row
		out    int64
		last   time.Duration // arrival of the last row
	}{
		{"mooncake_fast25_conversation_first3000.jsonl", Mooncake, 3000, 6758, 500, 987 * time.Second},
		{"mooncake_fast25_synthetic_first3000.jsonl", Mooncake, 3000, 40160, 6, 782018 * time.Millisecond},
		{"mooncake_arxiv_fragment_56rows.jsonl", Mooncake, 56, 2105, 650, 6 * time.Second},
		{"azure_llm_2023_code_first3000.csv", Azure, 3000, 4808, 10, 0},
		{"azure_llm_2023_conv_first3000.csv", Azure, 3000, 374, 44, 0},
		{"vidur_splitwise_code_first3000.csv", Vidur, 3000, 4808, 10, 0},
		{"vidur_splitwise_conv_first3000.csv", Vidur, 3000, 374, 44, 0},
		{"ragpulse_trace_first1500.jsonl", RAGPulse, 1500, 3112, 192, 0},
		{"weka_claude_code/trace_0091.json", Weka, 10, 126751, 264, 0},
		{"weka_claude_code", Weka, 170, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, tr := all(t, sample(t, c.name), Options{})
			if tr.Format != c.format {
				t.Fatalf("got format %s, want %s", tr.Format, c.format)
			}
			if len(rows) != c.rows {
				t.Errorf("got %d rows, want %d", len(rows), c.rows)
			}
			first, last := &rows[0], &rows[len(rows)-1]
			if c.in != 0 && (first.PromptTokens != c.in || first.MaxTokens != c.out) {
				t.Errorf("first row: got %d in, %d out; want %d, %d", first.PromptTokens, first.MaxTokens, c.in, c.out)
			}
			if first.ScheduledAt != 0 {
				t.Errorf("first arrival: got %v, want 0", time.Duration(first.ScheduledAt))
			}
			if got := time.Duration(last.ScheduledAt); c.last != 0 && got.Round(time.Second) != c.last.Round(time.Second) {
				t.Errorf("last arrival: got %v, want about %v", got, c.last)
			}
			if report := traces.Check(slicesSource(rows)); report.Faults != 0 {
				t.Errorf("check: %v", report.Findings)
			}
			if r := tr.Report(); r.Skipped != 0 || r.OutOfOrder != 0 {
				t.Errorf("got %+v, want nothing skipped or out of order", r)
			}
		})
	}
}

func slicesSource(rows []traces.Row) traces.Source {
	return func(yield func(traces.Row, error) bool) {
		for i := range rows {
			if !yield(rows[i], nil) {
				return
			}
		}
	}
}

// vidur's files are the Azure files rebased to 0 s: two readers, one truth.
func TestVidurEqualsAzure(t *testing.T) {
	azure, _ := all(t, sample(t, "azure_llm_2023_conv_first3000.csv"), Options{})
	vidur, _ := all(t, sample(t, "vidur_splitwise_conv_first3000.csv"), Options{})
	for i := range azure {
		a, v := &azure[i], &vidur[i]
		if gap := a.ScheduledAt - v.ScheduledAt; a.PromptTokens != v.PromptTokens || a.MaxTokens != v.MaxTokens || gap < -1000 || gap > 1000 {
			t.Fatalf("row %d: got %d, %d at %d from Azure; %d, %d at %d from vidur", i,
				a.PromptTokens, a.MaxTokens, a.ScheduledAt, v.PromptTokens, v.MaxTokens, v.ScheduledAt)
		}
	}
}

// The infinite-cache hit of the first 3,000 conversation rows is 32.0% of tokens
// in the notes that came with the sample.
func TestMooncakeSharingIsKept(t *testing.T) {
	rows, _ := all(t, sample(t, "mooncake_fast25_conversation_first3000.jsonl"), Options{})
	seen := map[uint64]bool{}
	var hit, total int64
	for i := range rows {
		r := &rows[i]
		run := int64(0)
		for run < int64(len(r.Blocks)) && seen[r.Blocks[run]] {
			run++
		}
		hit += min(run*512, r.PromptTokens)
		total += r.PromptTokens
		for _, b := range r.Blocks {
			seen[b] = true
		}
	}
	if got := float64(hit) / float64(total); got < 0.315 || got > 0.325 {
		t.Errorf("got a hit of %.3f, want 0.320", got)
	}
}

func TestWekaSubAgentsStartWhereTheyStand(t *testing.T) {
	rows, _ := all(t, sample(t, "weka_claude_code/trace_0291.json"), Options{})
	count := map[string]int{}
	for i := range rows {
		r := &rows[i]
		if r.Session == "trace_0291/agent_001" && r.Turn == 1 {
			if got, want := time.Duration(r.ScheduledAt), 1153013*time.Millisecond; got != want {
				t.Errorf("sub-agent's second request: got %v, want %v", got, want)
			}
		}
		count[r.Session]++
	}
	if fmt.Sprint(count) != "map[trace_0291:20 trace_0291/agent_001:5 trace_0291/agent_002:7]" {
		t.Errorf("got requests %v, want 20, 5 and 7", count)
	}
}

const wekaText = `{"id":"s1","block_size":4,"hash_id_scope":"local","requests":[
{"t":0,"type":"n","in":9,"out":3,"hash_ids":[1,2]},
{"t":5,"type":"subagent","agent_id":"a","requests":[{"t":1,"type":"s","in":4,"out":1,"hash_ids":[1]}]},
{"t":2.5,"type":"s","in":13,"out":0,"hash_ids":[1,2,3]},
{"t":9,"type":"s","in":12,"out":1,"hash_ids":[1,9,3]}]}`

func TestWekaChainsWithinASession(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"s1", "s2"} {
		text := strings.Replace(wekaText, "s1", name, 1)
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rows, tr := all(t, dir, Options{Stagger: 100 * time.Second})
	var ids []string
	for i := range rows {
		ids = append(ids, fmt.Sprintf("%s@%v", rows[i].RequestID, time.Duration(rows[i].ScheduledAt)))
	}
	want := "s1#0@0s s1#1@2.5s s1/a#0@6s s1#2@9s s2#0@1m40s s2#1@1m42.5s s2/a#0@1m46s s2#2@1m49s"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	b := func(i, j int) uint64 { return rows[i].Blocks[j] }
	if b(0, 0) != b(1, 0) || b(0, 1) != b(1, 1) || b(0, 0) != b(2, 0) {
		t.Error("prompts that extend one another do not share their blocks")
	}
	if b(1, 1) == b(3, 1) || b(1, 2) == b(3, 2) {
		t.Error("blocks after different predecessors are equal")
	}
	if b(0, 0) == b(4, 0) {
		t.Error("blocks of different sessions are equal")
	}
	if got := tr.Report().RaisedOutputs; got != 2 || rows[1].MaxTokens != 1 {
		t.Errorf("got %d raised outputs and MaxTokens %d, want 2 and 1", got, rows[1].MaxTokens)
	}
}

func TestRagpulseChainsComponents(t *testing.T) {
	line := `{"timestamp":"%d","input_length":%d,"output_length":5,"hash_ids":{"sys_prompt":[1,2],"passages_ids":[%d],"history":[],"web_search":[],"user_input":[9]},"session_id":"s"}` + "\n"
	text := fmt.Sprintf(line, 10, 1000, 7) + "\n" + fmt.Sprintf(line, 12, 1300, 7) + fmt.Sprintf(line, 11, 600, 8)
	rows, tr := all(t, file(t, "x", text), Options{})
	a, b, c := rows[0].Blocks, rows[1].Blocks, rows[2].Blocks
	if len(a) != 4 || len(b) != 6 || len(c) != 3 {
		t.Fatalf("got %d, %d, %d blocks, want 4, 6, 3", len(a), len(b), len(c))
	}
	if a[3] != b[3] || a[1] != c[1] || a[2] == c[2] {
		t.Errorf("got %x, %x, %x: want four shared by the first two, two by all", a, b, c)
	}
	r := tr.Report()
	if r.Blank != 1 || r.OutOfOrder != 1 || r.CutPieces != 1 || rows[2].ScheduledAt != int64(time.Second) || rows[2].Turn != 2 {
		t.Errorf("got %+v, third row at %d, turn %d", r, rows[2].ScheduledAt, rows[2].Turn)
	}
}

func TestAzureTimes(t *testing.T) {
	text := bom + "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" +
		"2024-05-10 00:00:00.009930+00:00,10,1\r\n2024-05-10 00:00:01+00:00,11,2\r\n2024-05-10 02:00:02.5+02:00,12,3"
	rows, tr := all(t, file(t, "x", text), Options{})
	var got []int64
	for i := range rows {
		got = append(got, rows[i].ScheduledAt)
	}
	if fmt.Sprint(got) != "[0 990070000 2490070000]" {
		t.Errorf("got %v, want [0 990070000 2490070000]", got)
	}
	if want := time.Date(2024, 5, 10, 0, 0, 0, 9930000, time.UTC).UnixNano(); tr.Report().Origin != want {
		t.Errorf("origin: got %d, want %d", tr.Report().Origin, want)
	}
	if len(tr.Meta.Evidence) == 0 || !strings.Contains(tr.Meta.Evidence[0], "distinct") {
		t.Errorf("evidence: got %q, want it to say that prompts are distinct", tr.Meta.Evidence)
	}
}

func TestLengthsNeedARate(t *testing.T) {
	path := file(t, "x", "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n5,2,7,2.5\n6,3,9,2\n7,1,8,7\n")
	rows, tr := all(t, path, Options{})
	if len(rows) != 3 || rows[2].ScheduledAt != traces.None || rows[2].PromptTokens != 7 {
		t.Errorf("without a rate: got %+v, want three rows without times", rows)
	}
	if err := tr.NeedTimes(); err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), "give a rate") {
		t.Errorf("got %v, want it to ask for a rate", err)
	}
	if _, err := Open(path, Options{RateScale: 2}); err == nil || !strings.Contains(err.Error(), "give a rate") {
		t.Errorf("scaled: got %v, want it to say that there is nothing to scale", err)
	}
	rows, tr = all(t, path, Options{Rate: 3})
	if err := tr.NeedTimes(); err != nil {
		t.Errorf("at a rate: got %v", err)
	}
	if rows[2].ScheduledAt != 666666667 {
		t.Errorf("third arrival: got %d, want 666666667", rows[2].ScheduledAt)
	}
}

func mooncakeText(stamps ...int) string {
	var b strings.Builder
	for _, at := range stamps {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}`+"\n", at)
	}
	return b.String()
}

func arrivals(rows []traces.Row) string {
	var all []string
	for i := range rows {
		all = append(all, time.Duration(rows[i].ScheduledAt).String())
	}
	return strings.Join(all, " ")
}

func TestOptionsShapeArrivals(t *testing.T) {
	path := file(t, "x", mooncakeText(6000, 6000, 6000, 9000, 12000, 12000))
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "0s 0s 0s 3s 6s 6s"},
		{Options{SpreadBin: 3 * time.Second}, "0s 1s 2s 3s 6s 7.5s"},
		{Options{SpreadBin: 3 * time.Second, RateScale: 2, Limit: 3}, "0s 500ms 1s"},
		{Options{RateScale: 0.5, Limit: 5}, "0s 0s 0s 6s 12s"},
	} {
		rows, tr := all(t, path, c.o)
		if got := arrivals(rows); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.o, got, c.want)
		}
		again, _ := all(t, path, c.o)
		if arrivals(again) != arrivals(rows) {
			t.Errorf("%+v: a second pass differs", c.o)
		}
		if (c.o.Limit > 0) != strings.Contains(tr.Meta.Workload, "limit=") {
			t.Errorf("%+v: workload %s", c.o, tr.Meta.Workload)
		}
	}
}

func TestDetectRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "empty"},
		{"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "LFS pointer"},
		{"a,b\n1,2\n", "not a trace"},
		{`{"a":1}`, "not a trace"},
		{"\x00\x01", "not a trace"},
	} {
		if _, err := Detect(file(t, "x", c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Detect(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no *.json") {
		t.Errorf("empty directory: got %v", err)
	}
	if _, err := Detect(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: got %v, want not-exist", err)
	}
}

func TestSessionFilter(t *testing.T) {
	rows, tr := all(t, file(t, "x", wekaText), Options{Sessions: []string{"s1/a"}})
	if len(rows) != 1 || rows[0].Session != "s1/a" || rows[0].ScheduledAt != 0 || tr.Report().Filtered != 3 {
		t.Errorf("got %d rows, %+v; want the sub-agent's one, at 0, and 3 filtered", len(rows), tr.Report())
	}
	if _, err := Open(file(t, "y", mooncakeText(0)), Options{Sessions: []string{"s"}}); err == nil {
		t.Error("sessions were chosen from a trace that has none")
	}
}

func TestNoRowsIsAnError(t *testing.T) {
	tr, err := Open(file(t, "x", "arrived_at,num_prefill_tokens,num_decode_tokens\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tr.Rows() {
		err = e
	}
	if err == nil || !strings.Contains(err.Error(), "no rows") {
		t.Errorf("got %v, want no rows", err)
	}
}

func TestArrowPassesThrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.arrows")
	w, err := traces.Create(path, traces.Meta{Workload: "w"}, traces.Options{})
	if err != nil {
		t.Fatal(err)
	}
	row := traces.NewRow()
	row.RequestID, row.ScheduledAt = "r", 7
	if err := errors.Join(w.Write(&row), w.Close()); err != nil {
		t.Fatal(err)
	}
	rows, tr := all(t, path, Options{})
	if len(rows) != 1 || rows[0].RequestID != "r" || rows[0].ScheduledAt != 7 || tr.Meta.Workload != "w" {
		t.Errorf("got %+v of workload %q", rows, tr.Meta.Workload)
	}
}

func TestReferenceRows(t *testing.T) {
	for name, want := range map[string]int{"rows_session_affinity_open6.csv": 219, "probe_c32_replica0.csv": 257, "probe_c1_replica0.csv": 79} {
		path := filepath.Join("../../../shared/reference/rtx3090", name)
		if _, err := os.Stat(path); err != nil {
			t.Skip("reference rows are not here")
		}
		rows, _ := all(t, path, Options{})
		if len(rows) != want {
			t.Errorf("%s: got %d rows, want %d", name, len(rows), want)
		}
		if r := traces.Check(slicesSource(rows)); r.Faults != 0 {
			t.Errorf("%s: %v", name, r.Findings)
		}
		if name == "rows_session_affinity_open6.csv" {
			r := &rows[0]
			if time.Duration(r.TTFT()) != 369577*time.Microsecond || r.EnginePromptTokens != 3611 || r.CachedTokens != 2368 || r.ITLP50 != 9615000 {
				t.Errorf("first row: got %+v", r)
			}
		}
	}
}

func TestSorted(t *testing.T) {
	mk := func(id string, at int64) traces.Row {
		r := traces.NewRow()
		r.RequestID, r.ScheduledAt = id, at
		return r
	}
	got := ""
	for r := range Sorted(slicesSource([]traces.Row{mk("n", traces.None), mk("c", 3), mk("a", 1), mk("b", 1)})) {
		got += r.RequestID
	}
	if got != "abcn" {
		t.Errorf("got %s, want abcn", got)
	}
}

// scan runs a format's reader over bytes as a fuzz target: whatever is in them,
// every row that comes out is sane and every other is counted.
func scan(t *testing.T, read func(p *pass) error) {
	o := Options{MaxErrors: -1}
	var report Report
	rows := 0
	p := &pass{opts: &o, file: "fuzz", report: &report, emit: func(r *traces.Row) error {
		rows++
		if r.PromptTokens < 1 || r.MaxTokens < 1 || r.ScheduledAt < 0 || r.RequestID == "" {
			t.Errorf("got row %+v", *r)
		}
		if r.BlockSize > 0 && int64(len(r.Blocks)) > ceilDiv(r.PromptTokens, int64(r.BlockSize)) {
			t.Errorf("got %d blocks of %d for %d tokens", len(r.Blocks), r.BlockSize, r.PromptTokens)
		}
		return nil
	}}
	_ = read(p)
	if len(report.Errors) > maxNamed {
		t.Errorf("got %d named errors, want at most %d", len(report.Errors), maxNamed)
	}
}

func FuzzMooncake(f *testing.F) {
	f.Add([]byte(mooncakeText(0, 5)))
	f.Add([]byte("\n{}\n[1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		scan(t, func(p *pass) error { return scanLines(p, bytes.NewReader(data), mooncakeRow) })
	})
}

func FuzzRAGPulse(f *testing.F) {
	f.Add([]byte(`{"timestamp":"1","input_length":600,"output_length":5,"hash_ids":{"sys_prompt":[1],"user_input":[2]},"session_id":"s"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		scan(t, func(p *pass) error { return scanLines(p, bytes.NewReader(data), ragpulseRow()) })
	})
}

func FuzzAzureCSV(f *testing.F) {
	f.Add([]byte("TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n"))
	f.Add([]byte("TIMESTAMP,ContextTokens,GeneratedTokens\n\"2024-05-10 00:00:00+00:00\",1,0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		scan(t, func(p *pass) error { return scanCSV(p, bytes.NewReader(data), azureColumns, azureRow) })
	})
}

func FuzzVidurCSV(f *testing.F) {
	f.Add([]byte("arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,5,2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		scan(t, func(p *pass) error { return scanCSV(p, bytes.NewReader(data), vidurColumns, vidurRow) })
	})
}

func FuzzKvroute(f *testing.F) {
	f.Add([]byte(strings.Join(kvrouteProbeColumns, ",") + "\n0,0,true,0.5,3.1,9.8,11,4.2,4.1,9,success\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := Options{MaxErrors: -1}
		p := &pass{opts: &o, report: &Report{}, emit: func(r *traces.Row) error {
			if r.FirstTokenAt < r.SentAt || r.EndedAt < r.SentAt || r.Turn < 0 {
				t.Errorf("got row %+v", *r)
			}
			return nil
		}}
		_ = scanCSV(p, bytes.NewReader(data), kvrouteProbeColumns, kvrouteProbeRow)
	})
}

func FuzzWeka(f *testing.F) {
	f.Add([]byte(wekaText))
	f.Fuzz(func(t *testing.T, data []byte) {
		scan(t, func(p *pass) error {
			w := weka{pass: p}
			err := w.session(bytes.NewReader(data))
			for i := range w.rows {
				if err := p.emit(&w.rows[i]); err != nil {
					return err
				}
			}
			return err
		})
	})
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte(wekaText))
	f.Add([]byte(mooncakeText(1)))
	f.Add([]byte("TIMESTAMP,ContextTokens,GeneratedTokens\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if format, err := Detect(path); (err == nil) == (format == Unknown) {
			t.Errorf("got %s and %v", format, err)
		}
	})
}

func BenchmarkMooncake(b *testing.B) {
	tr, err := Open(sample(b, "mooncake_fast25_conversation_first3000.jsonl"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; n < b.N; {
		for _, err := range tr.Rows() {
			if err != nil {
				b.Fatal(err)
			}
			if n++; n == b.N {
				break
			}
		}
	}
}
