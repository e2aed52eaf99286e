package policies_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/policies/residency"
	"kvfleet/policies/router"
)

var update = flag.Bool("update", false, "rewrite testdata with what the policies answer")

// TestScenarios plays the stories in testdata. A line is a command; the lines
// that begin with "->" are what came of it.
//
//	policy CHOICE               first of all
//	add NAME...                 replicas join, numbered in order
//	at DURATION                 time passes
//	route ID key=value...       session=S prompt=WORD*BLOCKS+... tokens=N not=NAME,...
//	first ID / done ID          its first token came / it ended
//	out NAME [forget], in NAME [forget], remove NAME
//	report NAME RATE            the engine's own hit rate
//	stored|removed|cleared NAME SEQ [PROMPT]
//	fleet                       prints inflight and pending tokens of all
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
			got := play(t, string(text))
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

func play(t *testing.T, text string) string {
	var out strings.Builder
	st := &story{t: t, open: map[string]policies.Decision{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "->") {
			continue
		}
		fmt.Fprintln(&out, line)
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			if answer := st.command(fields[0], fields[1:]); answer != "" {
				fmt.Fprintln(&out, "->", answer)
			}
		}
	}
	return out.String()
}

type story struct {
	t      *testing.T
	router *router.Router
	names  []string
	at     time.Duration
	open   map[string]policies.Decision
}

func (st *story) command(verb string, args []string) string {
	st.t.Helper()
	switch verb {
	case "policy":
		st.router = newRouter(st.t, args[0], 0, policies.Bounds{
			BeliefTTL: time.Minute, BeliefBlocks: 1000, BytesPerToken: 4, BlockSize: 16,
		})
	case "add":
		for _, name := range args {
			st.observe(router.Observation{Kind: router.Added, Replica: policies.ReplicaID(len(st.names)), Name: name})
			st.names = append(st.names, name)
		}
	case "at":
		at, err := time.ParseDuration(args[0])
		st.must(err)
		st.at = at
	case "route":
		return st.route(args[0], args[1:])
	case "first":
		d := st.open[args[0]]
		st.router.Prefilled(st.at, d.Replica, d.Pending)
		d.Pending = 0
		st.open[args[0]] = d
	case "done":
		d := st.open[args[0]]
		st.router.Done(st.at, d.Replica, d.Pending)
		delete(st.open, args[0])
	case "fleet":
		var parts []string
		for i, name := range st.names {
			id := policies.ReplicaID(i)
			parts = append(parts, fmt.Sprintf("%s %d/%d", name, st.router.InFlight(id), st.router.PendingPrefill(id)))
		}
		return strings.Join(parts, ", ")
	default:
		return st.learn(verb, args)
	}
	return ""
}

func (st *story) learn(verb string, args []string) string {
	o := router.Observation{Replica: st.replica(args[0])}
	o.Forget = args[len(args)-1] == "forget"
	events := map[string]residency.Kind{
		"stored": residency.Stored, "removed": residency.Removed, "cleared": residency.Cleared,
	}
	switch verb {
	case "out":
		o.Kind = router.OutOfRotation
	case "in":
		o.Kind = router.InRotation
	case "remove":
		o.Kind = router.Removed
	case "report":
		rate, err := strconv.ParseFloat(args[1], 64)
		st.must(err)
		o.Kind, o.HitRate = router.Report, rate
	default:
		kind, ok := events[verb]
		if !ok {
			st.t.Fatalf("unknown command %q", verb)
		}
		seq, err := strconv.ParseUint(args[1], 10, 64)
		st.must(err)
		e := residency.Event{Kind: kind}
		if len(args) > 2 {
			e.Hashes = st.prompt(args[2])
		}
		o.Kind, o.Seq, o.Events = router.Events, seq, []residency.Event{e}
		gaps := st.router.Gaps()
		st.observe(o)
		if st.router.Gaps() > gaps {
			return "gap: what " + args[0] + " reported is forgotten"
		}
		return ""
	}
	st.observe(o)
	return ""
}

func (st *story) route(id string, args []string) string {
	var q policies.Request
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "session":
			q.Session = value
		case "prompt":
			q.Prefix = st.prompt(value)
			q.Blocks, q.PromptTokens = q.Prefix, 16*len(q.Prefix)
		case "untokenized":
			q.Blocks = nil
		case "not":
			for _, name := range strings.Split(value, ",") {
				q.Exclude = append(q.Exclude, st.replica(name))
			}
		default:
			st.t.Fatalf("route %s: unknown key %q", id, key)
		}
	}
	d, err := st.router.Route(st.at, q)
	if err != nil {
		return err.Error()
	}
	st.open[id] = d
	answer := fmt.Sprintf("%s %s inflight=%d", st.names[d.Replica], d.Reason, d.InFlight)
	if len(q.Prefix) > 0 {
		answer += fmt.Sprintf(" match=%d/%d pending=%d", d.Match, len(q.Prefix), d.Pending)
	}
	if d.Declined != policies.NoReplica {
		answer += fmt.Sprintf(", declined %s inflight=%d match=%d", st.names[d.Declined], d.DeclinedInFlight, d.DeclinedMatch)
	}
	return answer
}

// prompt turns "sys*4+a*2" into the chained hashes of four blocks of sys and two
// of a.
func (st *story) prompt(text string) []uint64 {
	var chain []uint64
	h := fnv.New64a()
	for _, part := range strings.Split(text, "+") {
		word, times, _ := strings.Cut(part, "*")
		n, err := strconv.Atoi(times)
		st.must(err)
		for range n {
			h.Write([]byte(word))
			chain = append(chain, h.Sum64())
		}
	}
	return chain
}

func (st *story) replica(name string) policies.ReplicaID {
	for i, n := range st.names {
		if n == name {
			return policies.ReplicaID(i)
		}
	}
	st.t.Fatalf("unknown replica %q", name)
	return policies.NoReplica
}

func (st *story) observe(o router.Observation) { st.router.Observe(st.at, o) }

func (st *story) must(err error) {
	st.t.Helper()
	if err != nil {
		st.t.Fatal(err)
	}
}
