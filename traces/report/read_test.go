package report

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
)

const contract = "driver,load,working_set,skew,policy,parameters,repetition,requests,success,slo_violation,failed,dropped,cancelled," +
	"goodput_rps,throughput_rps,ttft_p50_ms,ttft_p99_ms,itl_p50_ms,e2e_p50_ms,prefix_cache_hit_rate," +
	"recomputed_prefill_tokens_per_request,busiest_replica_share,spill_share,idle_before_evict_p90_s"

const goodRow = `closed,32,1,0,prefix_affinity,"spill_factor=1.5,ttl=10m",0,100,98,5,1,1,0,9.3,9.8,100,200,15,1200,0.7,500,0.2,,`

func decode(t *testing.T, text string) ([]Cell, error) {
	t.Helper()
	return DecodeCells(strings.NewReader(text), "cells.csv")
}

func readTestCells(t testing.TB) []Cell {
	t.Helper()
	cells, err := ReadCells("testdata/cells.csv")
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

func TestHeaderIsTheContract(t *testing.T) {
	if got := strings.Join(Header(), ","); got != contract {
		t.Errorf("got %s, want %s", got, contract)
	}
}

func TestReadCell(t *testing.T) {
	cells, err := decode(t, contract+"\n"+goodRow+"\n")
	if err != nil {
		t.Fatal(err)
	}
	c := cells[0]
	if c.Load != 32 || c.Parameters != "spill_factor=1.5,ttl=10m" || c.SLOViolation != 5 || c.RecomputedPrefillTokens != 500 {
		t.Errorf("got %+v", c)
	}
	if !math.IsNaN(c.SpillShare) || !math.IsNaN(c.IdleBeforeEvictP90Second) {
		t.Errorf("empty measures: got %v and %v, want NaN", c.SpillShare, c.IdleBeforeEvictP90Second)
	}
}

// Columns are found by name: another order, a byte order mark and more columns
// change nothing.
func TestReadByName(t *testing.T) {
	names, fields := strings.Split(contract, ","), strings.Split(`closed,32,1,0,round_robin,,0,100,98,5,1,1,0,9.3,9.8,100,200,15,1200,0.7,500,0.2,,`, ",")
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
		fields[i], fields[j] = fields[j], fields[i]
	}
	got, err := decode(t, "\ufeffnews,"+strings.Join(names, ",")+"\nx,"+strings.Join(fields, ",")+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if got[0].GoodputRPS != 9.3 || got[0].Policy != "round_robin" || got[0].BusiestReplicaShare != 0.2 {
		t.Errorf("got %+v", got[0])
	}
}

func TestFaultsNameFileRowAndField(t *testing.T) {
	change := func(field int, value string) string {
		fields := strings.Split(strings.Replace(goodRow, `"spill_factor=1.5,ttl=10m"`, "spill_factor=1.5", 1), ",")
		fields[field] = value
		return contract + "\n" + strings.Replace(goodRow, ",0,100,", ",7,100,", 1) + "\n" + strings.Join(fields, ",") + "\n"
	}
	for _, c := range []struct{ text, want string }{
		{change(0, "half-open"), `cells.csv: row 2 (line 3), field driver: got "half-open", want closed or open`},
		{change(1, "0"), `field load: got "0", want a number above 0`},
		{change(2, "NaN"), `field working_set: got "NaN", want a number above 0`},
		{change(3, "-1"), `field skew: got "-1", want a number of at least 0`},
		{change(4, ""), `field policy: got "", want a policy name`},
		{change(5, "spill_factor"), `field parameters: got "spill_factor", want k=v`},
		{change(6, "1.5"), `field repetition: got "1.5", want a whole number`},
		{change(7, "99"), `field requests: got "99", want at least success + failed + dropped + cancelled`},
		{change(9, "99"), `field slo_violation: got "99", want at most success, which is 98`},
		{change(13, ""), `field goodput_rps: got "", want a number of at least 0`},
		{change(13, "fast"), `field goodput_rps: got "fast", want a number of at least 0`},
		{change(15, "+Inf"), `field ttft_p50_ms: got "+Inf", want a number of at least 0, or nothing`},
		{change(19, "1.01"), `field prefix_cache_hit_rate: got "1.01", want a number from 0 to 1, or nothing`},
		{contract + "\n" + goodRow + "\n" + goodRow + "\n", `row 2 (line 3), field repetition: got "0", want every cell once, row 1 is the same cell`},
		{contract + "\nclosed,32\n", "cells.csv: row 1 (line 2): 2 fields, want 24"},
		{contract + "\n", "cells.csv: no rows after the header"},
		{"", "cells.csv: empty, want a header with driver,load,working_set,skew"},
		{"driver,load\n", "cells.csv: header: missing working_set, skew, policy"},
		{"driver,driver\n", `cells.csv: header: column "driver" is there twice`},
	} {
		_, err := decode(t, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want …%s…", err, c.want)
		}
	}
}

func TestAllFaultsOfAFileUpToTen(t *testing.T) {
	bad := strings.Replace(strings.Replace(goodRow, "closed", "shut", 1), "9.3", "x", 1)
	_, err := decode(t, contract+"\n"+strings.Repeat(bad+"\n", 20))
	if err == nil {
		t.Fatal("got no error")
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 11 || !strings.HasSuffix(lines[10], "the rest was not read") {
		t.Errorf("got %d lines:\n%s", len(lines), err)
	}
}

func TestWriteCellsSortsAndRoundTrips(t *testing.T) {
	cells := readTestCells(t)
	var a, b bytes.Buffer
	if err := WriteCells(&a, cells); err != nil {
		t.Fatal(err)
	}
	reversed := make([]Cell, len(cells))
	for i, c := range cells {
		reversed[len(cells)-1-i] = c
	}
	if err := WriteCells(&b, reversed); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Error("the order of the cells changed the file")
	}
	again, err := DecodeCells(&a, "again")
	if err != nil {
		t.Fatal(err)
	}
	var c bytes.Buffer
	if err := WriteCells(&c, again); err != nil {
		t.Fatal(err)
	}
	if c.String() != b.String() {
		t.Errorf("got\n%swant\n%s", c.String(), b.String())
	}
}

// Whatever is read can be written, read again and written as the same bytes.
func FuzzReadCells(f *testing.F) {
	whole, err := os.ReadFile("testdata/cells.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(contract + "\n" + goodRow))
	f.Add([]byte(strings.Replace(contract+"\n"+goodRow, "9.3", "-0", 1)))
	f.Add([]byte("\xef\xbb\xbf" + contract + "\r\n" + goodRow + "\r\n\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cells, err := DecodeCells(bytes.NewReader(data), "fuzz")
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := WriteCells(&first, cells); err != nil {
			t.Fatal(err)
		}
		text := first.String()
		again, err := DecodeCells(&first, "again")
		if err != nil {
			t.Fatalf("what was written is refused: %v\n%s", err, text)
		}
		if err := WriteCells(&second, again); err != nil {
			t.Fatal(err)
		}
		if second.String() != text {
			t.Errorf("got\n%swant\n%s", second.String(), text)
		}
	})
}
