package convert

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kvfleet/traces"
)

// There is one clock: times are the source's.
func TestVLLMCPURows(t *testing.T) {
	const us = 1000
	rows, tr := all(t, "testdata/vllm-cpu.csv", Options{})
	if len(rows) != 4 {
		t.Fatalf("got %d rows, want 4", len(rows))
	}
	wantRow(t, rows[0], func(r *traces.Row) {
		r.RequestID, r.Session, r.SessionSource, r.Turn = "0", "3.0", traces.SessionSupplied, 0
		r.PromptTokens, r.EnginePromptTokens, r.CachedTokens, r.MaxTokens, r.OutputTokens = 40, 40, 0, 5, 5
		r.ScheduledAt, r.SentAt, r.FirstTokenAt, r.LastTokenAt, r.EndedAt = 10_500*us, 11_250*us, 61_250*us, 101_250*us, 101_500*us
		r.ITLMean, r.ITLP50, r.ITLMax = 10_000*us, 9_500*us, 11_125*us
		r.BlockSize, r.SystemPrompt, r.Outcome = 16, true, traces.Success
	})
	wantRow(t, rows[1], func(r *traces.Row) {
		r.RequestID, r.Session, r.SessionSource, r.Turn = "1", "4.0", traces.SessionSupplied, 0
		r.PromptTokens, r.EnginePromptTokens, r.CachedTokens, r.MaxTokens, r.OutputTokens = 24, 24, 0, 8, 1
		r.ScheduledAt, r.SentAt, r.FirstTokenAt, r.LastTokenAt, r.EndedAt = 20_000*us, 20_500*us, 70_000*us, 70_000*us, 70_250*us
		r.BlockSize, r.SystemPrompt, r.Outcome = 16, true, traces.Success
	})
	if rows[2].CachedTokens != 32 || rows[2].Turn != 1 || rows[3].SystemPrompt {
		t.Errorf("got %+v and %+v", rows[2], rows[3])
	}
	a, b, c, d := rows[0].Blocks, rows[1].Blocks, rows[2].Blocks, rows[3].Blocks
	if len(a) != 2 || len(b) != 1 || len(c) != 4 || len(d) != 2 {
		t.Fatalf("got %d, %d, %d, %d blocks, want only whole ones: 2, 1, 4, 2", len(a), len(b), len(c), len(d))
	}
	if a[0] != b[0] || a[0] != c[0] || a[1] != c[1] || a[0] == d[0] || a[1] == d[1] {
		t.Errorf("got %x, %x, %x, %x: want the first of three and the second of two shared, none with the last", a, b, c, d)
	}
	if r := tr.Report(); r.Origin != 0 || r.Shifted != 0 {
		t.Errorf("got %+v, want times as they are in the source", r)
	}
}

// Rows before the start are moved with all their times.
func TestVLLMCPUTimesBeforeTheStart(t *testing.T) {
	text := strings.Replace(fixture(t, "vllm-cpu.csv"), "10.5,11.25", "-5,11.25", 1)
	rows, tr := all(t, file(t, "x", text), Options{})
	r := &rows[0]
	if r.ScheduledAt != 0 || r.SentAt != 16_250_000 || r.LastTokenAt-r.FirstTokenAt != 40e6 || r.EndedAt-r.LastTokenAt != 250_000 || tr.Report().Shifted != 5e6 {
		t.Errorf("got %+v, want all times 5 ms later", r)
	}
}

func TestVLLMCPUFaultsAreNamed(t *testing.T) {
	const pieces = "want pieces name:tokens of 1 token or more, separated by spaces, got "
	good := fixture(t, "vllm-cpu.csv")
	for _, c := range []struct{ old, new, want string }{
		{",24,0,1,", ",25,0,1,", `field segments: want pieces that add up to the prompt_tokens of 25, not to 24, got "S0:24"`},
		{",8,S0:24", ",8,S0:24 U4:1", `field segments: want pieces that add up to the prompt_tokens of 24, not to 25, got "S0:24 U4:1"`},
		{",8,S0:24", ",8,S0:0 S1:24", "field segments: " + pieces + `"S0:0 S1:24"`},
		{",8,S0:24", ",8,S0", "field segments: " + pieces + `"S0"`},
		{",8,S0:24", ",8,:24", "field segments: " + pieces + `":24"`},
		{",8,S0:24", ",8,", "field segments: " + pieces + "nothing"},
		{",24,0,1,,,8,S0:24", ",99999999999,0,1,,,8,S0:99999999999", `field prompt_tokens: want a prompt of a believable length, got "99999999999"`},
		{"\n1,", "\n,", "field request: want an id, got nothing"},
		{"4.0,0,", ",0,", "field session: want a session, as conversation.visit, got nothing"},
		{"20,20.5,", "20,soon,", `field sent_ms: want a number, got "soon"`},
		{"70,70,70.25", "70,,70.25", "field last_token_ms: want a number, got nothing"},
		{"24,0,1,", "24,0,0,", `field output_tokens: want a whole number, 1 or more, got "0"`},
		{"24,0,1,,", "24,0,1,-1,", `field itl_p50_ms: want a number, 0 or more, got "-1"`},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s is not in the fixture", c.old)
		}
		wantFault(t, file(t, "x", text), "FILE: line 3: "+c.want, 1)
	}
}

