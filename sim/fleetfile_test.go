package sim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func TestFleetsComeWithTheTool(t *testing.T) {
	if got, want := FleetNames(), []string{"cpu-vllm", "h100x1", "rtx3090x5", "rtx3090x6", "rtx4090x1", "rtxpro6000x1", "rtxpro6000x2-qwen3-30b-a3b", "rtxpro6000x2-qwen3-32b"}; !slices.Equal(got, want) {
		t.Fatalf("got fleets %v, want %v", got, want)
	}
	five, six := loadFleet(t, "rtx3090x5"), loadFleet(t, "rtx3090x6")
	if five.KVTokens() != 629_760 || six.KVTokens() != 755_712 {
		t.Errorf("got %d and %d KV tokens, want the published 629,760 and one card more", five.KVTokens(), six.KVTokens())
	}
	if len(six.Thermal.Cards) != 6 || len(five.Thermal.Cards) != 5 {
		t.Errorf("got %d and %d cards", len(five.Thermal.Cards), len(six.Thermal.Cards))
	}
	// The sixth card is all that is different of what replicas are.
	if !reflect.DeepEqual(five.Engine, six.Engine) || !reflect.DeepEqual(five.Step, six.Step) || five.FrontEnd != six.FrontEnd ||
		five.Tokenizer != six.Tokenizer || five.SLO != six.SLO || five.Health != six.Health {
		t.Error("the fleets differ in more than the sixth card")
	}
}

// Every number of a fleet file says its unit and where it is from, at its own
// path or above, and nothing is said of numbers that are not there.
func TestProvenance(t *testing.T) {
	for _, name := range FleetNames() {
		text, err := FleetFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		f := loadFleet(t, name)
		paths := map[string]bool{} // all there are
		var numbers []string
		walk(doc.Content[0], "", func(path string, leaf *yaml.Node) {
			for p := path; p != ""; p = parent(p) {
				paths[p] = true
			}
			_, err := time.ParseDuration(leaf.Value)
			if leaf.Kind == yaml.ScalarNode && (leaf.Tag == "!!int" || leaf.Tag == "!!float" || leaf.Tag == "!!bool" || leaf.Tag == "!!str" && err == nil) {
				numbers = append(numbers, path)
			}
		})
		if len(numbers) < 90 {
			t.Errorf("%s: found %d numbers, want the whole file's", name, len(numbers))
		}
		for _, n := range slices.Compact(numbers) {
			p := n
			for p != "" && f.Provenance[p].Unit == "" {
				p = parent(p)
			}
			if p == "" {
				t.Errorf("%s: %s has no provenance", name, n)
			}
		}
		for p, v := range f.Provenance {
			if _, err := f.Number(p); err != nil && !paths[p] {
				t.Errorf("%s: provenance of %s, which is not in the file", name, p)
			}
			if v.Unit == "" || v.Source == "" {
				t.Errorf("%s: provenance of %s: got unit %q and source %q, want both", name, p, v.Unit, v.Source)
			}
		}
	}
}

// walk visits the leaves of a document but for its provenance. The path of a
// list's entries is the list's.
func walk(n *yaml.Node, path string, leaf func(string, *yaml.Node)) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if path != "" {
				key = path + "." + key
			}
			if n.Content[i].Tag == "!!merge" {
				key = path
			}
			if key != "provenance" && key != "draws" {
				walk(n.Content[i+1], key, leaf)
			}
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			walk(c, path, leaf)
		}
	case yaml.AliasNode:
		walk(n.Alias, path, leaf)
	default:
		leaf(path, n)
	}
}

func parent(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '.'))]
}

// fleetText is the stories' fleet with something replaced.
func fleetText(t testing.TB, old, new string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("testdata/fleet.yaml has no %q", old)
	}
	return bytes.Replace(text, []byte(old), []byte(new), 1)
}

