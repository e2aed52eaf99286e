package latency

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Ticks is a time or duration in units of 1/1024 ns.
type Ticks int64

// TicksOf converts a duration.
func TicksOf(d time.Duration) Ticks { return Ticks(d) << 10 }

// Duration rounds down to nanoseconds.
func (t Ticks) Duration() time.Duration { return time.Duration(t >> 10) }

// FromMillis rounds a time in milliseconds to ticks.
func FromMillis(ms float64) Ticks { return Ticks(math.Round(ms * 1e6 * 1024)) }

// A Rung is one captured CUDA-graph batch size and the time, without attention
// over the context, of a decode-only step padded to it.
type Rung struct {
	Batch     int     `yaml:"batch"`      // requests
	MS        float64 `yaml:"ms"`         // without context
	ContextMS float64 `yaml:"context_ms"` // per token of summed context
}

// Params are the constants of the step-time model. Times are milliseconds of
// GPU-busy time at the reference clock.
type Params struct {
	// WeightsMS is reading the weights once: the least any dense work costs, and
	// the least a partial tile does.
	WeightsMS float64 `yaml:"weights_ms"`
	// DenseTokenMS is the dense work of one token in a full tile.
	DenseTokenMS float64 `yaml:"dense_token_ms"`
	// TileTokens is the rows of one dense tile and of one attention query tile.
	TileTokens int `yaml:"tile_tokens"`
	// PairMS is prefill attention per query-key pair, queries rounded up to
	// whole tiles.
	PairMS float64 `yaml:"pair_ms"`
	// MixedDecodeMS and MixedContextMS are what a decoding request costs in a
	// step that also prefills: a constant and a part per token of its context.
	// There the single query still takes a whole query tile.
	MixedDecodeMS  float64 `yaml:"mixed_decode_ms"`
	MixedContextMS float64 `yaml:"mixed_context_ms"`
	// SustainedShare is how much slower, as a share, work of SustainedMS and
	// more runs than very short work, because the power limit pulls the clock
	// down within a step. It grows linearly up to SustainedMS.
	SustainedShare float64 `yaml:"sustained_share"`
	SustainedMS    float64 `yaml:"sustained_ms"`
	// EagerMS is the constant cost of a step that is not a CUDA graph.
	EagerMS float64 `yaml:"eager_ms"`
	// PrefillMixedMS is what a step that prefills more than a tile while others
	// decode costs on top; SmallMixedMS the same of one that prefills less, whose
	// kernels are too short to hide their launches.
	PrefillMixedMS float64 `yaml:"prefill_mixed_ms"`
	SmallMixedMS   float64 `yaml:"small_mixed_ms"`
	// DecodeLadder is the captured batch sizes in rising order; larger batches
	// extrapolate the last two rungs.
	DecodeLadder []Rung `yaml:"decode_ladder"`
	// DecodeWave is for how many requests the attention of a decode-only step runs
	// at once: the GPU's multiprocessors by the model's KV heads. 0 is no waves.
	// DecodeWaveShare of the cost of context comes in whole waves; see Waves.
	DecodeWave      float64 `yaml:"decode_wave,omitempty"`
	DecodeWaveShare float64 `yaml:"decode_wave_share,omitempty"`
	// ExpertsMS is reading the weights of all the experts that a GPU holds of a
	// mixture-of-experts model, and ExpertsShare the share of them that one decoding
	// request makes it read: its experts per token by all, times the ranks that send
	// it their tokens. A decode-only step of n requests reads 1-(1-ExpertsShare)^n of
	// them, which bends the ladder. 0 is a dense model.
	ExpertsMS    float64 `yaml:"experts_ms,omitempty"`
	ExpertsShare float64 `yaml:"experts_share,omitempty"`
	// HostMS and HostRequestMS are the host's share of every step: a constant
	// and a part per request in the step.
	HostMS        float64 `yaml:"host_ms"`
	HostRequestMS float64 `yaml:"host_request_ms"`
	// ColdStartMS is what the first step after an idle engine costs on top: the
	// GPU waits for kernels to be launched.
	ColdStartMS float64 `yaml:"cold_start_ms"`
	// DecodeComputeShare is the share of a decode-only step that is compute-bound;
	// the rest is memory traffic, which hardly follows the core clock.
	DecodeComputeShare float64 `yaml:"decode_compute_share"`
	// NoiseShare is the standard deviation of the multiplicative noise of a
	// step, as a share.
	NoiseShare float64 `yaml:"noise_share"`
}

