package engine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvfleet/sim/kvcache"
	"kvfleet/sim/latency"
)

var update = flag.Bool("update", false, "rewrite testdata with what the engine does")

// TestScenarios plays the stories in testdata. A line is a command; the lines
// that begin with "->" are what came of it.
//
//	engine size=N blocks=N budget=N seqs=N [ttl=D] [async] [events]
//	                            first of all; blocks are the usable ones
//	submit NAME WORD*N+... [tokens=N] [stop=N] [max=N]
//	                            a prompt of N blocks of each word; tokens is its
//	                            length if it does not end with a block
//	at DURATION                 steps that end before then are taken
//	step [N]                    the next step, or N of them, ends
//	run                         until the engine is idle
//	cached WORD*N+...           how many of its blocks are cached
//	kill
//
// A step reads: when it ends; prefill NAME tokens to/of the prompt, with what it
// found cached when it was just admitted; decode NAMES; | NAME: tokens out so
// far; | what waits and how many blocks are free afterwards. Events follow the
// step at whose end they leave: what the next composed step stored and removed.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := tell(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("the story goes otherwise; got\n%s", got)
			}
		})
	}
}

func tell(t *testing.T, text string) string {
	var out strings.Builder
	s := &story{t: t, names: map[uint64]string{}, hashes: map[string]uint64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "->") {
			continue
		}
		fmt.Fprintln(&out, line)
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			s.command(f[0], f[1:])
			for _, answer := range s.said {
				fmt.Fprintln(&out, "->", answer)
			}
			s.said = s.said[:0]
		}
	}
	return out.String()
}

type story struct {
	t      *testing.T
	e      *Engine
	now    time.Duration
	who    []string // by request ID
	hashes map[string]uint64
	names  map[uint64]string // of blocks
	seen   map[int64]int     // admissions told
	target map[int64]int     // tokens to prefill, when last told
	said   []string
	done   []string
	events []string
}

func (s *story) say(format string, args ...any) {
	s.said = append(s.said, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (s *story) FirstToken(*Request, time.Duration) {}

func (s *story) Finished(r *Request, _ time.Duration) { s.done = append(s.done, s.who[r.ID]) }

func (s *story) Stepped(_ time.Duration, l *kvcache.Log) {
	list := func(what string, hashes []uint64) {
		if len(hashes) > 0 {
			what += ":"
			for _, h := range hashes {
				name, ok := s.names[h]
				if !ok {
					name = "generated"
				}
				what += " " + name
			}
			s.events = append(s.events, what)
		}
	}
	list("stored", l.Stored)
	list("removed", l.Removed)
}

func (s *story) command(name string, args []string) {
	opt := map[string]string{}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		opt[k] = v
	}
	number := func(key string, otherwise int) int {
		v, ok := opt[key]
		if !ok {
			return otherwise
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			s.t.Fatalf("%s %v: %v", name, args, err)
		}
		return n
	}
	switch name {
	case "engine":
		s.start(Config{
			BlockSize: number("size", 16), Blocks: number("blocks", 100) + 1,
			TokenBudget: number("budget", 64), MaxSeqs: number("seqs", 8),
			IdleTTL: s.duration(opt["ttl"]), Async: has(args, "async"),
		}, has(args, "events"))
	case "submit":
		r := &Request{ID: int64(len(s.who)), Blocks: s.blocks(args[1])}
		s.who = append(s.who, args[0])
		r.Prompt = number("tokens", len(r.Blocks)*s.e.cfg.BlockSize)
		r.Blocks = r.Blocks[:r.Prompt/s.e.cfg.BlockSize]
		s.target[r.ID] = r.Prompt
		r.Max = number("max", 3)
		r.Stop = number("stop", r.Max)
		s.e.Submit(r, s.now)
		s.tellEvents()
	case "at":
		s.until(s.duration(args[0]))
	case "step":
		n := 1
		if len(args) > 0 {
			n, _ = strconv.Atoi(args[0])
		}
		for range n {
			s.step()
		}
	case "run":
		s.until(1 << 62)
		s.say("idle, %d of %d blocks free", s.e.Pool().Free(), s.e.Pool().Blocks())
	case "cached":
		s.say("%d blocks", s.e.Pool().Match(s.blocks(args[0])))
	case "kill":
		var lost []string
		for _, r := range s.e.Kill() {
			lost = append(lost, fmt.Sprintf("%s after %d tokens", s.who[r.ID], r.Output()))
		}
		s.say("lost %s; %d of %d blocks free", strings.Join(lost, ", "), s.e.Pool().Free(), s.e.Pool().Blocks())
	default:
		s.t.Fatalf("unknown command %q", name)
	}
	if err := s.e.Audit(); err != nil {
		s.t.Fatalf("%s %v: %v", name, args, err)
	}
}

func has(args []string, word string) bool {
	for _, a := range args {
		if a == word {
			return true
		}
	}
	return false
}

func (s *story) duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *story) start(c Config, events bool) {
	if err := c.Validate(); err != nil {
		s.t.Fatal(err)
	}
	m, err := latency.New(testParams())
	if err != nil {
		s.t.Fatal(err)
	}
	s.seen, s.target = map[int64]int{}, map[int64]int{}
	s.e = New(c, m, s, Options{Stepwise: true, Events: events})
}