// An unknown key is an error that names it and its line, wherever it is; so is
// a value of the wrong kind.
func TestFleetFilesAreStrict(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"block_size: 16", "block_size: 16\n  blok_size: 16", "blok_size"},
		{"name: story", "name: story\nnmae: story", "nmae"},
		{"service_ms: 1", "servce_ms: 1", "servce_ms"},
		{"gpu: 0", "gpu: 0, cpu: 1", "cpu"},
		{"batch: 8", "batch: 8, bach: 8", "bach"},
		{"interval: 1s", "interval: soon", "soon"},
		{"num_gpu_blocks: 65", "num_gpu_blocks: many", "many"},
		{"name: story", "name: story\nmax_model_len: 7", "max_model_len"},
	} {
		text := fleetText(t, c.old, c.new)
		line := bytes.Count(text[:bytes.Index(text, []byte(c.want))], []byte("\n")) + 1
		_, err := DecodeFleet(text, "mine.yaml")
		wantError(t, err, "fleet mine.yaml", c.want)
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("line %d", line)) {
			t.Errorf("%s: got error %q, want it to say line %d", c.new, err, line)
		}
	}
	_, err := DecodeFleet(nil, "empty.yaml")
	wantError(t, err, "fleet empty.yaml: empty file")
	_, err = DecodeFleet(fleetText(t, "slo:", "---\nslo:"), "two.yaml")
	wantError(t, err, "fleet two.yaml")
	_, err = DecodeFleet(append(fleetText(t, "slo:", "slo:"), "\n---\nname: another\n"...), "two.yaml")
	wantError(t, err, "more than one document")
	_, err = LoadFleet("rtx3090")
	wantError(t, err, `fleet "rtx3090": no such fleet or file`, "rtx3090x5, rtx3090x6")
	_, err = LoadFleet(t.TempDir())
	wantError(t, err, "directory")
}

// A file with many faults is told all of them.
func TestFleetFaultsAllAtOnce(t *testing.T) {
	text := string(fleetText(t, "", ""))
	for old, new := range map[string]string{
		"name: story": "name: ''", "max_model_len: 4096": "max_model_len: 1", "{name: b, gpu: 1}": "{name: a, gpu: 1}",
		"block_size: 16": "block_size: 0", "tile_tokens: 1": "tile_tokens: 0", "egress_ms: 1": "egress_ms: .nan",
		"event_delay_ms: 20": "event_delay_ms: -1", "bytes_per_token: 4}": "bytes_per_token: 0}", "failures: 2": "failures: 0",
		"slo: {ttft_ms: 1000": "output: {early_shares: [2]}\nslo: {ttft_ms: -1000",
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("testdata/fleet.yaml has no %q", old)
		}
		text = strings.Replace(text, old, new, 1)
	}
	_, err := DecodeFleet([]byte(text), "bad.yaml")
	wantError(t, err, "fleet bad.yaml", "name: missing", "max_model_len: got 1", `replicas[1].name: got "a"`, "engine: block_size: got 0",
		"step: tile_tokens: got 0", "front_end.egress_ms: got NaN", "router.event_delay_ms: got -1", "tokenizer: ",
		"output: early_shares[0]: got 2", "early_tokens and early_of: missing", "health: want", "slo.ttft_ms: got -1000")
	f := loadFleet(t, "rtx3090x5")
	f.Replicas = slices.Clone(f.Replicas)
	f.Replicas[0].GPU = 5
	f.Router.ReportWindow = 0
	wantError(t, f.Validate(), "replicas[0].gpu: got 5, want 0 to 4", "router.report_window: got 0s, want at least report_every")
}

// A fleet scales by repeating its replicas; beyond its own size they stand in
// more chassis of the same kind.
func TestScale(t *testing.T) {
	f := loadFleet(t, "rtx3090x5")
	blocks := f.Router.BeliefBlocks
	for _, n := range []int{1, 3, 5, 7, 23} {
		s := f.Scale(n)
		if err := s.Validate(); err != nil {
			t.Errorf("scaled to %d: %v", n, err)
		}
		if len(s.Replicas) != n || s.KVTokens() != n*f.KVTokens()/5 || s.Router.BeliefBlocks != blocks*n/5 {
			t.Errorf("scaled to %d: got %d replicas, %d tokens, %d blocks", n, len(s.Replicas), s.KVTokens(), s.Router.BeliefBlocks)
		}
		for i, r := range s.Replicas {
			name := f.Replicas[i%5].Name
			if n > 5 {
				name = fmt.Sprint("replica-", i)
			}
			if r.Name != name || r.GPU != f.Replicas[i%5].GPU || r.chassis != i/5 {
				t.Errorf("scaled to %d: replica %d is %+v, want %s", n, i, r, name)
			}
		}
	}
	if len(f.Replicas) != 5 || f.Replicas[3].Name != "replica-4" || f.Router.BeliefBlocks != blocks {
		t.Error("scaling changed the fleet it began with")
	}
}

// FuzzDecodeFleet holds that whatever text is given is a fleet that keeps its
// own rules, or an error.
func FuzzDecodeFleet(f *testing.F) {
	names, _ := filepath.Glob("fleets/*.yaml")
	for _, name := range append(names, "testdata/fleet.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("name: x\nreplicas: [{}]\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		fleet, err := DecodeFleet(text, "fuzz")
		if err != nil {
			if fleet != nil {
				t.Errorf("got a fleet and %v", err)
			}
			return
		}
		if err := fleet.Validate(); err != nil {
			t.Errorf("decoded, and then %v", err)
		}
	})
}
