package convert

import (
	"strings"
	"testing"
)

func TestClocksAreLaidOverEachOther(t *testing.T) {
	var k clocks
	for _, row := range [][2]int64{{500, 10_600}, {100, 10_101}, {900, 10_930}} {
		k.see(row[0], row[1])
	}
	if k.first != 100 || k.at(10_101) != 100 || k.at(10_600) != 599 || k.at(0) != -10_001 {
		t.Errorf("got %+v, want the second clock 10,001 ahead, and 100 the earliest arrival", k)
	}
	k = clocks{}
	const late = maxWall * 1e9
	k.see(late, 0)
	if k.at(late) != 2*late {
		t.Errorf("got %d, want the furthest apart two clocks can be without overflow", k.at(late))
	}
}

// What is measured by the second clock may be any amount later there: rows come
// out the same, but for the wall clock's time of the start.
func TestTheSecondClocksOriginDoesNotMatter(t *testing.T) {
	for name, replace := range map[string]*strings.Replacer{
		"blis.csv":            strings.NewReplacer(",17000000", ",15000004"),
		"llmservingsim.jsonl": strings.NewReplacer(": 501.", ": 123456501.", ": 502.", ": 123456502."),
	} {
		text := fixture(t, name)
		want, _ := all(t, file(t, name, text), Options{})
		got, _ := all(t, file(t, name, replace.Replace(text)), Options{})
		if replace.Replace(text) == text {
			t.Fatalf("%s: the clock was not moved", name)
		}
		for i := range want {
			// A float64 of so late a time has some ns less.
			for _, pair := range [][2]int64{
				{got[i].ScheduledAt, want[i].ScheduledAt}, {got[i].SentAt, want[i].SentAt}, {got[i].FirstTokenAt, want[i].FirstTokenAt},
				{got[i].LastTokenAt, want[i].LastTokenAt}, {got[i].EndedAt, want[i].EndedAt},
				{got[i].QueueTime, want[i].QueueTime}, {got[i].PrefillTime, want[i].PrefillTime},
			} {
				if d := pair[0] - pair[1]; d < -50 || d > 50 {
					t.Errorf("%s, row %d: got a time of %d, want %d", name, i, pair[0], pair[1])
				}
			}
		}
	}
}

// What of a trace is taken does not move the clocks.
func TestClocksAreTheWholeFiles(t *testing.T) {
	for _, name := range []string{"blis.csv", "llmservingsim.jsonl"} {
		path := "testdata/" + name
		whole, _ := all(t, path, Options{})
		first, _ := all(t, path, Options{Limit: 1})
		if len(first) != 1 || first[0].ScheduledAt != whole[0].ScheduledAt || first[0].SentAt != whole[0].SentAt || first[0].EndedAt != whole[0].EndedAt {
			t.Errorf("%s: got %+v, want it as in the whole file: %+v", name, first, whole[0])
		}
	}
}