// longestMS is beyond any constant of a real engine; sums of what it admits stay
// far from the end of Ticks.
const longestMS = 1e6

// Validate reports every fault at once.
func (p Params) Validate() error {
	var faults []error
	positive := func(name string, v float64) {
		if !(v > 0 && v <= longestMS) {
			faults = append(faults, fmt.Errorf("%s: got %v, want a positive number, at most %g", name, v, longestMS))
		}
	}
	atLeastZero := func(name string, v float64) {
		if !(v >= 0 && v <= longestMS) {
			faults = append(faults, fmt.Errorf("%s: got %v, want zero or more, at most %g", name, v, longestMS))
		}
	}
	positive("weights_ms", p.WeightsMS)
	positive("dense_token_ms", p.DenseTokenMS)
	positive("pair_ms", p.PairMS)
	positive("sustained_ms", p.SustainedMS)
	if p.TileTokens < 1 {
		faults = append(faults, fmt.Errorf("tile_tokens: got %d, want at least 1", p.TileTokens))
	}
	atLeastZero("mixed_decode_ms", p.MixedDecodeMS)
	atLeastZero("mixed_context_ms", p.MixedContextMS)
	atLeastZero("sustained_share", p.SustainedShare)
	atLeastZero("eager_ms", p.EagerMS)
	atLeastZero("prefill_mixed_ms", p.PrefillMixedMS)
	atLeastZero("small_mixed_ms", p.SmallMixedMS)
	atLeastZero("host_ms", p.HostMS)
	atLeastZero("host_request_ms", p.HostRequestMS)
	atLeastZero("cold_start_ms", p.ColdStartMS)
	if !(p.DecodeComputeShare >= 0 && p.DecodeComputeShare <= 1) {
		faults = append(faults, fmt.Errorf("decode_compute_share: got %v, want 0 to 1", p.DecodeComputeShare))
	}
	if !(p.NoiseShare >= 0 && p.NoiseShare < 0.5) {
		faults = append(faults, fmt.Errorf("noise_share: got %v, want 0 to 0.5", p.NoiseShare))
	}
	if !(p.DecodeWave == 0 || p.DecodeWave >= 1 && p.DecodeWave <= longestMS) {
		faults = append(faults, fmt.Errorf("decode_wave: got %v, want 0 or at least 1, at most %g", p.DecodeWave, longestMS))
	}
	if !(p.DecodeWaveShare >= 0 && p.DecodeWaveShare <= 1) {
		faults = append(faults, fmt.Errorf("decode_wave_share: got %v, want 0 to 1", p.DecodeWaveShare))
	}
	atLeastZero("experts_ms", p.ExpertsMS)
	if !(p.ExpertsShare >= 0 && p.ExpertsShare <= 1) {
		faults = append(faults, fmt.Errorf("experts_share: got %v, want 0 to 1", p.ExpertsShare))
	}
	if len(p.DecodeLadder) == 0 {
		faults = append(faults, errors.New("decode_ladder: empty, want at least one rung"))
	}
	for i, r := range p.DecodeLadder {
		if r.Batch < 1 || i > 0 && r.Batch <= p.DecodeLadder[i-1].Batch {
			faults = append(faults, fmt.Errorf("decode_ladder[%d].batch: got %d, want rising sizes from 1", i, r.Batch))
		}
		positive(fmt.Sprintf("decode_ladder[%d].ms", i), r.MS)
		positive(fmt.Sprintf("decode_ladder[%d].context_ms", i), r.ContextMS)
	}
	return errors.Join(faults...)
}

// leastWaves is how many waves there are at least before they show: with fewer,
// attention kernels split long contexts and fill the GPU (FlashAttention 2 does so
// below 0.8 blocks for each of the two places of a multiprocessor).
const leastWaves = 1.6

// Waves is what the cost per token of context is multiplied by in a decode-only
// step of n requests. The last wave takes as long as a full one, however few of
// its places are taken: 1 where the waves are full, and most where a request too
// many opens one.
func (p *Params) Waves(n int) float64 {
	w, k := p.DecodeWave, float64(n)
	if w == 0 || k < leastWaves*w {
		return 1
	}
	return 1 + p.DecodeWaveShare*(math.Ceil(k/w)*w/k-1)
}

// Experts is reading the experts' weights in a decode-only step of n requests, in
// ms.
func (p *Params) Experts(n int) float64 {
	if p.ExpertsMS == 0 {
		return 0
	}
	return p.ExpertsMS * (1 - math.Pow(1-p.ExpertsShare, float64(n)))
}

