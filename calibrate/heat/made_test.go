package heat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kvfleet/calibrate/fit"
	"kvfleet/sim"
)

// made is the telemetry that cards of these constants would give, as the text of its
// file: bins of five seconds, with the noise of a few samples a bin.
func made(t testing.TB, s *setup, bins int, loads [][]Load) string {
	t.Helper()
	m := &Telemetry{Length: 5 * time.Second, Loads: loads}
	for i := range s.cards {
		m.GPUs = append(m.GPUs, i)
		m.Bins = append(m.Bins, make([]Bin, bins))
	}
	got := m.replay(s, loads)
	if got == nil {
		t.Fatal("no chassis has these constants")
	}
	rng := rand.New(rand.NewPCG(7, 0))
	var out strings.Builder
	out.WriteString("gpu,t_s,temp_c,sm_mhz,power_w,util_pct,share_power_cap,share_sw_thermal,note\n")
	for i := range got {
		for b, x := range got[i] {
			begin, busy := time.Duration(b)*m.Length, time.Duration(0)
			for _, l := range loads[i] {
				busy += max(0, min(l.To, begin+m.Length)-max(l.From, begin))
			}
			util := float64(busy) / float64(m.Length)
			clock, capped := x.ClockMHz, 0.0
			if p := s.cards[i]; busy > 0 {
				clock += 15 * rng.NormFloat64()
			} else { // a chassis has no sleeping clock, and an awake card holds its top
				clock = p.ClockFloorMHz + (p.ClockTopMHz-p.ClockFloorMHz)*(x.PowerW-p.IdleW)/(p.AwakeW-p.IdleW)
			}
			if util == 1 && x.Thermal == 0 {
				capped = 1
			}
			fmt.Fprintf(&out, "%d,%v,%.1f,%.0f,%.2f,%.1f,%.2f,%.2f,made\n", i, begin.Seconds(), x.TempC+0.3*rng.NormFloat64(), clock,
				x.PowerW+0.5*rng.NormFloat64(), 100*util, capped, x.Thermal)
		}
	}
	return out.String()
}

