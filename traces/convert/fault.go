package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// What fields hold, in words.
const (
	wantMillis     = "milliseconds, 0 or more"
	wantSeconds    = "seconds, 0 or more"
	wantInput      = "a whole number of tokens, 1 or more"
	wantOutput     = "a whole number of tokens, 0 or more"
	wantComponents = "an object of component ids"
)

// A RowError is a row that could not be read.
type RowError struct {
	File string
	// Unit is what Row counts: "line", or "request" in a Weka file.
	Unit  string
	Row   int    // from 1; 0 when the file as a whole is meant
	Field string // empty when the row as a whole is meant
	Want  string
	Got   string // as the file has it; empty if it has nothing there
}

func (e *RowError) Error() string {
	where := e.File + ":"
	if e.Row > 0 {
		where += fmt.Sprintf(" %s %d:", e.Unit, e.Row)
	}
	if e.Field != "" {
		where += " field " + e.Field + ":"
	}
	where += " want " + e.Want
	if e.Field == "" && e.Got == "" {
		return where
	}
	return where + ", got " + got(e.Got)
}

// got shows a value. A JSON text is shown without its own quotes, but is called
// a text if it would pass for a number.
func got(raw string) string {
	text := unquoted(raw)
	_, err := strconv.ParseFloat(text, 64)
	kind := ""
	if err == nil && text != raw {
		kind = "the text "
	}
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	if raw == "" {
		return "nothing"
	}
	return kind + strconv.Quote(text)
}

// unquoted is the text of a JSON string, or anything else as it is.
func unquoted(raw string) string {
	var text string
	if !strings.HasPrefix(raw, `"`) || json.Unmarshal([]byte(raw), &text) != nil {
		return raw
	}
	return text
}

func nullEmpty(raw string) string {
	if raw == "null" {
		return ""
	}
	return raw
}

// badJSON reports JSON text that is not the object wanted; wants says in words
// what a field holds.
func (p *pass) badJSON(number int, text []byte, err error, wants func(field string) string) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return p.bad(number, wrong.Field, wants(wrong.Field), valueOf(text, wrong.Field))
	case errors.As(err, &syntax):
		return p.bad(number, "", fmt.Sprintf("a JSON object (byte %d: %v)", syntax.Offset, syntax), head(text))
	}
	return p.bad(number, "", "a JSON object", head(text))
}

// head is enough of a text to recognise it by.
func head(text []byte) string { return string(text[:min(len(text), 100)]) }

// valueOf is the text of a field of a JSON object, named by its path; of a list,
// the entry that is no block id.
func valueOf(object []byte, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		var fields map[string]json.RawMessage
		if json.Unmarshal(object, &fields) != nil || fields[name] == nil {
			return head(object)
		}
		object = fields[name]
	}
	object = bytes.TrimSpace(object)
	var list []json.RawMessage
	if json.Unmarshal(object, &list) == nil {
		var id uint64
		for _, entry := range list {
			if json.Unmarshal(entry, &id) != nil {
				return string(entry)
			}
		}
	}
	return string(object)
}
