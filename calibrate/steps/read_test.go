package steps_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvfleet/calibrate/steps"
	"kvfleet/traces"
)

const header = "prefill_requests,prefill_tokens,prefill_context,decode_requests,decode_context,steps,span_ms_median,busy_ms_median\n"

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steps.csv")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadPooledMedians(t *testing.T) {
	l, err := steps.Read(file(t, "\ufeff"+header+"1,128,128,0,0,3,36.44,30.34\n0,0,0,8,2137,21,6.78,6.75\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := steps.Row{Line: 3, DecodeRequests: 8, DecodeContext: 2137, Steps: 21, BusyMS: 6.75, SpanMS: 6.78}
	if len(l.Rows) != 2 || l.Rows[1] != want || !l.Pooled || len(l.Warnings) != 0 {
		t.Errorf("got %+v, want two rows, the second %+v", l, want)
	}
}

func TestReadNamesFileLineAndField(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "is empty, want a step log",
		"a,b\n1,2\n":                             ":1: got columns a,b, want those of pooled medians",
		strings.Replace(header, ",steps", "", 1): ":1: column steps is missing",
		strings.Replace(header, "steps", "steps,stops", 1): `:1: got column "stops"`,
		strings.Replace(header, "steps", "steps,steps", 1): ":1: column steps is there twice",
		header:           "no step that can be used: it has no rows",
		header + "1,2\n": ":2: got 2 fields, want 8",
		header + "1,128,128,0,0,3,36,30\n1,x,128,0,0,3,36,30": `:3: prefill_tokens: got "x", want a whole number`,
		header + "1,1.5,128,0,0,3,36,30":                      `:2: prefill_tokens: got "1.5", want a whole number`,
		header + "2,1,128,0,0,3,36,30":                        ":2: prefill_tokens: got 1, want at least 2",
		header + "1,128,127,0,0,3,36,30":                      ":2: prefill_context: got 127, want at least 128",
		header + "0,0,0,8,7,3,36,30":                          ":2: decode_context: got 7, want at least 8",
		header + "0,0,0,-8,7,3,36,30":                         ":2: decode_requests: got -8, want at least 0",
		header + "0,5,5,8,70,3,36,30":                         ":2: prefill_tokens: got 5, want 0 where prefill_requests is 0",
		header + "1,5,5,0,70,3,36,30":                         ":2: decode_context: got 70, want 0 where decode_requests is 0",
		header + "0,0,0,0,0,3,36,30":                          ":2: decode_requests: got 0, want a request",
		header + "0,0,0,8,70,0,36,30":                         ":2: steps: got 0, want at least 1",
		header + "0,0,0,8,70,3,36,0":                          ":2: busy_ms_median: got 0 ms, want more than 0",
		header + "0,0,0,8,70,3,36,NaN":                        `:2: busy_ms_median: got "NaN", want a number of ms`,
		header + "0,0,0,8,70,3,29,30":                         ":2: span_ms_median: got 29, want at least 30",
		header + "0,0,0,8,70,3,\"29,30":                       ":2: column",
		header + "0,0,0,99999999999999999999,70,3,29,30":      `:2: decode_requests: got "99999999999999999999"`,
	} {
		path := file(t, text)
		if _, err := steps.Read(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want the path and %q", text, err, want)
		}
	}
	if _, err := steps.Read(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("got %v, want that there is no such file", err)
	}
}

// A log of our own, its Arrow stream and its CSV alike. A step that contradicts
// itself is left out and named.
func TestReadStepLogsOfOurOwn(t *testing.T) {
	rows := []traces.StepRow{
		{Start: 5, Duration: 6_050_000, Replica: "a", DecodeRequests: 1, DecodeContext: 267},
		{Start: 6, Duration: 0, Replica: "a", DecodeRequests: 1, DecodeContext: 268},
		{Start: 7, Duration: 30_000_000, Replica: "b", PrefillRequests: 1, PrefillTokens: 128, PrefillContext: 200, Preemptions: 1},
		{Start: 8, Duration: traces.None, Replica: "b", DecodeRequests: 1, DecodeContext: 268},
	}
	arrow := filepath.Join(t.TempDir(), "steps.arrows")
	w, err := traces.CreateSteps(arrow, traces.Meta{}, traces.Options{})
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
	text := "start,duration,replica,prefill_requests,prefill_tokens,prefill_context,decode_requests,decode_context,preemptions\n" +
		"5,6050000,a,0,0,0,1,267,0\n6,0,a,0,0,0,1,268,0\n7,30000000,b,1,128,200,0,0,1\n8,,b,0,0,0,1,268,0\n"
	for path, unit := range map[string]string{arrow: "row 2", file(t, text): "line 3"} {
		l, err := steps.Read(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(l.Rows) != 2 || l.Pooled || l.Rows[0].BusyMS != 6.05 || l.Rows[1].PrefillContext != 200 || l.Rows[1].Steps != 1 {
			t.Errorf("%s: got %+v, want two steps", path, l.Rows)
		}
		if len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "left out 2 steps") || !strings.Contains(l.Warnings[0], unit+": duration: got 0 ms") {
			t.Errorf("%s: got warnings %q, want both steps counted and %s named", path, l.Warnings, unit)
		}
	}
	broken := strings.Replace(text, ",267,", ",many,", 1)
	if _, err := steps.Read(file(t, broken)); err == nil || !strings.Contains(err.Error(), `:2: decode_context: got "many", want a whole number`) {
		t.Errorf("got %v, want the line and field", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(header + "1,128,128,0,0,3,36.44,30.34\n")
	f.Add("start,duration,replica,prefill_requests,prefill_tokens,prefill_context,decode_requests,decode_context,preemptions\n5,6050000,a,0,0,0,1,267,0\n")
	path := filepath.Join(f.TempDir(), "steps")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if l, err := steps.Read(path); err == nil && len(l.Rows) == 0 {
			t.Error("no rows and no error")
		}
	})
}
