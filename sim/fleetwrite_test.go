package sim

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Every fleet that comes with the tool survives being written and read.
func TestEncodeReadsBack(t *testing.T) {
	for _, name := range FleetNames() {
		f := loadFleet(t, name)
		text, err := f.Encode("first line\nsecond line")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# first line\n# second line\n") {
			t.Errorf("%s: begins with %.60q, want the comment", name, text)
		}
		again, err := DecodeFleet(text, name)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(f, again) {
			t.Errorf("%s: reads back as another fleet", name)
		}
		second, err := again.Encode("first line\nsecond line")
		if err != nil || string(second) != string(text) {
			t.Errorf("%s: written twice, two texts (%v)", name, err)
		}
	}
}

func TestNumbersByPath(t *testing.T) {
	f := loadFleet(t, "rtx3090x5").Copy()
	whole := loadFleet(t, "rtx3090x5")
	for _, c := range []struct {
		path string
		want float64
		of   func() float64
	}{
		{"step.host_ms", 1.5, func() float64 { return f.Step.HostMS }},
		{"step.decode_ladder[8].ms", 6.5, func() float64 { return f.Step.DecodeLadder[3].MS }},
		{"thermal.cards[1].die_k_per_w", 0.25, func() float64 { return f.Thermal.Cards[1].DieKPerW }},
		{"thermal.cards[0].air_lag", 2.5, func() float64 { return f.Thermal.Cards[0].AirLag.Seconds() }},
		{"router.belief_ttl", 60, func() float64 { return f.Router.BeliefTTL.Seconds() }},
		{"router.belief_blocks", 7, func() float64 { return float64(f.Router.BeliefBlocks) }},
		{"output.early_shares[0]", 0.5, func() float64 { return f.Output.EarlyShares[0] }},
	} {
		before := c.of()
		if got, err := f.Number(c.path); err != nil || got != before {
			t.Errorf("%s: got %v, %v, want %v", c.path, got, err, before)
		}
		if err := f.SetNumber(c.path, c.want); err != nil || c.of() != c.want {
			t.Errorf("%s: set to %v, got %v, %v", c.path, c.want, c.of(), err)
		}
	}
	if !reflect.DeepEqual(whole, loadFleet(t, "rtx3090x5")) {
		t.Error("setting a copy's numbers changed the fleet")
	}
	for _, path := range []string{"", "step", "step.nothing", "step.decode_ladder[3].ms", "step.decode_ladder[x].ms", "thermal.cards[9].static_w", "name", "step.host_ms.more", "engine.async_scheduling"} {
		if _, err := f.Number(path); err == nil {
			t.Errorf("%q: got no error", path)
		}
	}
	if _, err := smallFleet(t).Number("thermal.ambient_c"); err == nil {
		t.Error("a fleet without a thermal section has an ambient temperature")
	}
}

func TestDraws(t *testing.T) {
	f := loadFleet(t, "rtx3090x5").Copy()
	f.Draws = nil
	if _, err := f.Draw(0); err == nil {
		t.Error("a fleet without draws: got no error")
	}
	f.Draws = &Draws{Paths: []string{"step.host_ms", "router.belief_ttl"}, Values: [][]float64{{1, 50}, {2, 60}, {-1, 60}}}
	g, err := f.Draw(1)
	if err != nil || g.Step.HostMS != 2 || g.Router.BeliefTTL != time.Minute || g.Draws != nil {
		t.Errorf("got %v, %v, %v", g.Step.HostMS, g.Router.BeliefTTL, err)
	}
	if f.Step.HostMS == 2 {
		t.Error("a draw changed the fleet")
	}
	_, err = f.Draw(2)
	wantError(t, err, "draw 3: step: host_ms: got -1")
	f.Draws.Values[0] = []float64{1}
	f.Draws.Paths[1] = "router.nothing"
	wantError(t, f.Validate(), "draws.paths: fleet rtx3090x5 has no router.nothing", "draws.values[0]: got 1 values")
}
