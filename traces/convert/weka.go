package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"
	"sort"
	"time"

	"kvfleet/traces"
	"kvfleet/traces/seed"
)

// maxSession is the largest session file read.
const maxSession = 1 << 30

// wekaSession is one Claude-Code session.
type wekaSession struct {
	ID        string            `json:"id"`
	BlockSize *int32            `json:"block_size"`
	Scope     string            `json:"hash_id_scope"`
	Requests  []json.RawMessage `json:"requests"`
}

// wekaRequest is a request, or a sub-agent with requests of its own. t is seconds
// from the start of the session, or of the sub-agent it stands in.
type wekaRequest struct {
	T        *float64          `json:"t"`
	Type     string            `json:"type"`
	In       *int64            `json:"in"`
	Out      *int64            `json:"out"`
	Hashes   []uint64          `json:"hash_ids"`
	Agent    string            `json:"agent_id"`
	Requests []json.RawMessage `json:"requests"`
}

// wekaWants is what a field holds, in words.
func wekaWants(field string) string {
	switch field {
	case "id", "agent_id", "type", "hash_id_scope":
		return "a text"
	case "block_size":
		return wantBlockSize
	case "requests":
		return "a list of requests"
	case "t":
		return wantSeconds
	case "in":
		return wantInput
	case "out":
		return wantOutput
	}
	return "a list of block ids, whole numbers of up to 64 bits"
}

const wantBlockSize = "tokens per hash id, a whole number from 1 to 1048576"

// readWeka reads one session file, or all of a directory merged in order of
// arrival. Sessions keep their recorded times: a turn is due when it was, not a
// think time after the previous answer, and session k starts k*Stagger after the
// first.
func readWeka(p *pass) error {
	files := []string{p.file}
	if dir, err := kind(p.file); err != nil {
		return err
	} else if dir {
		if files, err = sessionFiles(p.file); err != nil {
			return err
		}
	}
	var rows []traces.Row
	for k, path := range files {
		f, err := open(path)
		if err != nil {
			return err
		}
		in := *p
		in.file, in.unit = path, unitRequest
		w := weka{pass: &in, start: int64(k) * int64(p.opts.Stagger), rows: rows}
		err = w.session(f)
		f.Close() // only read: nothing can be lost
		if err != nil {
			return err
		}
		rows = w.rows
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].ScheduledAt < rows[j].ScheduledAt })
	for i := range rows {
		if err := p.emit(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// weka collects the rows of one session file.
type weka struct {
	*pass
	start  int64 // of the session, ns
	key    uint64
	block  int32
	number int // request in the file, from 1
	rows   []traces.Row
	spine  []uint64 // chained ids of the last prompts, which rows share
}

func (w *weka) session(in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, maxSession+1))
	if err != nil {
		return fileError(w.file, err)
	}
	if len(text) > maxSession {
		return fmt.Errorf("%s: is larger than %d bytes, want a session of at most that", w.file, maxSession)
	}
	text = bytes.TrimPrefix(text, []byte(bom))
	var s wekaSession
	if err := json.Unmarshal(text, &s); err != nil {
		return w.badJSON(0, text, err, wekaWants)
	}
	if s.BlockSize == nil || *s.BlockSize < 1 || *s.BlockSize > 1<<20 {
		return w.bad(0, "block_size", wantBlockSize, show(s.BlockSize))
	}
	if s.Scope != "local" && s.Scope != "" {
		return w.bad(0, "hash_id_scope", "local", s.Scope)
	}
	if s.Requests == nil {
		return w.bad(0, "requests", "a list of requests", "")
	}
	if s.ID == "" {
		s.ID = filepath.Base(w.file)
	}
	// Ids mean nothing outside the file; the session's name keeps those of
	// different files apart, wherever the files lie.
	h := fnv.New64a()
	io.WriteString(h, s.ID)
	w.key, w.block = h.Sum64(), *s.BlockSize
	return w.requests(s.Requests, s.ID, w.start, 8)
}

// requests adds the requests of a session or sub-agent that starts at base.
func (w *weka) requests(list []json.RawMessage, session string, base int64, depth int) error {
	turn := int32(0)
	for _, text := range list {
		w.number++
		q := &wekaRequest{}
		if err := json.Unmarshal(text, q); err != nil {
			if err := w.badJSON(w.number, text, err, wekaWants); err != nil {
				return err
			}
			continue
		}
		if q.T == nil || !(*q.T >= 0) || *q.T > maxMillis/1000 {
			if err := w.bad(w.number, "t", wantSeconds, show(q.T)); err != nil {
				return err
			}
			continue
		}
		at := base + nanos(*q.T, float64(time.Second))
		var err error
		if q.Type == "subagent" {
			name := q.Agent
			if name == "" {
				name = fmt.Sprint("agent-", w.number)
			}
			if depth == 0 {
				err = w.bad(w.number, "requests", "sub-agents nested at most 8 deep", "more")
			} else {
				err = w.requests(q.Requests, session+"/"+name, at, depth-1)
			}
		} else {
			var ok bool
			if ok, err = w.request(q, session, turn, at); ok {
				turn++
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *weka) request(q *wekaRequest, session string, turn int32, at int64) (bool, error) {
	r := traces.NewRow()
	if ok, err := w.lengths(w.number, &r, "in", q.In, "out", q.Out); !ok {
		return false, err
	}
	if want := *q.In / int64(w.block); int64(len(q.Hashes)) != want {
		return false, w.bad(w.number, "hash_ids", fmt.Sprintf("%d ids, one per whole %d of %d tokens", want, w.block, *q.In), fmt.Sprint(len(q.Hashes)))
	}
	r.RequestID = fmt.Sprint(session, "#", turn)
	r.Session, r.SessionSource, r.Turn = session, traces.SessionSupplied, turn
	r.ScheduledAt = at
	r.BlockSize, r.Blocks = w.block, w.chain(q.Hashes)
	w.rows = append(w.rows, r)
	return true, nil
}

// chain turns a prompt's ids into chained ones, so that an id names the whole
// prompt up to it even in a file whose ids name only their block. Prompts of a
// session mostly extend one another, and those share one slice.
func (w *weka) chain(ids []uint64) []uint64 {
	chained := w.key
	same := true
	for i, id := range ids {
		chained = seed.Mix(chained, id)
		if same = same && i < len(w.spine) && w.spine[i] == chained; same {
			continue
		}
		if i < len(w.spine) {
			// The prompts part here. Rows hold the old slice: start another.
			w.spine = append(make([]uint64, 0, len(ids)), w.spine[:i]...)
		}
		w.spine = append(w.spine, chained)
	}
	return w.spine[:len(ids):len(ids)]
}
