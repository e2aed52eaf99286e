package policies

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func testBounds() Bounds {
	return Bounds{BeliefTTL: 57 * time.Second, BeliefBlocks: 16311, BytesPerToken: 4, BlockSize: 16}
}

func TestCatalogHoldsTheNine(t *testing.T) {
	want := "round_robin least_outstanding power_of_two session_affinity bounded_session_affinity " +
		"prefix_hash prefix_affinity exact_residency exact_speculative"
	var names []string
	for _, s := range Catalog() {
		names = append(names, s.Name)
		p, err := Choice{Spec: s}.New(testBounds(), rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if p.Name() != s.Name {
			t.Errorf("%s makes a policy named %s", s.Name, p.Name())
		}
		if _, consumes := p.(EventConsumer); consumes != s.NeedsEvents {
			t.Errorf("%s: takes events: %v, catalog says %v", s.Name, consumes, s.NeedsEvents)
		}
		if !strings.HasSuffix(s.Rule, ".") || s.Source == "" {
			t.Errorf("%s: rule %q from %q, want a sentence and a source", s.Name, s.Rule, s.Source)
		}
		for _, p := range s.Params {
			if p.Unit == "" || p.Doc == "" || (p.Default == "") != p.FromFleet {
				t.Errorf("%s: parameter %+v is not fully described", s.Name, p)
			}
			if _, err := p.parse(p.Default); !p.FromFleet && err != nil {
				t.Errorf("%s: default: %v", s.Name, err)
			}
		}
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEffective(t *testing.T) {
	for text, want := range map[string]string{
		"round_robin":                            "",
		"session_affinity:virtual_nodes=064":     "virtual_nodes=64",
		"bounded_session_affinity:eps=.50":       "eps=0.5,virtual_nodes=128",
		"prefix_hash":                            "virtual_nodes=128,weight=4,window=16",
		"prefix_affinity":                        "belief_blocks=16311,hit_rate_low_water=0,spill_denominator=min,spill_factor=2,ttl=57s",
		"prefix_affinity:ttl=90s,spill_factor=0": "belief_blocks=16311,hit_rate_low_water=0,spill_denominator=min,spill_factor=0,ttl=1m30s",
		"exact_speculative:speculate=500ms":      "hit_rate_low_water=0,speculate=500ms,spill_denominator=min,spill_factor=2",
	} {
		c, err := ParseChoice(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := c.Effective(testBounds()); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestParseChoiceNamesEveryFault(t *testing.T) {
	for text, want := range map[string][]string{
		"prefix_afinity":         {`"prefix_affinity"`},
		"":                       {"did you mean"},
		"round_robin:x=1":        {"it has none"},
		"prefix_affinity:":       {"expected parameter=value"},
		"prefix_affinity:spil=1": {`"spill_factor"`},
		"prefix_hash:window=1.5": {`window="1.5"`, "int >= 1"},
		"prefix_hash:weight=NaN": {`weight="NaN"`},
		"prefix_hash:window=99999999999999999999": {"window"},
		"prefix_affinity:spill_denominator=max":   {"min | mean"},
		"prefix_affinity:spill_factor=0.5,hit_rate_low_water=1,ttl=3,ttl=0s,spill_factor=2,belief_blocks=0": {
			"spill_factor=0.5 is out of range", "0 (off), or >= 1", "hit_rate_low_water=1", `ttl="3"`, "ttl=0s", "belief_blocks=0",
		},
		"session_affinity:virtual_nodes=1,virtual_nodes=2": {"given twice"},
	} {
		_, err := ParseChoice(text)
		if err == nil {
			t.Errorf("%q: no error", text)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: got %q, want it to say %q", text, err, part)
			}
		}
	}
}

func TestMissingBoundsAreErrors(t *testing.T) {
	for text, want := range map[string][]string{
		"prefix_affinity":   {"ttl", "belief_blocks", "bytes_per_token"},
		"exact_residency":   {"block_size"},
		"exact_speculative": {"block_size", "bytes_per_token", "belief_blocks"},
	} {
		c, err := ParseChoice(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.New(Bounds{}, nil)
		if err == nil {
			t.Errorf("%s: made without bounds", text)
			continue
		}
		for _, name := range want {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%s: got %q, want it to name %s", text, err, name)
			}
		}
	}
	c, _ := ParseChoice("prefix_affinity")
	if got := c.Effective(Bounds{}); !strings.Contains(got, "ttl=missing") {
		t.Errorf("effective parameters without a fleet are %s, want the ttl missing", got)
	}
	c, _ = ParseChoice("prefix_affinity:ttl=3s,belief_blocks=100")
	if _, err := c.New(Bounds{BytesPerToken: 4}, nil); err != nil {
		t.Errorf("given bounds do not stand in for the fleet's: %v", err)
	}
	c, _ = ParseChoice("power_of_two")
	if _, err := c.New(Bounds{}, nil); err == nil {
		t.Error("power_of_two was made without a random stream")
	}
	if _, err := (Choice{}).New(testBounds(), nil); err == nil {
		t.Error("an empty choice made a policy")
	}
}

func FuzzParseChoice(f *testing.F) {
	f.Add("prefix_affinity:spill_factor=0,ttl=30s")
	f.Add("exact_speculative:speculate=1ns")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChoice(text)
		if err != nil {
			return
		}
		effective := c.Effective(testBounds())
		again := c.Spec.Name
		if effective != "" {
			again += ":" + effective
		}
		c2, err := ParseChoice(again)
		if err != nil {
			t.Fatalf("%q became %q, which is refused: %v", text, again, err)
		}
		if got := c2.Effective(testBounds()); got != effective {
			t.Fatalf("%q: effective %q, read back %q", text, effective, got)
		}
	})
}

func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if r.String() == "UNKNOWN" || seen[r.String()] {
			t.Errorf("reason %d is called %s", r, r)
		}
		seen[r.String()] = true
	}
	if got := Reason(200).String(); got != "UNKNOWN" {
		t.Errorf("got %s for no reason, want UNKNOWN", got)
	}
}
