package workload

import (
	"errors"
	"fmt"
	"math"

	"kvfleet/traces/seed"
)

// A Tokenizer says how many engine tokens text becomes, from measurement: it
// counts, it does not tokenize.
type Tokenizer struct {
	BytesPerToken float64 `yaml:"bytes_per_token"` // of message text; 0.01 or more
	// SpreadShare is the standard deviation of a piece's token count, as a share
	// of it, for a piece of SpreadBytes; it shrinks with the root of the size.
	SpreadShare   float64 `yaml:"spread_share"`
	SpreadBytes   int     `yaml:"spread_bytes"`
	StartTokens   int     `yaml:"start_tokens"`   // of the template before the first message
	HeaderTokens  int     `yaml:"header_tokens"`  // before each message's text
	TrailerTokens int     `yaml:"trailer_tokens"` // after each message's text
}

// Limits that no template or tokenizer comes near; they keep counts in range.
const (
	minBytesPerToken = 0.01
	maxSpreadBytes   = 1 << 30
	maxTemplate      = 1 << 20 // tokens of one part of the template
)

// Validate reports every fault at once.
func (t Tokenizer) Validate() error {
	var faults []error
	if !(t.BytesPerToken >= minBytesPerToken) || math.IsInf(t.BytesPerToken, 0) {
		faults = append(faults, fmt.Errorf("bytes_per_token: got %v, want a number of at least %v", t.BytesPerToken, minBytesPerToken))
	}
	if !(t.SpreadShare >= 0 && t.SpreadShare < 0.5) {
		faults = append(faults, fmt.Errorf("spread_share: got %v, want 0 to 0.5", t.SpreadShare))
	}
	if t.SpreadShare > 0 && (t.SpreadBytes < 1 || t.SpreadBytes > maxSpreadBytes) {
		faults = append(faults, fmt.Errorf("spread_bytes: got %d, want 1 to %d", t.SpreadBytes, maxSpreadBytes))
	}
	for _, part := range []struct {
		name   string
		tokens int
	}{{"start_tokens", t.StartTokens}, {"header_tokens", t.HeaderTokens}, {"trailer_tokens", t.TrailerTokens}} {
		if part.tokens < 0 || part.tokens > maxTemplate {
			faults = append(faults, fmt.Errorf("%s: got %d, want 0 to %d", part.name, part.tokens, maxTemplate))
		}
	}
	return errors.Join(faults...)
}

// count is a piece's engine tokens: its bytes over the measured ratio, with the
// piece's own deviation. Text is at least one token.
func (t *Tokenizer) count(p piece) int {
	mean := float64(p.n) / t.BytesPerToken
	if t.SpreadShare > 0 {
		mean += t.SpreadShare * mean * math.Sqrt(float64(t.SpreadBytes)/float64(p.n)) * gauss(p.key)
	}
	return max(1, int(math.Round(mean)))
}

// message is what a message adds to a prompt, template included.
func (t *Tokenizer) message(p piece) int {
	return t.HeaderTokens + t.count(p) + t.TrailerTokens
}

// gauss maps a key to a standard normal deviate.
func gauss(key uint64) float64 {
	u := (float64(seed.Mix(key, 1)>>11) + 0.5) / (1 << 53)
	v := float64(seed.Mix(key, 2)>>11) / (1 << 53)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}
