package block

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func text(n int) []byte {
	rng := rand.New(rand.NewPCG(5, 5))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestChainIsTheHashOfHashAndBlock(t *testing.T) {
	prompt := text(64*3 + 20)
	var want []uint64
	prev := uint64(0)
	for i := 0; i < 3; i++ {
		link := binary.LittleEndian.AppendUint64(nil, prev)
		prev = xxhash.Sum64(append(link, prompt[64*i:64*i+64]...))
		want = append(want, prev)
	}
	if got := Chain(nil, prompt); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

func TestGrowingPromptIsHashedOnce(t *testing.T) {
	prompt := text(1000)
	want := Chain(nil, prompt)
	rng := rand.New(rand.NewPCG(6, 6))
	for range 100 {
		var h Hasher
		var got []uint64
		for rest := prompt; len(rest) > 0; {
			n := min(len(rest), rng.IntN(200))
			if n%2 == 0 {
				got = h.Append(got, rest[:n])
			} else {
				got = h.AppendString(got, string(rest[:n]))
			}
			rest = rest[n:]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("in pieces %x, at once %x", got, want)
		}
	}
}

func TestCopyOfAHasherIsABranch(t *testing.T) {
	prompt := text(300)
	var h Hasher
	head := h.Append(nil, prompt[:100])
	branch := h
	h.Append(nil, []byte("something else that fills more than a whole block of sixty-four bytes"))
	if got, want := branch.Append(head, prompt[100:]), Chain(nil, prompt); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

func TestFramingIsUnambiguous(t *testing.T) {
	long := string(text(300))
	lists := [][][2]string{
		{{"user", "ab"}}, {{"usera", "b"}}, {{"user", "a"}, {"", "b"}}, {{"", "userab"}},
		{{"user", ""}, {"", "ab"}}, {{"user", long}}, {{"user", long[:299]}, {"", ""}}, {},
	}
	seen := map[string]int{}
	for i, list := range lists {
		var b []byte
		for _, m := range list {
			b = AppendMessage(b, m[0], m[1])
		}
		if j, twice := seen[string(b)]; twice {
			t.Errorf("lists %d and %d frame alike", i, j)
		}
		seen[string(b)] = i
	}
	if bytes.Equal(AppendMessage(nil, "tools", "x"), AppendField(nil, "tools", "x")) {
		t.Error("a field frames like a message")
	}
}

func TestNextTurnBeginsWithThisOne(t *testing.T) {
	turn := AppendMessage(AppendMessage(nil, "system", "be brief"), "user", "hello")
	next := AppendMessage(AppendMessage(slices.Clone(turn), "assistant", "hi"), "user", "again")
	if !bytes.HasPrefix(next, turn) {
		t.Error("the next turn's rendering does not begin with this turn's")
	}
}

func TestTokenChain(t *testing.T) {
	tokens := make([]uint32, 50)
	for i := range tokens {
		tokens[i] = uint32(i * i)
	}
	for _, size := range []int{1, 16, 200} {
		got := TokenChain(nil, tokens, size)
		if len(got) != len(tokens)/size {
			t.Errorf("blocks of %d: %d hashes, want %d", size, len(got), len(tokens)/size)
		}
		prev := uint64(0)
		for i, h := range got {
			link := binary.LittleEndian.AppendUint64(nil, prev)
			for _, tok := range tokens[i*size : i*size+size] {
				link = binary.LittleEndian.AppendUint32(link, tok)
			}
			if prev = xxhash.Sum64(link); h != prev {
				t.Fatalf("blocks of %d: hash %d is %x, want %x", size, i, h, prev)
			}
		}
	}
}

func FuzzPieces(f *testing.F) {
	f.Add(text(200), 70)
	f.Fuzz(func(t *testing.T, prompt []byte, cut int) {
		if cut < 0 || cut > len(prompt) {
			return
		}
		var h Hasher
		got := h.Append(h.Append(nil, prompt[:cut]), prompt[cut:])
		if want := Chain(nil, prompt); !slices.Equal(got, want) {
			t.Fatalf("cut at %d: %x, want %x", cut, got, want)
		}
	})
}

func Example() {
	var h Hasher
	prompt := AppendMessage(nil, "user", "The first turn, long enough to fill a block of sixty-four bytes.")
	chain := h.Append(nil, prompt)
	fmt.Println(len(chain), "whole block")

	more := AppendMessage(nil, "assistant", "The answer, which together with what was left over fills another.")
	chain = h.Append(chain, more)
	fmt.Println(len(chain), "whole blocks")
	// Output:
	// 1 whole block
	// 2 whole blocks
}
