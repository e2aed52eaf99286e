package convert

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// goNames are words that mean something to us and nothing to a user.
var goNames = regexp.MustCompile(`int64|uint64|int32|float64|json\.|Go |struct|main\.|convert:`)

// wantFault opens and reads the trace and checks the error that ends it, after
// so many good rows. In want, FILE stands for the path.
func wantFault(t *testing.T, path, want string, good int) {
	t.Helper()
	want = strings.ReplaceAll(want, "FILE", path)
	tr, err := Open(path, Options{})
	n := 0
	if err == nil {
		for _, e := range tr.Rows() {
			if err = e; err == nil {
				n++
			}
		}
	}
	var bad *RowError
	switch {
	case err == nil || err.Error() != want:
		t.Errorf("got  %v\nwant %s", err, want)
	case !errors.As(err, &bad) || n != good:
		t.Errorf("%v: got a %T after %d rows, want a RowError after %d", err, err, n, good)
	case goNames.MatchString(strings.ReplaceAll(err.Error(), path, "")):
		t.Errorf("%v: names what only we know", err)
	}
}

func TestMooncakeFaultsAreNamed(t *testing.T) {
	good := strings.TrimSpace(mooncakeText(0))
	for _, c := range []struct{ old, new, want string }{
		{"[0, 1]", "[0]", `field hash_ids: want 2 ids, one per 512 of 600 tokens, got "1"`},
		{"[0, 1]", "[0, -1]", `field hash_ids: want a list of block ids, whole numbers of up to 64 bits, got "-1"`},
		{"[0, 1]", `"y"`, `field hash_ids: want a list of block ids, whole numbers of up to 64 bits, got "y"`},
		{"input_length", "inputs", "field input_length: want a whole number of tokens, 1 or more, got nothing"},
		{"600", `"x"`, `field input_length: want a whole number of tokens, 1 or more, got "x"`},
		{"600", `"600"`, `field input_length: want a whole number of tokens, 1 or more, got the text "600"`},
		{"600", "600.5", `field input_length: want a whole number of tokens, 1 or more, got "600.5"`},
		{"5,", "-5,", `field output_length: want a whole number of tokens, 0 or more, got "-5"`},
		{": 0,", ": -1,", `field timestamp: want milliseconds, 0 or more, got "-1"`},
		{": 0,", `: {"a":1},`, `field timestamp: want milliseconds, 0 or more, got "{\"a\":1}"`},
		{good, "[1]", `want a JSON object, got "[1]"`},
		{good, good[:17], `want a JSON object (byte 17: unexpected end of JSON input), got "{\"timestamp\": 0, "`},
	} {
		path := file(t, "x", good+"\n"+strings.Replace(good, c.old, c.new, 1)+"\n"+good+"\n")
		wantFault(t, path, "FILE: line 2: "+c.want, 1)
		rows, tr := all(t, path, Options{MaxErrors: 1})
		r := tr.Report()
		if remarks := fmt.Sprint(r.Remarks()); len(rows) != 2 || remarks != "[1 row skipped as unreadable skipped: line 2]" {
			t.Errorf("%s: got %d rows and %s, want 2 and line 2 skipped", c.new, len(rows), remarks)
		}
	}
}

func TestRagpulseFaultsAreNamed(t *testing.T) {
	const good = `{"timestamp":"10","input_length":600,"output_length":5,"hash_ids":{"sys_prompt":[1,2],"user_input":[9]},"session_id":"s"}`
	for _, c := range []struct{ old, new, want string }{
		{`"10"`, `"soon"`, `field timestamp: want seconds, 0 or more, got "soon"`},
		{`"10"`, `-1`, `field timestamp: want seconds, 0 or more, got "-1"`},
		{`"10"`, `null`, `field timestamp: want seconds, 0 or more, got nothing`},
		{"600", `"x"`, `field input_length: want a whole number of tokens, 1 or more, got "x"`},
		{`"s"}`, `5}`, `field session_id: want a text, got "5"`},
		{"[1,2]", `[1,"b"]`, `field hash_ids.sys_prompt: want a list of component ids, whole numbers of up to 64 bits, got "b"`},
		{`{"sys_prompt":[1,2],"user_input":[9]}`, "[1]", `field hash_ids: want an object of component ids, got "[1]"`},
		{`"hash_ids":{"sys_prompt":[1,2],"user_input":[9]},`, "", `field hash_ids: want an object of component ids, got nothing`},
	} {
		path := file(t, "x", good+"\n\n"+strings.Replace(good, c.old, c.new, 1)+"\n")
		wantFault(t, path, "FILE: line 3: "+c.want, 1)
	}
}

