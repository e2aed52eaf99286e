package workload

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"kvfleet/policies/block"
	"kvfleet/traces/seed"
)

// randomWorkload draws small knobs, resolved.
func randomWorkload(t *testing.T, rng *rand.Rand) MultiTurn {
	t.Helper()
	m := MultiTurn{
		Sessions: 1 + rng.IntN(40), Turns: 2 + rng.IntN(4), PromptTokens: 2 + rng.IntN(60), OutputTokens: 1 + rng.IntN(20),
		Skew: rng.Float64() * 2, SystemShare: rng.Float64(), BranchShare: rng.Float64(), BranchFamilies: 1 + rng.IntN(4),
		BytesPerToken: 1 + rng.IntN(6), Seed: seed.Seed(rng.Uint64()),
	}
	m.SystemTokens = 1 + rng.IntN(m.PromptTokens-1)
	m.BranchTurns = 1 + rng.IntN(m.Turns-1)
	for _, share := range []*float64{&m.SystemShare, &m.BranchShare} {
		if rng.IntN(4) == 0 {
			*share = float64(rng.IntN(2))
		}
	}
	m, err := m.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func randomTokenizer(rng *rand.Rand) Tokenizer {
	return Tokenizer{
		BytesPerToken: 0.5 + 4*rng.Float64(), SpreadShare: 0.3 * rng.Float64(), SpreadBytes: 1 + rng.IntN(100),
		StartTokens: rng.IntN(40), HeaderTokens: rng.IntN(6), TrailerTokens: rng.IntN(3),
	}
}

func published(t testing.TB) MultiTurn {
	t.Helper()
	m, err := Published(1, 0, 629_760, 1).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var rtx3090 = Tokenizer{BytesPerToken: 1.635, SpreadShare: 0.014, SpreadBytes: 1792, StartTokens: 25, HeaderTokens: 4, TrailerTokens: 1}

// The bytes of the text are part of the published workload: a change here changes
// every cell. So do hashes and block numbers, which simulated results depend on.
func TestBytesAreStable(t *testing.T) {
	m := published(t)
	if got, want := m.Messages(7, 0, 0)[0].Content[:40], "7cad7128 adff050f bdb9329a 6e5bc1ad 618c"; got != want {
		t.Errorf("got text %q, want %q", got, want)
	}
	text := fnv.New64a()
	for s := range m.Sessions {
		for _, message := range m.Messages(7, s, 3) {
			text.Write([]byte(message.Role + message.Content))
		}
	}
	if got, want := text.Sum64(), uint64(0xd7a68226f7344b00); got != want {
		t.Errorf("got text %#x, want %#x", got, want)
	}
	c := m.Content(7, rtx3090, 16)
	prompts := fnv.New64a()
	for s := range m.Sessions {
		for turn := range m.Turns {
			p := c.Prompt(s, turn)
			fmt.Fprint(prompts, p.Session, p.Turn, p.Bytes, p.Tokens, p.System, p.Branch)
			binary.Write(prompts, binary.LittleEndian, p.Prefix)
			binary.Write(prompts, binary.LittleEndian, p.Blocks)
		}
	}
	if got, want := prompts.Sum64(), uint64(0xca58ab04387a021e); got != want {
		t.Errorf("got prompts %#x, want %#x", got, want)
	}
}

// The generator as it is defined, word by word.
func TestTextIsHexWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	words := regexp.MustCompile(`^([0-9a-f]{8} )*[0-9a-f]{0,8}$`)
	for range 200 {
		p := piece{key: rng.Uint64(), n: 1 + rng.IntN(100)}
		pcg := rand.New(rand.NewPCG(p.key, 0x9e3779b97f4a7c15))
		want := ""
		for len(want) < p.n {
			want += fmt.Sprintf("%08x ", pcg.Uint32())
		}
		got := string(appendText([]byte("before"), p))
		if got != "before"+want[:p.n] {
			t.Fatalf("got %q, want %q", got, want[:p.n])
		}
		if !words.MatchString(got[len("before"):]) {
			t.Fatalf("got %q, want lower-case hex words", got)
		}
	}
}

func TestPrefixIsTheChainOfTheRenderedMessages(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		m, tok := randomWorkload(t, rng), randomTokenizer(rng)
		epoch := rng.IntN(1 << 20)
		c := m.Content(epoch, tok, 1+rng.IntN(20))
		for range 30 {
			session, turn := rng.IntN(m.Sessions), rng.IntN(m.Turns)
			var rendered []byte
			for _, message := range m.Messages(epoch, session, turn) {
				rendered = block.AppendMessage(rendered, message.Role, message.Content)
			}
			p := c.Prompt(session, turn)
			if want := block.Chain(nil, rendered); !slices.Equal(p.Prefix, want) {
				t.Fatalf("%s, session %d, turn %d: got prefix %x, want %x", m.Name(), session, turn, p.Prefix, want)
			}
			if p.Bytes != len(rendered) {
				t.Fatalf("%s, session %d, turn %d: got %d bytes, want %d", m.Name(), session, turn, p.Bytes, len(rendered))
			}
		}
	}
}

