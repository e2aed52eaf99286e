package convert

import (
	"encoding/json"
	"fmt"
	"strconv"

	"kvfleet/traces"
	"kvfleet/traces/seed"
)

// ragpulseBlock is how many tokens one component of a RAGPulse prompt is taken
// for. The trace does not hold component lengths, only the prompt's; a prompt has
// 210 to 406 tokens per component, and 256 is the largest power of two at which
// nearly every component fits its prompt. Tokens beyond the components make
// blocks that no other request shares, so reuse is understated, not invented.
const ragpulseBlock = 256

// ragpulseRow reads a line of a RAGPulse trace. Component ids name a piece of
// text wherever it stands, so they are chained here, in prompt order: system
// prompt, passages, history, web search, user input. Turns count a session's
// rows in file order.
func ragpulseRow() lineRow {
	turns := map[string]int32{}
	return func(p *pass, number int, line []byte, r *traces.Row) (bool, error) {
		var v struct {
			Timestamp json.RawMessage `json:"timestamp"` // the source has numbers in quotes
			Input     *int64          `json:"input_length"`
			Output    *int64          `json:"output_length"`
			Session   string          `json:"session_id"`
			Hashes    *struct {
				System   []uint64 `json:"sys_prompt"`
				Passages []uint64 `json:"passages_ids"`
				History  []uint64 `json:"history"`
				Web      []uint64 `json:"web_search"`
				User     []uint64 `json:"user_input"`
			} `json:"hash_ids"`
		}
		if err := json.Unmarshal(line, &v); err != nil {
			return false, p.badJSON(number, line, err, ragpulseWants)
		}
		seconds, err := strconv.ParseFloat(unquoted(string(v.Timestamp)), 64)
		if err != nil || !(seconds >= 0) || seconds > maxMillis/1000 {
			return false, p.bad(number, "timestamp", wantSeconds, nullEmpty(string(v.Timestamp)))
		}
		if ok, err := p.lengths(number, r, "input_length", v.Input, "output_length", v.Output); !ok {
			return false, err
		}
		if *v.Input > maxLine {
			return false, p.bad(number, "input_length", "a prompt of a believable length", show(v.Input))
		}
		if v.Hashes == nil {
			return false, p.bad(number, "hash_ids", wantComponents, "")
		}
		r.RequestID = fmt.Sprint("ragpulse-", number)
		r.ScheduledAt = nanos(seconds, 1e9)
		r.Session, r.Turn = v.Session, turns[v.Session]
		if v.Session != "" {
			r.SessionSource = traces.SessionSupplied
			turns[v.Session]++
		}
		h := v.Hashes
		r.SystemPrompt = len(h.System) > 0
		r.BlockSize = ragpulseBlock
		r.Blocks = p.chain(number, *v.Input, h.System, h.Passages, h.History, h.Web, h.User)
		return true, nil
	}
}

// chain makes one chained id per block of a prompt of so many tokens: from the
// components while there are any, then from the row's own number.
func (p *pass) chain(number int, tokens int64, components ...[]uint64) []uint64 {
	blocks := make([]uint64, 0, ceilDiv(tokens, ragpulseBlock))
	chained := uint64(0)
	for kind, ids := range components {
		for _, id := range ids {
			if len(blocks) == cap(blocks) {
				p.report.CutPieces++
				continue
			}
			chained = seed.Mix(chained, uint64(kind), id)
			blocks = append(blocks, chained)
		}
	}
	for len(blocks) < cap(blocks) {
		chained = seed.Mix(chained, ^uint64(0), uint64(number))
		blocks = append(blocks, chained)
	}
	return blocks
}

// ragpulseWants is what a field holds, in words.
func ragpulseWants(field string) string {
	switch field {
	case "input_length":
		return wantInput
	case "output_length":
		return wantOutput
	case "session_id":
		return "a text"
	case "hash_ids":
		return wantComponents
	}
	return "a list of component ids, whole numbers of up to 64 bits"
}
