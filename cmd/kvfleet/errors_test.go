package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMistakesAreNamed(t *testing.T) {
	dir := t.TempDir()
	faults := write(t, "faults.yaml", "faults:\n  - {at: 1s, replica: replica-9, kind: kil}\n")
	typo := write(t, "typo.yaml", "faults:\n  - {at: 1s, replica: replica-0, kind: kill, four: 3s}\n")
	lengths := write(t, "lengths.csv", "num_prefill_tokens,num_decode_tokens\n10,3\n")
	badFleet := write(t, "fleet.yaml", "name: x\nreplica: []\n")
	for _, c := range []struct {
		args   string
		status int
		want   []string // each on a line of its own
	}{
		{"swep", 2, []string{`unknown command "swep"`}},
		{"trace", 2, []string{"want a command, one of generate, convert"}},
		{"trace exprot x", 2, []string{`did you mean "export"?`}},
		{"sweep --nonsense", 2, []string{"unknown flag: --nonsense"}},
		{"fleets show", 2, []string{"accepts 1 arg(s)"}},
		{"fleets show rtx4090", 1, []string{`fleet "rtx4090": no such fleet or file`}},
		{"fleets show " + badFleet, 1, []string{"line 2: unknown key replica"}},
		{"sweep --users x --skew -1,nan --workers 0 --window 1s --policy prefix_afinity --policy prefix_affinity:spil_factor=1,ttl=-1s", 2, []string{
			`--users: got "x"`, `--skew: got "-1"`, `--workers: got "0"`, "--warmup: got 50s of a window of 1s", "--out: missing",
			`did you mean "prefix_affinity"?`, `unknown parameter "spil_factor": did you mean "spill_factor"?`, "ttl=-1s is out of range",
		}},
		{"sweep --out " + dir + " --users 1 --rate 2", 2, []string{"--users and --rate: want one of them"}},
		{"sweep --out " + dir + " --arrivals poisson", 2, []string{"--arrivals: means nothing without --rate"}},
		{"sweep --out " + dir + " --rate 2 --arrivals gamma", 2, []string{"--arrivals gamma: want a --shape too"}},
		{"sweep --out " + dir + " --rate 2 --shape 2", 2, []string{"--shape: means nothing without --arrivals gamma"}},
		{"sweep --out " + dir + " --working-set 1,1", 2, []string{"--working-set: 1 is given twice"}},
		{"sweep --out " + dir + " --working-set 0.0001", 2, []string{"--working-set: workload: working set: 0.0001 of 629760 fleet tokens is less than one session"}},
		{"sweep --out " + dir + " --policy session_affinity --policy session_affinity:virtual_nodes=128", 2, []string{"--policy: session_affinity with virtual_nodes=128 is given twice"}},
		{"sweep --out " + dir + " --fleet nowhere", 2, []string{`--fleet: fleet "nowhere"`}},
		{"map " + dir, 1, []string{"cells.csv: no such file"}},
		{"map " + dir + " --policy round_robin", 2, []string{"--policy and --baseline: want both or neither"}},
		{"validate " + dir, 2, []string{"--measured: missing"}},
		{"run --limit 3 --only-session x", 2, []string{"--limit: means nothing without --trace", "--only-session: means nothing without --trace"}},
		{"run --trace x --users 3 --skew 1", 2, []string{"--users: means nothing with --trace", "--skew: means nothing with --trace"}},
		{"run --sessions 5 --working-set 1", 2, []string{"--sessions and --working-set: want one of them"}},
		{"run --out x.arrows --steps ./x.arrows", 2, []string{"--out and --steps: both are ./x.arrows"}},
		{"run --out " + dir, 2, []string{"is no regular file"}},
		{"run --out /nowhere/x.arrows", 1, []string{"/nowhere/x.arrows.part: no such file or directory"}},
		{"run --out " + filepath.Join(dir, "kept.arrows") + " --decisions /nowhere/d", 1, []string{"/nowhere/d.part: no such file or directory"}},
		{"run --faults " + faults, 2, []string{`replica: got "replica-9"`, `kind: got "kil"`}},
		{"run --faults " + typo, 2, []string{`line 2: unknown key "four", want one of at, replica, kind, for, factor`}},
		{"run --trace " + faults, 1, []string{"not a trace this program knows"}},
		{"run --max-model-len 4000", 1, []string{"fleet rtx3090x5 takes 4000"}},
		{"run --trace " + lengths, 1, []string{lengths + ": vidur-lengths traces have no arrival times; give a rate"}},
		{"trace convert " + lengths + " --out " + filepath.Join(dir, "l.arrows"), 1, []string{"have no arrival times; give a rate"}},
		{"trace generate", 2, []string{"--rate: missing", "--out: missing"}},
		{"trace convert " + faults, 2, []string{"--out: missing"}},
		{"trace convert x --format parquet --out y", 2, []string{`--format: got "parquet", want one of arrow, mooncake`}},
		{"trace export x --csv --jsonl", 2, []string{"want one of --csv, --jsonl and --parquet"}},
		{"sweep --out " + dir + " --users 1,x,0,1,y", 2, []string{`--users: got "x"`, `--users: got "0"`, "--users: 1 is given twice", `--users: got "y"`}},
		{"run --users 1000001 --replicas 100001", 2, []string{`--users: got "1000001", want a whole number from 1 to 1,000,000`, `--replicas: got "100001", want a whole number from 1 to 100,000`}},
		{"sweep --out " + dir + " --users 1000001", 2, []string{`--users: got "1000001"`}},
		{"run --out - --steps -", 2, []string{"--out: got -, want a file name, for an Arrow stream (.arrows); `kvfleet trace export`", "--steps: got -"}},
		{"run --out x.csv --steps x.JSONL --decisions x.parquet", 2, []string{"--out: x.csv would not be .csv but an Arrow stream (.arrows); `kvfleet trace export`", "--steps: x.JSONL", "--decisions: x.parquet would not be .parquet but JSON lines"}},
		{"trace generate --rate 1 --out x.parquet", 2, []string{"`kvfleet trace export` makes CSV"}},
		{"trace convert x --out x.jsonl", 2, []string{"`kvfleet trace export` makes CSV"}},
		{"trace export x --csv --out -", 2, []string{"without --out it goes to standard output"}},
		{"trace export x --csv --out y.parquet", 2, []string{"y.parquet would not be .parquet but CSV"}},
		{"trace head x -n 0", 2, []string{`--rows: got "0"`}},
	} {
		stdout, stderr, status := kvfleet(t, strings.Fields(c.args)...)
		if status != c.status {
			t.Errorf("kvfleet %s: got exit status %d, want %d\n%s", c.args, status, c.status, stderr)
		}
		if stdout != "" {
			t.Errorf("kvfleet %s: got %q on standard output, want nothing", c.args, stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("kvfleet %s: got\n%swant %q in it", c.args, stderr, want)
			}
		}
		for line := range strings.Lines(stderr) {
			if !strings.HasPrefix(line, "kvfleet: ") {
				t.Errorf("kvfleet %s: got the line %q, want it to begin with kvfleet:", c.args, line)
			}
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind by commands that failed: %v", left)
	}
}

func TestGridFileIsReadStrictly(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"working_sets: [1]\n", `line 1: unknown key "working_sets", want one of fleet, policy, working_set`},
		{"working-set: [1]\n", `unknown key "working-set"`},
		{"grid: x\n", `unknown key "grid"`},
		{"skew: [0]\nskew: [1]\n", "line 2: skew is there twice"},
		{"skew: [0, x]\n", `line 1: skew: got "x", want a number of at least 0`},
		{"window: [1s, 2s]\n", "line 1: window: got a list, want one value"},
		{"skew: {a: 1}\n", "line 1: skew: want a value or a list of values"},
		{"skew: []\n", "line 1: skew: got an empty list"},
		{"", "want keys and values"},
		{"- 1\n", "want keys and values"},
		{"skew: [0]\n---\nskew: [1]\n", "more than one document"},
		{"users: [1]\nrate: [1]\n", "--users and --rate: want one of them"},
	} {
		grid := write(t, "grid.yaml", c.text)
		_, stderr, status := kvfleet(t, "sweep", "--out", t.TempDir(), "--grid", grid)
		if status != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("grid %q: got exit status %d and\n%swant 2 and %q", c.text, status, stderr, c.want)
		}
	}
}