// A Chunk is what one prefilling request computes in a step.
type Chunk struct {
	Tokens  int // new tokens computed
	Context int // sequence length after the step, tokens
}

// A Model answers for one GPU. It is immutable.
type Model struct {
	p       Params
	ladder  []Ticks // by batch size, up to the last rung
	context []Ticks // likewise, per token of context
	last    Ticks   // slope per request beyond the last rung
	host    Ticks
	hostReq Ticks
	cold    Ticks
}

// New builds a model from valid parameters.
func New(p Params) (*Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m := &Model{
		p:       p,
		host:    FromMillis(p.HostMS),
		hostReq: FromMillis(p.HostRequestMS),
		cold:    FromMillis(p.ColdStartMS),
	}
	for _, r := range p.DecodeLadder {
		for len(m.ladder) <= r.Batch {
			m.context = append(m.context, FromMillis(r.ContextMS*p.Waves(len(m.ladder))))
			m.ladder = append(m.ladder, FromMillis(r.MS+p.Experts(r.Batch)))
		}
	}
	if n := len(p.DecodeLadder); n > 1 {
		a, b := p.DecodeLadder[n-2], p.DecodeLadder[n-1]
		m.last = FromMillis(max(0, (b.MS-a.MS)/float64(b.Batch-a.Batch)))
	}
	return m, nil
}

// NoiseShare is the standard deviation of a step's multiplicative noise.
func (m *Model) NoiseShare() float64 { return m.p.NoiseShare }

// Host is the host's share of a step over n requests.
func (m *Model) Host(n int) Ticks { return m.host + Ticks(n)*m.hostReq }

// ColdStart is the extra cost of the first step after an idle engine.
func (m *Model) ColdStart() Ticks { return m.cold }

// Decode returns the GPU time of a decode-only step of n requests as a base and
// a part per token of summed context: a step over ctx tokens takes base +
// ctx*perToken. Its compute-bound share takes compute times as long as at the
// reference clock, the rest memory times.
func (m *Model) Decode(n int, compute, memory float64) (base, perToken Ticks) {
	top := len(m.ladder) - 1
	rung := min(n, top)
	base = m.ladder[rung] + Ticks(n-rung)*m.last
	perToken = m.context[rung]
	if n > top {
		perToken = FromMillis(m.p.DecodeLadder[len(m.p.DecodeLadder)-1].ContextMS * m.p.Waves(n))
	}
	f := m.p.DecodeComputeShare*compute + (1-m.p.DecodeComputeShare)*memory
	return scale(base, f), scale(perToken, f)
}

// Mixed returns the GPU time of a step that prefills the chunks and decodes for
// n requests whose contexts sum to ctx tokens, at the given clock factor.
func (m *Model) Mixed(chunks []Chunk, n int, ctx int64, clock float64) Ticks {
	p := &m.p
	tokens, attention := n, float64(n)*p.MixedDecodeMS+float64(ctx)*p.MixedContextMS
	for _, c := range chunks {
		tokens += c.Tokens
		rows := (c.Tokens + p.TileTokens - 1) / p.TileTokens * p.TileTokens
		attention += float64(rows) * (float64(c.Context) - float64(c.Tokens-1)/2) * p.PairMS
	}
	dense := m.dense(tokens)
	ms := dense + attention
	ms *= 1 + p.SustainedShare*min(1, ms/p.SustainedMS)
	ms = ms*clock + p.EagerMS
	if n > 0 && tokens-n > p.TileTokens {
		ms += p.PrefillMixedMS
	} else if n > 0 {
		ms += p.SmallMixedMS
	}
	return FromMillis(ms)
}

// dense is the time of the matrix products over so many rows, in ms. A partial
// tile costs at least reading the weights, but no more than a full one.
func (m *Model) dense(tokens int) float64 {
	p := &m.p
	tile := float64(p.TileTokens) * p.DenseTokenMS
	full, rest := tokens/p.TileTokens, tokens%p.TileTokens
	ms := float64(full) * tile
	if rest > 0 {
		ms += max(min(p.WeightsMS, tile), float64(rest)*p.DenseTokenMS)
	}
	return max(ms, p.WeightsMS)
}

func scale(t Ticks, f float64) Ticks {
	if f == 1 {
		return t
	}
	return Ticks(math.Round(float64(t) * f))
}
