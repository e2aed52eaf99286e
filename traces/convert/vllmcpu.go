package convert

import (
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"strconv"
	"strings"

	"kvfleet/traces"
	"kvfleet/traces/seed"
)

// vllmCPUColumns are the header names of the measurements of vLLM on a CPU. Their
// times are ms of one clock, from the start of the run.
var vllmCPUColumns = []string{"request", "session", "turn", "due_ms", "sent_ms", "first_token_ms", "last_token_ms", "end_ms",
	"prompt_tokens", "cached_tokens", "output_tokens", "itl_p50_ms", "itl_max_ms", "max_tokens", "segments"}

// vllmCPUBlock is how many tokens an id stands for: identity is known to the
// token, whatever the blocks of the engine were.
const vllmCPUBlock = 16

// vllmCPURow reads a finished row. Only answered requests were written.
func vllmCPURow(p *pass, c *record, r *traces.Row) {
	if r.RequestID = c.value("request"); r.RequestID == "" {
		c.fault("request", "an id")
	}
	if r.Session = c.value("session"); r.Session == "" {
		c.fault("session", "a session, as conversation.visit")
	}
	r.SessionSource = traces.SessionSupplied
	r.Turn = int32(min(c.integer("turn", 0, false), 1<<30))
	r.ScheduledAt, r.SentAt = c.time("due_ms", 1e6), c.time("sent_ms", 1e6)
	r.FirstTokenAt, r.LastTokenAt, r.EndedAt = c.time("first_token_ms", 1e6), c.time("last_token_ms", 1e6), c.time("end_ms", 1e6)
	r.PromptTokens = c.integer("prompt_tokens", 1, false)
	r.EnginePromptTokens = r.PromptTokens
	r.CachedTokens = c.integer("cached_tokens", 0, true)
	r.OutputTokens = c.integer("output_tokens", 1, false)
	r.MaxTokens = c.integer("max_tokens", 1, false)
	r.ITLMean = meanGap(r.FirstTokenAt, r.LastTokenAt, r.OutputTokens)
	r.ITLP50, r.ITLMax = c.gap("itl_p50_ms"), c.gap("itl_max_ms")
	r.Outcome = traces.Success
	pieces, total := c.pieces("segments")
	switch {
	case c.badField != "":
	case total != r.PromptTokens:
		c.fault("segments", fmt.Sprintf("pieces that add up to the prompt_tokens of %d, not to %d", r.PromptTokens, total))
	case total > maxLine:
		c.fault("prompt_tokens", "a prompt of a believable length")
	default:
		r.SystemPrompt = strings.HasPrefix(pieces[0].name, "S")
		r.BlockSize, r.Blocks = vllmCPUBlock, pieceBlocks(pieces, total)
	}
}

// piece is so many tokens from the start of a named text.
type piece struct {
	name   string
	tokens int64
}

// pieces reads name:tokens, separated by spaces.
func (c *record) pieces(field string) (all []piece, total int64) {
	for text := range strings.FieldsSeq(c.value(field)) {
		at := strings.LastIndexByte(text, ':')
		tokens, err := strconv.ParseInt(text[at+1:], 10, 64)
		if at < 1 || err != nil || tokens < 1 || tokens > maxTokens || total > maxTokens {
			c.fault(field, "pieces name:tokens of 1 token or more, separated by spaces")
			return nil, 0
		}
		all = append(all, piece{text[:at], tokens})
		total += tokens
	}
	if all == nil {
		c.fault(field, "pieces name:tokens of 1 token or more, separated by spaces")
	}
	return all, total
}

// pieceBlocks makes one chained id per whole block of the prompt: over what the
// pieces have in it and in all before it. A token is its piece's name and its
// place in the piece, so equal ids are equal tokens up to and including the block.
// A new range begins exactly where a token is the first of its piece or of its
// block, so equal tokens are also equal ranges and get equal ids. Ids are above 0
// and of 63 bits, as the simulated cache wants them.
func pieceBlocks(pieces []piece, tokens int64) []uint64 {
	blocks := make([]uint64, 0, tokens/vllmCPUBlock)
	chained, room := uint64(0), int64(vllmCPUBlock)
	for _, p := range pieces {
		h := fnv.New64a()
		io.WriteString(h, p.name)
		name := h.Sum64()
		for from := int64(0); from < p.tokens; {
			to := min(from+room, p.tokens)
			chained = seed.Mix(chained, name, uint64(from), uint64(to))
			room -= to - from
			if from = to; room == 0 {
				blocks = append(blocks, max(1, chained&math.MaxInt64))
				room = vllmCPUBlock
			}
		}
	}
	return blocks
}
