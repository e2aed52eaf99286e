package workload

import (
	"strconv"

	"kvfleet/policies/block"
)

// A start is what prompts have in common at the beginning.
type start struct {
	system bool
	family int // -1 none
}

// A trunk is a prompt under construction, or the finished beginning of many.
type trunk struct {
	hasher  block.Hasher
	prefix  []uint64
	bytes   int
	tokens  int
	blocks  []uint64 // whole engine blocks, up to and including the next message's header
	prompts []Prompt // the turns that end within, without what names a session
}

// branch copies a trunk so that it can grow by itself; room is for how many
// prefix blocks.
func (t *trunk) branch(room int) trunk {
	out := *t
	out.prefix = append(make([]uint64, 0, room), t.prefix...)
	return out
}

// A head is what block.AppendMessage puts before a message's content.
type head struct {
	role  string
	n     int // bytes of content
	bytes []byte
}

// head returns what frames a piece. There are only as many as there are roles
// and lengths, so framing costs no copy of the text.
func (c *Content) head(p piece) []byte {
	for i := range c.heads {
		if h := &c.heads[i]; h.n == p.n && h.role == p.role {
			return h.bytes
		}
	}
	framed := block.AppendMessage(nil, p.role, string(make([]byte, p.n)))
	h := append([]byte(nil), framed[:len(framed)-p.n]...)
	c.heads = append(c.heads, head{p.role, p.n, h})
	return h
}

// message grows a trunk by a message.
func (c *Content) message(t *trunk, p piece) {
	c.buf = appendText(append(c.buf[:0], c.head(p)...), p)
	t.prefix = t.hasher.Append(t.prefix, c.buf)
	t.bytes += len(c.buf)
	t.tokens += c.tok.message(p)
}

// prompt is a trunk that ends with a turn's user message: the engine adds the
// header of its answer.
func (c *Content) prompt(t *trunk, turn int) Prompt {
	return Prompt{
		Turn: turn, Bytes: t.bytes, Tokens: t.tokens + c.tok.HeaderTokens,
		Prefix: t.prefix[:len(t.prefix):len(t.prefix)],
	}
}

// extend returns blocks extended by fresh numbers to the whole blocks of tokens,
// which are no fewer.
func (c *Content) extend(blocks []uint64, tokens int) []uint64 {
	out := make([]uint64, tokens/c.blockSize)
	for i := copy(out, blocks); i < len(out); i++ {
		out[i] = c.next
		c.next++
	}
	return out
}

// trunk is how the prompts of sessions with the same start begin. Trunks branch
// off each other where their tokens do: all prompts share the template's opening,
// then those without the system prompt the header of a user message and those
// with it the prompt, then a family's members its turns.
func (c *Content) trunk(at start) *trunk {
	if t := c.trunks[at]; t != nil {
		return t
	}
	// The template's opening, which all prompts share, has the first numbers.
	t := trunk{tokens: c.tok.StartTokens, blocks: c.opening}
	switch {
	case at.family >= 0:
		t = c.trunk(start{at.system, -1}).branch(c.m.maxPrefix())
		t.prompts = make([]Prompt, c.m.BranchTurns)
		for turn := range t.prompts {
			c.message(&t, c.m.userPiece(c.epoch, 0, turn, at.system, at.family))
			t.prompts[turn] = c.prompt(&t, turn)
			c.message(&t, c.m.assistantPiece(c.epoch, 0, turn, at.family))
		}
	case at.system:
		c.message(&t, c.m.systemPiece(c.epoch))
	}
	// The header of the next message is common too.
	t.blocks = c.extend(t.blocks, t.tokens+c.tok.HeaderTokens)
	c.trunks[at] = &t
	return &t
}

// build makes a session's prompts.
func (c *Content) build(id int) []Prompt {
	at := start{c.m.System(id), c.m.Family(id)}
	base := c.trunk(at)
	t := base.branch(c.m.maxPrefix())
	prompts := make([]Prompt, c.m.Turns)
	for turn := copy(prompts, base.prompts); turn < c.m.Turns; turn++ {
		c.message(&t, c.m.userPiece(c.epoch, id, turn, at.system, at.family))
		prompts[turn] = c.prompt(&t, turn)
		if turn < c.m.Turns-1 {
			c.message(&t, c.m.assistantPiece(c.epoch, id, turn, at.family))
		}
	}
	name := SessionName(c.epoch, id)
	blocks := c.extend(base.blocks, prompts[c.m.Turns-1].Tokens)
	for turn := range prompts {
		p := &prompts[turn]
		whole := p.Tokens / c.blockSize
		p.Session, p.System, p.Branch = name, at.system, at.family >= 0
		p.Blocks = blocks[:whole:whole]
	}
	return prompts
}

// maxPrefix bounds the prefix blocks of a prompt; a message's frame is at most
// 24 bytes.
func (m *MultiTurn) maxPrefix() int {
	return (m.MaxPromptBytes() + 2*m.Turns*24) / block.Size
}

// SessionName is the session id that a session's requests carry in an epoch.
func SessionName(epoch, session int) string {
	name := make([]byte, 0, 32)
	name = append(name, "sess-"...)
	name = strconv.AppendInt(name, int64(epoch), 10)
	name = append(name, '-')
	return string(strconv.AppendInt(name, int64(session), 10))
}