// A twin writes every prompt out as tokens, each named by the piece of template
// or text it belongs to and its place there.
type twin struct {
	names map[string]uint32
}

func (w *twin) piece(tokens []uint32, name string, n int) []uint32 {
	for i := range n {
		token := fmt.Sprint(name, "/", i)
		id, ok := w.names[token]
		if !ok {
			id = uint32(len(w.names))
			w.names[token] = id
		}
		tokens = append(tokens, id)
	}
	return tokens
}

func (w *twin) prompt(m *MultiTurn, tok *Tokenizer, epoch, session, turn int) []uint32 {
	tokens := w.piece(nil, "start", tok.StartTokens)
	message := func(p piece) {
		tokens = w.piece(tokens, "header "+p.role, tok.HeaderTokens)
		tokens = w.piece(tokens, string(appendText(nil, p)), tok.count(p))
		tokens = w.piece(tokens, "trailer", tok.TrailerTokens)
	}
	system, family := m.System(session), m.Family(session)
	if system {
		message(m.systemPiece(epoch))
	}
	for k := range turn + 1 {
		message(m.userPiece(epoch, session, k, system, family))
		if k < turn {
			message(m.assistantPiece(epoch, session, k, family))
		}
	}
	return w.piece(tokens, "header assistant", tok.HeaderTokens)
}

func TestBlocksAreSharedExactlyAsTokensAre(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 40 {
		m, tok := randomWorkload(t, rng), randomTokenizer(rng)
		if m.BytesPerToken*min(m.SystemTokens, m.OutputTokens, m.PromptTokens-m.SystemTokens) < 8 {
			continue // texts of a few digits are alike by chance
		}
		blockSize, epoch := 1+rng.IntN(20), rng.IntN(100)
		c := m.Content(epoch, tok, blockSize)
		w := twin{map[string]uint32{}}
		ids, chains := map[uint64]uint64{}, map[uint64]uint64{} // chain to id and back
		for _, i := range rng.Perm(m.Sessions * m.Turns) {
			session, turn := i/m.Turns, i%m.Turns
			tokens := w.prompt(&m, &tok, epoch, session, turn)
			p := c.Prompt(session, turn)
			if p.Tokens != len(tokens) {
				t.Fatalf("%s, session %d, turn %d: got %d tokens, want %d", m.Name(), session, turn, p.Tokens, len(tokens))
			}
			chain := block.TokenChain(nil, tokens, blockSize)
			if len(chain) != len(p.Blocks) {
				t.Fatalf("%s, session %d, turn %d: got %d blocks, want %d", m.Name(), session, turn, len(p.Blocks), len(chain))
			}
			for k, id := range p.Blocks {
				if other, ok := ids[chain[k]]; ok && other != id {
					t.Fatalf("%s, %+v: session %d, turn %d: block %d has numbers %d and %d", m.Name(), tok, session, turn, k, other, id)
				}
				if other, ok := chains[id]; ok && other != chain[k] {
					t.Fatalf("%s, %+v: session %d, turn %d: number %d of block %d stands for other tokens too", m.Name(), tok, session, turn, id, k)
				}
				ids[chain[k]], chains[id] = id, chain[k]
			}
		}
		if len(chains) != c.Blocks() {
			t.Fatalf("%s: got %d numbers given out, want all %d used", m.Name(), c.Blocks(), len(chains))
		}
		for id := range chains {
			if id < 1 || id > uint64(c.Blocks()) {
				t.Fatalf("%s: got number %d, want 1 to %d", m.Name(), id, c.Blocks())
			}
		}
	}
}

func TestNextTurnBeginsWithThisOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 40 {
		m, tok := randomWorkload(t, rng), randomTokenizer(rng)
		c := m.Content(1, tok, 16)
		for session := range m.Sessions {
			for turn := range m.Turns - 1 {
				a, b := c.Prompt(session, turn), c.Prompt(session, turn+1)
				if len(a.Blocks) > len(b.Blocks) || !slices.Equal(a.Blocks, b.Blocks[:len(a.Blocks)]) {
					t.Fatalf("%s, session %d: the blocks of turn %d do not begin with those of turn %d", m.Name(), session, turn+1, turn)
				}
				if len(a.Prefix) > len(b.Prefix) || !slices.Equal(a.Prefix, b.Prefix[:len(a.Prefix)]) {
					t.Fatalf("%s, session %d: the prefix of turn %d does not begin with that of turn %d", m.Name(), session, turn+1, turn)
				}
			}
		}
	}
}

// What prompts are does not depend on who asks for them when; only the numbers
// of blocks do.
func TestContentIsDeterministic(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 20 {
		m, tok := randomWorkload(t, rng), randomTokenizer(rng)
		a, b, c := m.Content(3, tok, 16), m.Content(3, tok, 16), m.Content(3, tok, 16)
		for session := range m.Sessions {
			for turn := range m.Turns {
				if p, q := a.Prompt(session, turn), b.Prompt(session, turn); !reflect.DeepEqual(p, q) {
					t.Fatalf("%s, session %d, turn %d: got %v, want %v", m.Name(), session, turn, q, p)
				}
			}
		}
		for _, session := range rng.Perm(m.Sessions) {
			p, q := *a.Prompt(session, m.Turns-1), *c.Prompt(session, m.Turns-1)
			p.Blocks, q.Blocks = nil, nil
			if !reflect.DeepEqual(p, q) {
				t.Fatalf("%s, session %d in another order: got %v, want %v", m.Name(), session, q, p)
			}
		}
		if a.Blocks() != c.Blocks() {
			t.Fatalf("%s: got %d blocks in another order, want %d", m.Name(), c.Blocks(), a.Blocks())
		}
	}
}

func TestEpochChangesBytesAndNotStructure(t *testing.T) {
	m := published(t)
	a, b := m.Content(1, rtx3090, 16), m.Content(2, rtx3090, 16)
	seen := map[uint64]bool{}
	for session := range m.Sessions {
		for turn := range m.Turns {
			p, q := a.Prompt(session, turn), b.Prompt(session, turn)
			if p.Bytes != q.Bytes || p.System != q.System || p.Branch != q.Branch || p.Turn != q.Turn || len(p.Prefix) != len(q.Prefix) {
				t.Fatalf("session %d, turn %d: got %d bytes, system %v, branch %v in epoch 2; want %d, %v, %v",
					session, turn, q.Bytes, q.System, q.Branch, p.Bytes, p.System, p.Branch)
			}
			if want := fmt.Sprintf("sess-2-%d", session); q.Session != want {
				t.Fatalf("session %d: got name %s, want %s", session, q.Session, want)
			}
			for _, h := range p.Prefix {
				seen[h] = true
			}
		}
	}
	for session := range m.Sessions {
		for _, h := range b.Prompt(session, m.Turns-1).Prefix {
			if seen[h] {
				t.Fatalf("session %d: epoch 2 finds a prefix of epoch 1 in a cache", session)
			}
		}
	}
}