func mustRead(t testing.TB, text string) *Telemetry {
	t.Helper()
	m, err := read("made.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// cut keeps the first cards of a base.
func cut(base *sim.Thermal, n int) *sim.Thermal {
	base.Cards = base.Cards[:n]
	base.Coupling = slices.Clone(base.Coupling[:n])
	for i := range base.Coupling {
		base.Coupling[i] = base.Coupling[i][:n]
	}
	return base
}

// minutes are stretches of work from numbers of seconds.
func minutes(s ...int) (out []Load) {
	for k := 0; k < len(s); k += 2 {
		out = append(out, Load{time.Duration(s[k]) * time.Second, time.Duration(s[k+1]) * time.Second})
	}
	return out
}

// other is three cards of another make than the base's.
func other(t testing.TB) (base *sim.Thermal, truth *setup) {
	base = cut(thermalOf(t, "rtx3090x6"), 3)
	truth = &setup{cards: slices.Clone(base.Cards), coupling: base.Coupling, ambientC: base.AmbientC, startC: []float64{32, 31, 33}, prefill: 0.4, ratio: 1}
	for i := range truth.cards {
		p := &truth.cards[i]
		p.ClockTopMHz = 1695
		p.IdleW, p.AwakeW, p.AwakeHold = 30, 90, 10*time.Second
		p.StaticW, p.ComputeW, p.BandwidthW, p.LeakageWPerK = 170+4*float64(i), 100, 100, 0.7
		p.DieKPerW, p.SinkKPerW = 0.12-0.01*float64(i), 0.11+0.01*float64(i)
		p.DieJPerK, p.SinkJPerK, p.AirLag = 25, 500, 15*time.Second
		p.TemperatureLimitC = 84 - 0.7*float64(i)
	}
	return base, truth
}

// -update makes the telemetry of the example again: two cards that rest, work together
// for three minutes and rest.
func TestExampleFile(t *testing.T) {
	base, truth := other(t)
	cut(base, 2)
	truth.cards, truth.coupling, truth.startC = truth.cards[:2], base.Coupling, truth.startC[:2]
	load := minutes(10, 188)
	text := made(t, truth, 48, [][]Load{load, load})
	if *update {
		if err := os.WriteFile("testdata/two-cards.csv", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read("testdata/two-cards.csv")
	if err != nil {
		t.Fatal(err)
	}
	got.Path = "made.csv"
	if want := mustRead(t, text); got.cost(got.residuals(want.Bins)) > 0.01 {
		t.Error("testdata/two-cards.csv is not what its constants make: run with -update")
	}
}

var update = flag.Bool("update", false, "write testdata/two-cards.csv anew")

// From telemetry made of known constants the fit finds them again, though its base
// is another make of card.
func TestRecovery(t *testing.T) {
	base, truth := other(t)
	load := minutes(20, 223, 330, 637)
	m := mustRead(t, made(t, truth, 160, [][]Load{load, load, load}))
	r, err := Fit(context.Background(), m, base, Options{})
	if err != nil {
		t.Fatal(err)
	}
	inside, all := 0, 0
	three := &sim.Thermal{Cards: truth.cards}
	for _, e := range r.Estimates {
		if !strings.HasPrefix(e.Path, "thermal.cards[") || e.Verdict != fit.Measured || e.Low == e.High {
			continue
		}
		want := constant(t, three, []int{0, 1, 2}, e.Path)
		t.Logf("%s: got %.4g, %.4g to %.4g, want %.4g", e.Path, e.Value, e.Low, e.High, want)
		if strings.HasSuffix(e.Path, "clock_top_mhz") {
			continue // a top below the one idle cards hold is a finding, not a constant of the replay
		}
		all++
		if e.Low <= want && want <= e.High {
			inside++
		}
		if math.Abs(e.Value/want-1) > 0.15 && (want < e.Low || want > e.High) {
			t.Errorf("%s: got %.4g, %.4g to %.4g, want %.4g within 15%% or the interval", e.Path, e.Value, e.Low, e.High, want)
		}
	}
	if t.Logf("cost %.3f, %d of %d inside, warnings %q", r.Cost, inside, all, r.Warnings); inside < all*2/3 || all < 15 {
		t.Errorf("%d of %d intervals hold the value, want two in three of at least 15", inside, all)
	}
}

// Cards that work alone and together tell how much they heat each other.
func TestAloneThenTogether(t *testing.T) {
	base, truth := other(t)
	truth.coupling = scaled(truth.coupling, 2)
	m := mustRead(t, made(t, truth, 220, [][]Load{minutes(20, 500, 760, 1000), minutes(260, 740), nil}))
	if len(m.Alike) != 3 || len(m.Loads[2]) != 0 {
		t.Fatalf("got groups %v and loads %v of the idle card, want three groups and none", m.Alike, m.Loads[2])
	}
	r, err := Fit(context.Background(), m, base, Options{Starts: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Estimates {
		switch e.Path {
		case "thermal.coupling_k_per_w":
			t.Logf("coupling %.3f, %.3f to %.3f", e.Value, e.Low, e.High)
			if e.Verdict != fit.Measured || math.Abs(e.Value-2) > 0.3 {
				t.Errorf("coupling: got %v, %.3f times the base's, want it measured as 2", e.Verdict, e.Value)
			}
		case "thermal.cards[2].sink_k_per_w":
			if e.Verdict != fit.Prior || e.Value != base.Cards[2].SinkKPerW || e.Advice == "" {
				t.Errorf("a card that never works: got %+v, want the base's with advice", e)
			}
		}
	}
	if got := r.Thermal.Coupling[0][1]; math.Abs(got-0.04) > 0.006 {
		t.Errorf("coupling of cards 0 and 1: got %.4f, want 0.04", got)
	}
	if len(r.Residuals) != 6 {
		t.Errorf("got %d residuals, want three each of the two cards that work", len(r.Residuals))
	}
}

// What cards loaded alike cannot tell stays the base's and names the run that would.
func TestPriorsNameTheirRun(t *testing.T) {
	base, truth := other(t)
	load := minutes(20, 183)
	m := mustRead(t, made(t, truth, 60, [][]Load{load, load, load}))
	r, err := Fit(context.Background(), m, base, Options{Starts: 1, Draws: 50})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range r.Estimates {
		found[e.Path] = true
		if e.Unit == "" || e.How == "" || e.Rows == "" {
			t.Errorf("%s: got %+v, want unit, rows and method", e.Path, e)
		}
		if e.Verdict == fit.Prior && e.Advice == "" {
			t.Errorf("%s: a prior without advice", e.Path)
		}
		if !(e.Low <= e.Value && e.Value <= e.High) && e.Verdict != fit.Measured {
			t.Errorf("%s: got %v outside %v to %v", e.Path, e.Value, e.Low, e.High)
		}
	}
	for _, want := range []string{"thermal.ambient_c", "thermal.coupling_k_per_w", "thermal.cards[*].power_exponent", "thermal.cards[*].bandwidth_w"} {
		i := slices.IndexFunc(r.Estimates, func(e fit.Estimate) bool { return e.Path == want })
		if i < 0 || r.Estimates[i].Verdict != fit.Prior {
			t.Errorf("%s: want a prior", want)
		}
	}
}

// Equal inputs and seeds give equal bytes on one processor and on several.
func TestSameBytes(t *testing.T) {
	base, truth := other(t)
	load := minutes(20, 183)
	text := made(t, truth, 60, [][]Load{load, load, load})
	run := func(processors int, seed uint64) []byte {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		r, err := Fit(context.Background(), mustRead(t, text), base, Options{Seed: seed, Starts: 2, Draws: 20})
		if err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if !bytes.Equal(run(1, 3), run(4, 3)) {
		t.Error("one and four processors give different results")
	}
	if bytes.Equal(run(2, 3), run(2, 4)) {
		t.Error("two seeds give the same draws")
	}
}

func TestFitRefuses(t *testing.T) {
	base, truth := other(t)
	load := minutes(20, 183)
	m := mustRead(t, made(t, truth, 60, [][]Load{load, load, load}))
	bad := *base
	bad.Coupling = nil
	_, err := Fit(context.Background(), m, &bad, Options{Starts: -1, PrefillShare: math.NaN(), RoomC: 300, GPUs: []int{0, 7, 0}})
	if err == nil {
		t.Fatal("got no error, want six")
	}
	for _, want := range []string{"base: ", "-1 starts", "prefill share", "room", "gpus[1]: got 7", "gpus[2]: got 0 again"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %q", err, want)
		}
	}
	if _, err := Fit(context.Background(), m, base, Options{GPUs: []int{0}}); err == nil {
		t.Error("one number for three cards: got no error")
	}
	if _, err := Fit(context.Background(), nil, base, Options{}); err == nil {
		t.Error("no telemetry: got no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Fit(ctx, m, base, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want that", err)
	}
}