func TestWekaFaultsAreNamed(t *testing.T) {
	const ids = "want a list of block ids, whole numbers of up to 64 bits"
	for _, c := range []struct{ old, new, want string }{
		{`"in":9`, `"in":"x"`, `request 1: field in: want a whole number of tokens, 1 or more, got "x"`},
		{`"in":13`, `"in":-13`, `request 4: field in: want a whole number of tokens, 1 or more, got "-13"`},
		{`"in":4,"out":1`, `"in":4,"out":1.5`, `request 3: field out: want a whole number of tokens, 0 or more, got "1.5"`},
		{`"t":2.5`, `"t":"now"`, `request 4: field t: want seconds, 0 or more, got "now"`},
		{`"t":2.5`, `"t":-1`, `request 4: field t: want seconds, 0 or more, got "-1"`},
		{`[1,9,3]`, `[1,9.5,3]`, `request 5: field hash_ids: ` + ids + `, got "9.5"`},
		{`[1,9,3]`, `[1,9]`, `request 5: field hash_ids: want 3 ids, one per whole 4 of 12 tokens, got "2"`},
		{`"agent_id":"a"`, `"agent_id":7`, `request 2: field agent_id: want a text, got "7"`},
		{`"block_size":4`, `"block_size":"4"`, `field block_size: want tokens per hash id, a whole number from 1 to 1048576, got the text "4"`},
		{`"block_size":4`, `"block_size":0`, `field block_size: want tokens per hash id, a whole number from 1 to 1048576, got "0"`},
		{`"local"`, `"global"`, `field hash_id_scope: want local, got "global"`},
	} {
		path := file(t, "x", strings.Replace(wekaText, c.old, c.new, 1))
		wantFault(t, path, "FILE: "+c.want, 0)
	}
	wantFault(t, file(t, "x", `{"block_size":4}`), "FILE: field requests: want a list of requests, got nothing", 0)
	wantFault(t, file(t, "x", `{"block_size":4,"requests":[}`), `FILE: want a JSON object (byte 29: invalid character '}' looking for beginning of value), got "{\"block_size\":4,\"requests\":[}"`, 0)
	rows, tr := all(t, file(t, "s.json", strings.Replace(wekaText, `"in":9`, `"in":"x"`, 1)), Options{MaxErrors: 1})
	r := tr.Report()
	if got := fmt.Sprint(r.Remarks()); len(rows) != 3 || !strings.HasSuffix(got, "skipped: s.json request 1]") {
		t.Errorf("got %d rows and %s, want 3 and the skipped request's file and number", len(rows), got)
	}
}

func TestCSVFaultsAreNamed(t *testing.T) {
	head := "arrived_at,num_prefill_tokens,num_decode_tokens\n0,5,5\n"
	for _, c := range []struct{ line, want string }{
		{"x,5,5", `field arrived_at: want a number, got "x"`},
		{",5,5", "field arrived_at: want a number, got nothing"},
		{"NaN,5,5", `field arrived_at: want a number, got "NaN"`},
		{"1,0,5", `field num_prefill_tokens: want a whole number, 1 or more, got "0"`},
		{"1,5", `want 3 fields, got "2"`},
		{`1,"5,5`, `want a CSV record (extraneous or missing " in quoted-field)`},
	} {
		wantFault(t, file(t, "x", head+c.line+"\n"), "FILE: line 3: "+c.want, 1)
	}
}

func TestRemarksCount(t *testing.T) {
	one := Report{Skipped: 1, Filtered: 1, Blank: 1, RaisedOutputs: 1, OutOfOrder: 1, BeforeStart: 1, CutPieces: 1}
	if got := strings.Join(one.Remarks(), "; "); strings.Contains(got, "rows") || strings.Contains(got, "lines") || strings.Contains(got, "ids") {
		t.Errorf("got %s, want every one in the singular", got)
	}
	many := Report{Skipped: 22, Blank: 2, Errors: []*RowError{{Unit: "line", Row: 3}, {Unit: "line", Row: 9}}}
	if got := strings.Join(many.Remarks(), "; "); got != "22 rows skipped as unreadable; 2 blank lines; skipped: line 3, line 9 and 20 more" {
		t.Errorf("got %s", got)
	}
}
