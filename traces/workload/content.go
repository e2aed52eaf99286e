package workload

import (
	"errors"
	"fmt"
	"math"

	"kvfleet/policies/block"
	"kvfleet/traces/seed"
)

// A Tokenizer says how many engine tokens text becomes, from measurement: it
// counts, it does not tokenize.
type Tokenizer struct {
	BytesPerToken float64 `yaml:"bytes_per_token"` // of message text
	// SpreadShare is the standard deviation of a piece's token count, as a share
	// of it, for a piece of SpreadBytes; it shrinks with the root of the size.
	SpreadShare   float64 `yaml:"spread_share"`
	SpreadBytes   int     `yaml:"spread_bytes"`
	StartTokens   int     `yaml:"start_tokens"`   // of the template before the first message
	HeaderTokens  int     `yaml:"header_tokens"`  // before each message's text
	TrailerTokens int     `yaml:"trailer_tokens"` // after each message's text
}

// Validate reports every fault at once.
func (t Tokenizer) Validate() error {
	var faults []error
	if !(t.BytesPerToken > 0) || math.IsInf(t.BytesPerToken, 0) {
		faults = append(faults, fmt.Errorf("bytes_per_token: got %v, want a positive number", t.BytesPerToken))
	}
	if !(t.SpreadShare >= 0 && t.SpreadShare < 0.5) {
		faults = append(faults, fmt.Errorf("spread_share: got %v, want 0 to 0.5", t.SpreadShare))
	}
	if t.SpreadShare > 0 && t.SpreadBytes < 1 {
		faults = append(faults, fmt.Errorf("spread_bytes: got %d, want at least 1", t.SpreadBytes))
	}
	if t.StartTokens < 0 || t.HeaderTokens < 0 || t.TrailerTokens < 0 {
		faults = append(faults, errors.New("start_tokens, header_tokens, trailer_tokens: want zero or more"))
	}
	return errors.Join(faults...)
}

// A Prompt is what a turn sends, as router and engine see it.
type Prompt struct {
	Session string
	Turn    int
	Bytes   int      // of the rendered prompt
	Tokens  int      // engine tokens, template included
	Prefix  []uint64 // hashes of whole 64-byte prefix blocks
	Blocks  []uint64 // ids of whole engine blocks, small consecutive integers
	System  bool
	Branch  bool
}

// Content is one epoch's prompts, made when first asked for and kept. It is not
// safe for concurrent use.
//
// Engine blocks are numbered in the order they were first met. Prompts share a
// number exactly where they share every token up to the block's end, so the
// numbers stand for the engine's chained hashes, and the numbers of one session
// are consecutive, which is what makes the simulated cache fast.
type Content struct {
	m         MultiTurn
	tok       Tokenizer
	blockSize int
	epoch     int
	next      uint64
	first     []uint64            // the block all prompts share
	shared    map[[2]int]*segment // by (system, family): blocks shared at the start
	sessions  []*session
	buf, text []byte
}

type segment struct {
	blocks []uint64
	tokens int
	prefix []uint64
	bytes  int
	hasher block.Hasher
}

type session struct {
	name    string
	prompts []Prompt
}

// Content prepares an epoch of a resolved workload for engines of the block
// size.
func (m MultiTurn) Content(epoch int, tok Tokenizer, blockSize int) *Content {
	return &Content{
		m: m, tok: tok, blockSize: blockSize, epoch: epoch, next: 1,
		shared: map[[2]int]*segment{}, sessions: make([]*session, m.Sessions),
	}
}

// Prompt returns a session's turn. The slices of the result are shared and must
// not be written to.
func (c *Content) Prompt(session, turn int) *Prompt {
	s := c.sessions[session]
	if s == nil {
		s = c.build(session)
		c.sessions[session] = s
	}
	return &s.prompts[turn]
}

// tokens counts a piece's engine tokens: its bytes over the measured ratio, with
// the piece's own deviation.
func (c *Content) tokens(p piece) int {
	mean := float64(p.n) / c.tok.BytesPerToken
	if c.tok.SpreadShare == 0 || p.n == 0 {
		return int(math.Round(mean))
	}
	sd := c.tok.SpreadShare * mean * math.Sqrt(float64(c.tok.SpreadBytes)/float64(p.n))
	return max(1, int(math.Round(mean+sd*gauss(p.key))))
}