// blocks names a prompt's blocks by word and place; a chained hash stands for
// all that comes before as well.
func (s *story) blocks(text string) (hashes []uint64) {
	path := ""
	for _, part := range strings.Split(text, "+") {
		word, count, ok := strings.Cut(part, "*")
		n, err := strconv.Atoi(count)
		if !ok || err != nil {
			s.t.Fatalf("prompt %q: want WORD*BLOCKS+...", text)
		}
		for range n {
			path += "/" + word
			h, ok := s.hashes[path]
			if !ok {
				h = uint64(len(s.hashes) + 1)
				s.hashes[path] = h
				s.names[h] = fmt.Sprintf("%s%d", word, len(hashes))
			}
			hashes = append(hashes, h)
		}
	}
	return hashes
}

func (s *story) until(at time.Duration) {
	for {
		due, ok := s.e.Due()
		if !ok || due >= at {
			break
		}
		s.step()
	}
	if at < 1<<62 {
		s.now = at
	}
}

func (s *story) step() {
	due, ok := s.e.Due()
	if !ok {
		s.say("idle")
		return
	}
	s.now = due
	c := s.e.cur
	var parts, out []string
	for _, k := range c.chunks {
		of, admissions := k.r.target, k.r.Preemptions
		if k.r.displaced { // since this step was composed
			of, admissions = s.target[k.r.ID], admissions-1
		}
		s.target[k.r.ID] = of
		p := fmt.Sprintf("prefill %s %d to %d/%d", s.who[k.r.ID], k.n, k.ctx, of)
		if s.seen[k.r.ID] == admissions { // first chunk since it was admitted
			s.seen[k.r.ID]++
			p += fmt.Sprintf(" (%d cached)", k.ctx-k.n)
		}
		parts = append(parts, p)
	}
	var decodes []string
	for _, r := range c.decodes {
		if r == nil {
			decodes = append(decodes, "(burnt)")
		} else {
			decodes = append(decodes, s.who[r.ID])
		}
	}
	if len(decodes) > 0 {
		parts = append(parts, "decode "+strings.Join(decodes, " "))
	}
	if c.preempt > 0 {
		parts = append(parts, fmt.Sprintf("%d preempted", c.preempt))
	}
	told := append([]*Request(nil), c.decodes...)
	for _, k := range c.chunks {
		if k.last {
			told = append(told, k.r)
		}
	}
	s.e.Fire()
	for _, r := range told {
		if r != nil {
			out = append(out, fmt.Sprintf("%s:%d", s.who[r.ID], r.Output()))
		}
	}
	text := fmt.Sprintf("%.1fms %s | %s", float64(due)/1e6, strings.Join(parts, ", "), strings.Join(out, " "))
	if len(s.done) > 0 {
		text += " | done " + strings.Join(s.done, " ")
		s.done = s.done[:0]
	}
	var waiting []string
	for _, r := range s.e.waiting[s.e.head:] {
		waiting = append(waiting, s.who[r.ID])
	}
	if len(waiting) > 0 {
		text += " | waiting " + strings.Join(waiting, " ")
	}
	s.say("%s | %d free", text, s.e.Pool().Free())
	s.tellEvents()
}

func (s *story) tellEvents() {
	for _, e := range s.events {
		s.say("  %s", e)
	}
	s.events = s.events[:0]
}