// A family's members share its turns and nothing after them; strangers share
// nothing but the system prompt, if both have it.
func TestFamilySharing(t *testing.T) {
	m := published(t)
	m.BranchTurns = 2
	c := m.Content(1, rtx3090, 16)
	first := map[start]int{}
	pairs := 0
	for session := range m.Sessions {
		at := start{m.System(session), m.Family(session)}
		other, ok := first[at]
		if !ok {
			first[at] = session
			continue
		}
		p, q := c.Prompt(session, 3), c.Prompt(other, 3)
		shared := 0
		for shared < len(p.Prefix) && p.Prefix[shared] == q.Prefix[shared] {
			shared++
		}
		text := 0
		if at.system {
			text += m.SystemTokens
		}
		if at.family >= 0 {
			text += 2 * (m.PromptTokens + m.OutputTokens)
			pairs++
		}
		if got, want := shared*block.Size, text*m.BytesPerToken; got < want-block.Size || got > want+2*block.Size {
			t.Errorf("sessions %d and %d of %+v: got %d bytes shared, want about %d", other, session, at, got, want)
		}
	}
	if pairs < 50 {
		t.Errorf("got %d pairs of relatives, want 50 or more", pairs)
	}
}

func TestSharesOfThePool(t *testing.T) {
	m, err := MultiTurn{Sessions: 100_000, SystemShare: 0.3, BranchShare: 0.2, Seed: 5}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	system, both := 0, 0
	families := make([]float64, m.BranchFamilies)
	for session := range m.Sessions {
		f := m.Family(session)
		if m.System(session) {
			system++
			if f >= 0 {
				both++
			}
		}
		if f >= 0 {
			families[f]++
		}
	}
	within := func(what string, got int, p float64) {
		t.Helper()
		if want, sd := p*1e5, math.Sqrt(1e5*p*(1-p)); math.Abs(float64(got)-want) > 5*sd {
			t.Errorf("%s: got %d of 100000 sessions, want about %v", what, got, want)
		}
	}
	within("system prompt", system, 0.3)
	within("system prompt and family", both, 0.06)
	expected := make([]float64, len(families))
	total := 0
	for i, n := range families {
		total += int(n)
		expected[i] = 1e5 * 0.2 / float64(len(families))
	}
	within("family", total, 0.2)
	if chi, df := chiSquare(families, expected); chi > chiBound(df) {
		t.Errorf("families: got %v, want even ones (chi-square %.1f of %d)", families, chi, df)
	}
}

func TestSizeIsConstant(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 40 {
		m := randomWorkload(t, rng)
		for session := range m.Sessions {
			got := 0
			for _, message := range m.Messages(1, session, m.Turns-1) {
				got += len(message.Content)
			}
			if want := m.MaxPromptBytes(); got != want {
				t.Fatalf("%s, session %d, system prompt %v: got %d bytes of text, want %d", m.Name(), session, m.System(session), got, want)
			}
		}
	}
}

func BenchmarkContent(b *testing.B) {
	m := published(b)
	var c *Content
	b.ReportAllocs()
	for i := range b.N {
		if i%m.Sessions == 0 {
			c = m.Content(i, rtx3090, 16)
		}
		c.Prompt(i%m.Sessions, 0)
	}
}

func BenchmarkText(b *testing.B) {
	var buf []byte
	b.SetBytes(1792)
	for i := range b.N {
		buf = appendText(buf[:0], piece{key: uint64(i), n: 1792})
	}
}
