package workload

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
// Engine blocks are numbered from 1 in the order they were first met. Prompts
// share a number exactly where they share every token up to the block's end, so
// the numbers stand for the engine's chained hashes; those a session does not
// share are consecutive, which is what makes the simulated cache fast. Numbers
// depend on the order sessions were asked for; what is shared does not.
type Content struct {
	m         MultiTurn
	tok       Tokenizer
	blockSize int
	epoch     int
	next      uint64           // block number
	opening   []uint64         // blocks of the template's opening, which all prompts share
	trunks    map[start]*trunk // what several sessions begin with
	sessions  [][]Prompt
	heads     []head
	buf       []byte
}

// Content prepares an epoch of a resolved workload for engines of the block
// size, which must be positive. tok must be valid.
func (m MultiTurn) Content(epoch int, tok Tokenizer, blockSize int) *Content {
	c := &Content{
		m: m, tok: tok, blockSize: blockSize, epoch: epoch, next: 1,
		trunks: map[start]*trunk{}, sessions: make([][]Prompt, m.Sessions),
	}
	c.opening = c.extend(nil, tok.StartTokens)
	return c
}

// Prompt returns a session's turn, 0 <= session < Sessions and 0 <= turn < Turns.
// The slices of the result are shared and must not be written to.
func (c *Content) Prompt(session, turn int) *Prompt {
	prompts := c.sessions[session]
	if prompts == nil {
		prompts = c.build(session)
		c.sessions[session] = prompts
	}
	return &prompts[turn]
}

// Blocks is how many block numbers have been given out: 1 to Blocks().
func (c *Content) Blocks() int { return int(c.next - 1) }