// gauss maps a key to a standard normal deviate.
func gauss(key uint64) float64 {
	u := (float64(seed.Mix(key, 1)>>11) + 0.5) / (1 << 53)
	v := float64(seed.Mix(key, 2)>>11) / (1 << 53)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

// trunk is a prompt under construction: its text hashed and tokens counted so
// far.
type trunk struct {
	c      *Content
	hasher block.Hasher
	prefix []uint64
	bytes  int
	tokens int
}

func (t *trunk) message(p piece) {
	c := t.c
	c.text = c.m.text(c.text[:0], p)
	c.buf = block.AppendMessage(c.buf[:0], p.role, string(c.text))
	t.prefix = t.hasher.Append(t.prefix, c.buf)
	t.bytes += len(c.buf)
	t.tokens += c.tok.HeaderTokens + c.tokens(p) + c.tok.TrailerTokens
}

// extend returns blocks, which cover shared tokens, extended by fresh numbers to
// the whole blocks of tokens.
func (c *Content) extend(blocks []uint64, tokens int) []uint64 {
	whole := tokens / c.blockSize
	out := make([]uint64, len(blocks), whole)
	copy(out, blocks)
	for len(out) < whole {
		out = append(out, c.next)
		c.next++
	}
	return out
}

// root is what every prompt begins with: the template's own opening.
func (c *Content) root() []uint64 {
	if c.first == nil {
		c.first = c.extend([]uint64{}, c.tok.StartTokens)
	}
	return c.first
}

// begin is the trunk that the prompts of sessions with the same system prompt
// and family share, and its blocks.
func (c *Content) begin(system bool, family int) *segment {
	key := [2]int{0, family}
	if system {
		key[0] = 1
	}
	if s, ok := c.shared[key]; ok {
		return s
	}
	t := &trunk{c: c, tokens: c.tok.StartTokens}
	blocks := c.root()
	if system {
		t.message(c.m.systemPiece(c.epoch))
		if family >= 0 {
			// Families with the system prompt branch off what all its holders
			// share.
			blocks = c.begin(true, -1).blocks
		}
	}
	if family >= 0 {
		for turn := range c.m.BranchTurns {
			t.message(c.m.userPiece(c.epoch, 0, turn, system, family))
			t.message(c.m.assistantPiece(c.epoch, 0, turn, family))
		}
	}
	s := &segment{tokens: t.tokens, prefix: t.prefix, bytes: t.bytes, hasher: t.hasher}
	// The next message's header is common too.
	s.blocks = c.extend(blocks, t.tokens+c.tok.HeaderTokens)
	c.shared[key] = s
	return s
}

func (c *Content) build(id int) *session {
	system, family := c.m.System(id), c.m.Family(id)
	base := c.begin(system, family)
	s := &session{name: fmt.Sprintf("sess-%d-%d", c.epoch, id), prompts: make([]Prompt, c.m.Turns)}
	t := &trunk{c: c, hasher: base.hasher, bytes: base.bytes, tokens: base.tokens}
	t.prefix = append(make([]uint64, 0, c.m.MaxPromptBytes()/block.Size+8), base.prefix...)
	from := 0
	if family >= 0 {
		from = c.m.BranchTurns
		c.sharedTurns(s, system, family)
	}
	for turn := from; turn < c.m.Turns; turn++ {
		t.message(c.m.userPiece(c.epoch, id, turn, system, family))
		s.prompts[turn] = Prompt{
			Turn: turn, Bytes: t.bytes, Tokens: t.tokens + c.tok.HeaderTokens,
			Prefix: t.prefix[:len(t.prefix):len(t.prefix)],
		}
		if turn < c.m.Turns-1 {
			t.message(c.m.assistantPiece(c.epoch, id, turn, family))
		}
	}
	last := &s.prompts[c.m.Turns-1]
	all := c.extend(base.blocks[:min(len(base.blocks), last.Tokens/c.blockSize)], last.Tokens)
	for turn := range s.prompts {
		p := &s.prompts[turn]
		p.Session, p.System, p.Branch = s.name, system, family >= 0
		p.Blocks = all[: p.Tokens/c.blockSize : p.Tokens/c.blockSize]
	}
	return s
}

// sharedTurns fills in the turns whose text is the family's.
func (c *Content) sharedTurns(s *session, system bool, family int) {
	t := &trunk{c: c, tokens: c.tok.StartTokens}
	if system {
		t.message(c.m.systemPiece(c.epoch))
	}
	for turn := range c.m.BranchTurns {
		t.message(c.m.userPiece(c.epoch, 0, turn, system, family))
		s.prompts[turn] = Prompt{
			Turn: turn, Bytes: t.bytes, Tokens: t.tokens + c.tok.HeaderTokens,
			Prefix: t.prefix[:len(t.prefix):len(t.prefix)],
		}
		t.message(c.m.assistantPiece(c.epoch, 0, turn, family))
	}
}

// Blocks is how many block numbers have been given out.
func (c *Content) Blocks() int { return int(c.next - 1) }
