package latency

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func plain() Params {
	return Params{
		WeightsMS: 5, DenseTokenMS: 0.2, TileTokens: 64, PairMS: 1e-5,
		MixedDecodeMS: 0.05, MixedContextMS: 1e-3, SustainedShare: 0.05, SustainedMS: 500,
		EagerMS: 1, PrefillMixedMS: 2, HostMS: 1.5, HostRequestMS: 0.1, ColdStartMS: 4,
		DecodeComputeShare: 0.4, NoiseShare: 0.02,
		DecodeLadder: []Rung{{Batch: 1, MS: 5.8, ContextMS: 2.4e-4}, {Batch: 4, MS: 6, ContextMS: 2.4e-4}, {Batch: 8, MS: 7, ContextMS: 2.4e-4}},
	}
}

func TestValidateReportsAllFaults(t *testing.T) {
	if err := plain().Validate(); err != nil {
		t.Fatal(err)
	}
	bad := Params{
		WeightsMS: -1, DenseTokenMS: math.NaN(), TileTokens: 0, PairMS: math.Inf(1), SustainedMS: 0,
		MixedDecodeMS: -1, MixedContextMS: -1, SustainedShare: -1, EagerMS: -1, PrefillMixedMS: math.NaN(),
		HostMS: -1, HostRequestMS: -1, ColdStartMS: 1e12, DecodeComputeShare: 1.1, NoiseShare: 0.5,
		DecodeWave: 0.5, DecodeWaveShare: -0.1,
		DecodeLadder: []Rung{{Batch: 4, MS: 1, ContextMS: 1}, {Batch: 4, MS: 0, ContextMS: -1}},
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, name := range []string{
		"weights_ms", "dense_token_ms", "tile_tokens", "pair_ms", "sustained_ms", "mixed_decode_ms", "mixed_context_ms",
		"sustained_share", "eager_ms", "prefill_mixed_ms", "host_ms", "host_request_ms", "cold_start_ms",
		"decode_compute_share", "noise_share", "decode_wave", "decode_wave_share", "decode_ladder[1].batch", "decode_ladder[1].ms", "decode_ladder[1].context_ms",
	} {
		if !strings.Contains("\n"+err.Error(), "\n"+name+":") {
			t.Errorf("got\n%v\nwant a line about %s", err, name)
		}
	}
	if err := (Params{}).Validate(); err == nil || !strings.Contains(err.Error(), "decode_ladder: empty") {
		t.Errorf("got %v, want a fault of the empty ladder", err)
	}
	if _, err := New(bad); err == nil {
		t.Error("New: got no error, want one")
	}
}

func model(t *testing.T, p Params) *Model {
	t.Helper()
	m, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMonotone: more tokens, more context, more requests, a slower clock: never
// cheaper. It holds for weights that weigh more than a full tile, too.
func TestMonotone(t *testing.T) {
	heavy := plain()
	heavy.WeightsMS = 40
	small := plain()
	small.TileTokens, small.SustainedShare = 1, 0
	for name, p := range map[string]Params{"plain": plain(), "heavy weights": heavy, "tiles of one": small} {
		m := model(t, p)
		rng := rand.New(rand.NewPCG(1, 4))
		for range 3000 {
			var chunks []Chunk
			for range 1 + rng.IntN(4) {
				n := 1 + rng.IntN(600)
				chunks = append(chunks, Chunk{Tokens: n, Context: n + rng.IntN(3000)})
			}
			n, clock := rng.IntN(20), 1+rng.Float64()
			ctx := int64(n) * int64(rng.IntN(4000))
			base := m.Mixed(chunks, n, ctx, clock)
			check := func(what string, got Ticks) {
				if got < base {
					t.Fatalf("%s: chunks %v, %d decodes over %d: %s costs %d ticks, less than %d", name, chunks, n, ctx, what, got, base)
				}
			}
			check("a slower clock", m.Mixed(chunks, n, ctx, clock*1.1))
			check("more context", m.Mixed(chunks, n, ctx+100, clock))
			check("one decode more", m.Mixed(chunks, n+1, ctx+1, clock))
			more := append(append([]Chunk(nil), chunks...), Chunk{Tokens: 1, Context: 1})
			check("one chunk more", m.Mixed(more, n, ctx, clock))
			i := rng.IntN(len(chunks))
			chunks[i].Tokens++
			chunks[i].Context++
			check("one token more", m.Mixed(chunks, n, ctx, clock))
			chunks[i].Context += 50
			check("a longer prefix", m.Mixed(chunks, n, ctx, clock))
		}
	}
}

func TestDecodeLadder(t *testing.T) {
	m := model(t, plain())
	for n, want := range map[int]float64{1: 5.8, 2: 6, 4: 6, 5: 7, 8: 7, 9: 7.25, 16: 9} {
		base, per := m.Decode(n, 1, 1)
		if base != FromMillis(want) || per != FromMillis(2.4e-4) {
			t.Errorf("%d requests: got %d and %d ticks, want %d and %d", n, base, per, FromMillis(want), FromMillis(2.4e-4))
		}
	}
	for n := 1; n < 40; n++ {
		base, per := m.Decode(n, 1, 1)
		if more, morePer := m.Decode(n+1, 1, 1); more < base || morePer < per {
			t.Errorf("%d requests cost more than %d", n, n+1)
		}
		slow, slowPer := m.Decode(n, 1.5, 1)
		if want := float64(base) * 1.2; math.Abs(float64(slow)-want) > 1 || slowPer < per {
			t.Errorf("%d requests at clock factor 1.5: got %d, want %.0f: 40%% of a decode follows the clock", n, slow, want)
		}
	}
	// A ladder that falls, as the measured one does in places, is taken as it is,
	// but is not extrapolated downwards.
	p := plain()
	p.DecodeLadder = []Rung{{Batch: 2, MS: 8, ContextMS: 1e-4}, {Batch: 4, MS: 7, ContextMS: 1e-4}}
	m = model(t, p)
	for n, want := range map[int]float64{1: 8, 3: 7, 4: 7, 100: 7} {
		if base, _ := m.Decode(n, 1, 1); base != FromMillis(want) {
			t.Errorf("%d requests on a falling ladder: got %d ticks, want %d", n, base, FromMillis(want))
		}
	}
}

// TestDecodeWaves: the last wave costs as much as a full one, from 1.6 waves on,
// beyond the ladder too.
func TestDecodeWaves(t *testing.T) {
	p := plain()
	p.DecodeWave, p.DecodeWaveShare = 2.5, 0.6
	m := model(t, p)
	for n, want := range map[int]float64{1: 1, 3: 1, 4: 1 + 0.6*0.25, 5: 1, 6: 1 + 0.6*0.25, 10: 1, 11: 1 + 0.6*1.5/11} {
		base, per := m.Decode(n, 1, 1)
		if off := float64(per) - 2.4e-4*want*1e6*1024; math.Abs(off) > 1 {
			t.Errorf("%d requests: got %d ticks a token, want %.0f", n, per, 2.4e-4*want*1e6*1024)
		}
		if without, _ := model(t, plain()).Decode(n, 1, 1); base != without {
			t.Errorf("%d requests: waves changed what is no context from %d to %d", n, without, base)
		}
	}
}

// TestExperts: one request reads its share of the experts, many nearly all, and what
// a step costs besides is as without them.
func TestExperts(t *testing.T) {
	p := plain()
	p.ExpertsMS, p.ExpertsShare = 16, 0.125
	m := model(t, p)
	for n, share := range map[int]float64{1: 0.125, 2: 0.234375, 8: 0.656391, 100: 1} {
		with, per := m.Decode(n, 1, 1)
		without, same := model(t, plain()).Decode(n, 1, 1)
		rung := p.DecodeLadder[len(p.DecodeLadder)-1].Batch
		for _, r := range p.DecodeLadder {
			if n <= r.Batch {
				rung = r.Batch
				break
			}
		}
		if rung != n {
			share = 1 - math.Pow(0.875, float64(rung)) // a padded step routes its padding too
		}
		if got := (with - without).Duration().Seconds() * 1e3; math.Abs(got-16*share) > 0.05 {
			t.Errorf("%d requests: experts took %.3f ms, want %.3f", n, got, 16*share)
		}
		if per != same {
			t.Errorf("%d requests: experts changed the cost of context from %d to %d", n, same, per)
		}
	}
	for _, bad := range []float64{-0.1, 1.1, math.NaN()} {
		p.ExpertsShare = bad
		if p.Validate() == nil {
			t.Errorf("a share of %v passed", bad)
		}
	}
}

// TestStretchSum: a run of decode steps is an arithmetic series, exactly.
func TestStretchSum(t *testing.T) {
	m := model(t, plain())
	rng := rand.New(rand.NewPCG(2, 4))
	for range 200 {
		n, ctx, q := 1+rng.IntN(30), int64(rng.IntN(50000)), 1+rng.IntN(300)
		base, per := m.Decode(n, 1+rng.Float64()/3, 1)
		host := m.Host(n)
		var sum Ticks
		for k := range q {
			sum += host + base + per*Ticks(ctx+int64(k*n))
		}
		k, w := Ticks(q), Ticks(n)
		if got := k*(host+base+per*Ticks(ctx)) + per*w*(k*(k-1)/2); got != sum {
			t.Fatalf("%d steps of %d requests over %d tokens: got %d ticks, want %d", q, n, ctx, got, sum)
		}
	}
}

func TestTicks(t *testing.T) {
	if got := TicksOf(3 * time.Nanosecond); got != 3072 {
		t.Errorf("got %d ticks in 3ns, want 3072", got)
	}
	if got := Ticks(3071).Duration(); got != 2*time.Nanosecond {
		t.Errorf("got %v of 3071 ticks, want 2ns: rounded down", got)
	}
	if got := FromMillis(1.5).Duration(); got != 1500*time.Microsecond {
		t.Errorf("got %v, want 1.5ms", got)
	}
	m := model(t, plain())
	if got, want := m.Host(3), FromMillis(1.8); got != want {
		t.Errorf("got a host share of %d ticks, want %d", got, want)
	}
	if m.ColdStart() != FromMillis(4) || m.NoiseShare() != 0.02 {
		t.Errorf("got cold start %d and noise %v", m.ColdStart(), m.NoiseShare())
	}
}

func BenchmarkMixed(b *testing.B) {
	m, err := New(plain())
	if err != nil {
		b.Fatal(err)
	}
	chunks := []Chunk{{Tokens: 1000, Context: 3000}, {Tokens: 200, Context: 200}}
	for b.Loop() {
		m.Mixed(chunks, 8, 20000, 1.01)
	}
}