// slowTokens is the slow twin of pieceBlocks: every token by name.
func slowTokens(pieces []piece) []string {
	var all []string
	for _, p := range pieces {
		for i := range p.tokens {
			all = append(all, fmt.Sprintf("%s+%d", p.name, i))
		}
	}
	return all
}

// twins checks that equal prompts up to a block, and only those, have equal ids.
type twins struct {
	t        *testing.T
	idOf     map[string]uint64
	promptOf map[uint64]string
	shared   int
}

func (w *twins) check(pieces []piece, blocks []uint64) {
	w.t.Helper()
	tokens := slowTokens(pieces)
	if len(blocks) != len(tokens)/vllmCPUBlock {
		w.t.Fatalf("%v: got %d blocks, want %d", pieces, len(blocks), len(tokens)/vllmCPUBlock)
	}
	prompt := ""
	for i, id := range blocks {
		prompt += strings.Join(tokens[i*vllmCPUBlock:(i+1)*vllmCPUBlock], " ") + "\n"
		if id == 0 || id >= 1<<63 {
			w.t.Fatalf("%v: got id %#x, want one above 0 of 63 bits", pieces, id)
		}
		other, seen := w.idOf[prompt]
		if seen {
			w.shared++
		}
		if seen && other != id {
			w.t.Fatalf("%v: block %d: got ids %#x and %#x of equal prompts", pieces, i, id, other)
		}
		if same, seen := w.promptOf[id]; seen && same != prompt {
			w.t.Fatalf("%v: block %d: got id %#x for two prompts", pieces, i, id)
		}
		w.idOf[prompt], w.promptOf[id] = id, prompt
	}
}

func newTwins(t *testing.T) *twins {
	return &twins{t: t, idOf: map[string]uint64{}, promptOf: map[uint64]string{}}
}

// Few names and lengths make prompts that part and meet again everywhere: within
// a block, at its end, in a name twice over, and in names of several lengths.
func TestPieceBlocksEqualTheirSlowTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w := newTwins(t)
	for range 3000 {
		var pieces []piece
		total := int64(0)
		for range 1 + rng.IntN(5) {
			p := piece{string(rune('A' + rng.IntN(3))), []int64{1, 7, 8, 16, 17, 40}[rng.IntN(6)]}
			pieces = append(pieces, p)
			total += p.tokens
		}
		w.check(pieces, pieceBlocks(pieces, total))
	}
	if w.shared < 1000 {
		t.Errorf("got %d shared blocks, want prompts that share some", w.shared)
	}
}

// Two runs of one load have the same prompts: they meet in one table.
func TestMeasuredBlocksEqualTheirSlowTwin(t *testing.T) {
	w := newTwins(t)
	for _, path := range measured(t, "vllm-cpu/rate2_run*.csv") {
		rows := 0
		p := &pass{opts: &Options{}, file: path, report: &Report{}}
		p.emit = func(r *traces.Row) error { return nil }
		err := readCSV(p, vllmCPUColumns, func(p *pass, c *record, r *traces.Row) {
			vllmCPURow(p, c, r)
			pieces, _ := c.pieces("segments")
			if c.badField == "" {
				w.check(pieces, r.Blocks)
				rows++
			}
		})
		if err != nil || rows == 0 {
			t.Fatalf("%s: got %d rows and %v", path, rows, err)
		}
	}
}

func FuzzVLLMCPU(f *testing.F) {
	f.Add([]byte(fixture(f, "vllm-cpu.csv")))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &pass{opts: &Options{MaxErrors: -1}, report: &Report{}, emit: func(r *traces.Row) error {
			if int64(len(r.Blocks)) != r.PromptTokens/vllmCPUBlock || r.OutputTokens < 1 || r.Turn < 0 || r.RequestID == "" {
				t.Errorf("got row %+v", *r)
			}
			return nil
		}}
		_ = scanCSV(p, bytes.NewReader(data), vllmCPUColumns, vllmCPURow)
	})
}
