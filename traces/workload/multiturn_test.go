package workload

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestPoolIsDerivedFromTheWorkingSet(t *testing.T) {
	for _, c := range []struct {
		workingSet float64
		want       int
	}{{0.25, 76}, {1, 307}, {3, 922}, {8, 2460}} {
		m, err := Published(c.workingSet, 0, 629_760, 1).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if m.Sessions != c.want {
			t.Errorf("working set %v: got %d sessions, want %d", c.workingSet, m.Sessions, c.want)
		}
		again, err := m.Resolve()
		if err != nil || again != m {
			t.Errorf("working set %v: resolved again, got %+v, %v; want %+v", c.workingSet, again, err, m)
		}
	}
}

func TestName(t *testing.T) {
	got := published(t).Name()
	want := "multiturn(sessions=307,skew=0,turns=4,prompt=448t,output=64t,system=0.3x128t,branch=0.3x8fam1t,bpt=4,seed=1)"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// print is a print of everything a workload sends: which sessions, and what.
func (m MultiTurn) print() uint64 {
	h := fnv.New64a()
	draws := m.Draws()
	for user := range 20 {
		session := draws.Session(user, 0)
		h.Write([]byte{byte(session), byte(session >> 8)})
	}
	for session := range m.Sessions {
		for _, message := range m.Messages(1, session, m.Turns-1) {
			h.Write([]byte(message.Role + message.Content))
		}
	}
	return h.Sum64()
}

// Every field that changes a byte changes the name, by however little it differs.
func TestNameHoldsEveryKnob(t *testing.T) {
	base, err := MultiTurn{
		Sessions: 60, Skew: 1, Turns: 3, PromptTokens: 20, OutputTokens: 5, SystemShare: 0.3, SystemTokens: 4,
		BranchShare: 0.3, BranchFamilies: 3, BranchTurns: 1, BytesPerToken: 4, Seed: 9,
	}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeOf(base).NumField() {
		field := reflect.TypeOf(base).Field(i).Name
		m := base
		switch v := reflect.ValueOf(&m).Elem().Field(i); v.Kind() {
		case reflect.Int:
			v.SetInt(v.Int() + 1)
		case reflect.Uint64:
			v.SetUint(v.Uint() + 1)
		case reflect.Float64:
			v.SetFloat(v.Float() + 0.2)
		default:
			t.Fatalf("%s: this test does not know how to change a %s", field, v.Kind())
		}
		bytes, name := m.print() != base.print(), m.Name() != base.Name()
		if bytes != name {
			t.Errorf("%s: got bytes changed %v, name changed %v; want both or neither", field, bytes, name)
		}
		if derives := field == "WorkingSet" || field == "FleetTokens"; name == derives {
			t.Errorf("%s: got name changed %v, want %v", field, name, !derives)
		}
	}
	for _, change := range []func(*MultiTurn){
		func(m *MultiTurn) { m.Skew = math.Nextafter(m.Skew, 2) },
		func(m *MultiTurn) { m.SystemShare = math.Nextafter(m.SystemShare, 2) },
		func(m *MultiTurn) { m.BranchShare = math.Nextafter(m.BranchShare, 2) },
	} {
		m := base
		if change(&m); m.Name() == base.Name() {
			t.Errorf("got %s for the least change, want another name", m.Name())
		}
	}
}

func TestResolveReportsAllFaults(t *testing.T) {
	_, err := MultiTurn{
		Sessions: -1, Turns: -1, PromptTokens: -1, OutputTokens: -1, Skew: math.NaN(), SystemShare: 2, SystemTokens: -1,
		BranchShare: math.NaN(), BranchFamilies: -1, BranchTurns: -1, BytesPerToken: -1,
	}.Resolve()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{
		"sessions: got -1", "turns: got -1", "prompt tokens: got -1", "output tokens: got -1", "skew: got NaN",
		"system share: got 2", "system tokens: got -1", "branch share: got NaN", "branch families: got -1",
		"branch turns: got -1", "bytes per token: got -1",
	} {
		if !strings.Contains(err.Error(), "workload: "+want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, c := range []struct {
		m    MultiTurn
		want string
	}{
		{MultiTurn{}, "want both positive, or a number of sessions"},
		{MultiTurn{WorkingSet: 1}, "got 1 of 0 fleet tokens"},
		{MultiTurn{WorkingSet: math.Inf(1), FleetTokens: 1}, "got +Inf of 1 fleet tokens"},
		{MultiTurn{WorkingSet: 1, FleetTokens: 2047}, "is less than one session of 2048 tokens"},
		{MultiTurn{WorkingSet: 1e18, FleetTokens: 1 << 40}, "want at most 100000000"},
		{MultiTurn{Sessions: 1 << 40}, "want 1 to 100000000"},
		{MultiTurn{Sessions: 1, Skew: -1}, "skew: got -1"},
		{MultiTurn{Sessions: 1, PromptTokens: 1 << 40}, "prompt tokens: got 1099511627776, want 1 to 1073741824"},
		{MultiTurn{Sessions: 1, PromptTokens: 1 << 29, Turns: 1 << 29}, "bytes of text, want at most 1073741824"},
		{MultiTurn{Sessions: 1, SystemShare: 0.1, PromptTokens: 128}, "got 128, want less than the 128 of a user turn"},
		{MultiTurn{Sessions: 1, BranchShare: 0.1, Turns: 1}, "branch turns: got 1 of 1, want fewer"},
	} {
		if _, err := c.m.Resolve(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.m, err, c.want)
		}
	}
	// What is not used is not judged.
	if _, err := (MultiTurn{Sessions: 1, PromptTokens: 100, Turns: 1}).Resolve(); err != nil {
		t.Errorf("got %v, want short turns without a system prompt and lone turns without families to be fine", err)
	}
}

func TestTokenizerReportsAllFaults(t *testing.T) {
	err := Tokenizer{BytesPerToken: math.NaN(), SpreadShare: 0.5, StartTokens: -1, HeaderTokens: -1, TrailerTokens: 1 << 21}.Validate()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{
		"bytes_per_token: got NaN", "spread_share: got 0.5", "spread_bytes: got 0", "start_tokens: got -1",
		"header_tokens: got -1", "trailer_tokens: got 2097152",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
	if err := rtx3090.Validate(); err != nil {
		t.Errorf("got %v, want none", err)
	}
}

func TestTokenCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{256, 1792, 7168} {
		var sum, squares float64
		const draws = 20000
		for range draws {
			v := float64(rtx3090.count(piece{key: rng.Uint64(), n: n}))
			sum += v
			squares += v * v
		}
		mean := sum / draws
		sd := math.Sqrt(squares/draws - mean*mean)
		wantMean := float64(n) / 1.635
		wantSD := 0.014 * wantMean * math.Sqrt(1792/float64(n))
		if math.Abs(mean/wantMean-1) > 0.001 || math.Abs(sd/wantSD-1) > 0.05 {
			t.Errorf("%d bytes: got %.1f tokens with a deviation of %.2f, want %.1f and %.2f", n, mean, sd, wantMean, wantSD)
		}
	}
	exact := Tokenizer{BytesPerToken: 4}
	for n, want := range map[int]int{1: 1, 5: 1, 6: 2, 400: 100} {
		if got := exact.count(piece{key: 1, n: n}); got != want {
			t.Errorf("%d bytes at 4 a token: got %d tokens, want %d", n, got, want)
		}
	}
}
