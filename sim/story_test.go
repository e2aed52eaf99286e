package sim

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvfleet/traces"
)

var update = flag.Bool("update", false, "rewrite testdata with what the fleet does")

// TestStories plays the stories in testdata on the fleet of testdata/fleet.yaml.
// A story is what happens to a fleet, and below it, in lines that begin with
// "->", what came of it and when.
//
//	replicas N                    instead of the fleet's two, which are a and b
//	policy CHOICE
//	set NAME=TIME                 start_up, event_delay, tokenize, service or egress
//	at TIME send NAME PROMPT OUT  a client sends a prompt whose answer has OUT tokens
//	at TIME KIND REPLICA key=...  a fault, for= and factor= as in a fault schedule
//
// A prompt is "sys*4+a*8": four blocks of sys, then eight of a, each of 16
// tokens, and 8 tokens more.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
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
	t.Helper()
	s := &story{t: t, cfg: Config{Fleet: loadFleet(t, "testdata/fleet.yaml"), Audit: true, KeepIDs: true}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "->") {
			continue
		}
		fmt.Fprintln(&s.out, line)
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			s.read(fields)
		}
	}
	s.play()
	return s.out.String()
}

// A story is what is to happen, the fleet it happens to, and its telling.
type story struct {
	t      *testing.T
	cfg    Config
	out    strings.Builder
	known  []seen
	gaps   uint64
	opened map[int64]bool // calls whose first token was told
}

// seen is what was last told of a replica.
type seen struct {
	rotation, alive bool
	preempted       int
}

func (s *story) read(fields []string) {
	f := s.cfg.Fleet
	switch fields[0] {
	case "replicas":
		s.cfg.Fleet = f.Scale(s.number(fields[1]))
		for i := range s.cfg.Fleet.Replicas {
			s.cfg.Fleet.Replicas[i].Name = string(rune('a' + i))
		}
	case "policy":
		s.cfg.Policy = choice(s.t, fields[1])
	case "set":
		name, value, _ := strings.Cut(fields[1], "=")
		d := s.time(value)
		switch name {
		case "start_up":
			f.Health.StartUp = d
		case "event_delay":
			f.Router.EventDelayMS = d.Seconds() * 1000
		case "tokenize":
			f.Router.TokenizeMS = d.Seconds() * 1000
		case "service":
			f.FrontEnd.ServiceMS = d.Seconds() * 1000
		case "egress":
			f.FrontEnd.EgressMS = d.Seconds() * 1000
		default:
			s.t.Fatalf("set: unknown name %q", name)
		}
	case "at":
		at := s.time(fields[1])
		if fields[2] != "send" {
			s.fault(at, fields[2:])
			return
		}
		p := sent(fields[4])
		p.RequestID, p.Session, p.Source, p.ScheduledAt = fields[3], fields[3], traces.SessionSupplied, int64(at)
		p.Stop = s.number(fields[5])
		p.Max = p.Stop
		s.cfg.Trace = append(s.cfg.Trace, p)
	default:
		s.t.Fatalf("unknown line %q", strings.Join(fields, " "))
	}
}

func (s *story) fault(at time.Duration, fields []string) {
	x := Fault{At: at, Kind: fields[0], Replica: fields[1]}
	for _, arg := range fields[2:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "for":
			x.For = s.time(value)
		case "factor":
			x.Factor = float64(s.number(value))
		default:
			s.t.Fatalf("fault: unknown key %q", key)
		}
	}
	s.cfg.Faults = append(s.cfg.Faults, x)
}

// sent reads "sys*4+a*8" into a prompt whose blocks are chained hashes.
func sent(text string) Prompt {
	var p Prompt
	h := fnv.New64a()
	for _, part := range strings.Split(text, "+") {
		word, times, _ := strings.Cut(part, "*")
		n, err := strconv.Atoi(times)
		if err != nil {
			panic("sim: story: prompt " + text)
		}
		for range n {
			h.Write([]byte(word))
			p.Blocks = append(p.Blocks, h.Sum64()>>1|1)
		}
	}
	p.Prefix = p.Blocks
	p.Tokens = 16*len(p.Blocks) + 8
	p.Bytes = 4 * p.Tokens
	return p
}

// play runs the story and writes down what the router and the clients see.
func (s *story) play() {
	slices.SortStableFunc(s.cfg.Trace, func(a, b Prompt) int { return cmp.Compare(a.ScheduledAt, b.ScheduledAt) })
	names := map[string]string{}
	s.opened = map[int64]bool{}
	s.cfg.Decided = func(d DecisionRecord) {
		names[d.Request] = d.Session
		line := fmt.Sprintf("%s to %s: %s, %d in flight", d.Session, d.Replica, d.Reason, d.InFlight)
		if s.cfg.Policy.Spec.NeedsBelief || s.cfg.Policy.Spec.NeedsEvents {
			line += fmt.Sprintf(", match %d tokens", d.Match)
		}
		if d.Reroutes > 0 {
			line += fmt.Sprintf(" (placed again, %d)", d.Reroutes)
		}
		s.say(d.At, line)
	}
	drive(s.t, s.cfg, func(r *traces.Row) { s.ended(r) }, func(c *cluster) { s.look(c, names) })
}

func (s *story) ended(r *traces.Row) {
	line := fmt.Sprintf("%s %s", r.RequestID, r.Outcome)
	if r.Replica != "" {
		line += " on " + r.Replica
	}
	if r.CachedTokens != traces.None {
		line += fmt.Sprintf(": %d of %d tokens cached", r.CachedTokens, r.EnginePromptTokens)
	}
	if r.OutputTokens != traces.None {
		line += fmt.Sprintf(", %d tokens out", r.OutputTokens)
	}
	if r.Error != "" {
		line += ": " + r.Error
	}
	s.say(time.Duration(r.EndedAt), line)
}

// look tells what has changed since the last event.
func (s *story) look(c *cluster, names map[string]string) {
	now := c.loop.Now()
	for i := range c.calls {
		if k := &c.calls[i]; k.open && k.prefilled && !s.opened[k.serial] {
			s.opened[k.serial] = true
			s.say(now, names[k.name()]+" reads its first token")
		}
	}
	for i, n := range c.replicas {
		if len(s.known) == i {
			s.known = append(s.known, seen{true, true, 0})
		}
		was := &s.known[i]
		if n.alive != was.alive {
			s.say(now, n.name+map[bool]string{true: " serves again, its cache empty", false: " dies"}[n.alive])
		}
		if n.rotation != was.rotation {
			s.say(now, n.name+map[bool]string{true: " is back in rotation", false: " is out of rotation"}[n.rotation])
		}
		preempted := n.engine.Preemptions()
		if preempted != was.preempted {
			s.say(now, n.name+" preempts a request")
		}
		*was = seen{n.rotation, n.alive, preempted}
	}
	if g := c.router.Gaps(); g != s.gaps {
		s.gaps = g
		s.say(now, "a gap in the events: what was reported is forgotten")
	}
}

func (s *story) say(at time.Duration, line string) {
	fmt.Fprintf(&s.out, "-> %9.1f ms  %s\n", float64(at)/1e6, line)
}

func (s *story) time(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *story) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
