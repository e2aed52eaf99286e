package sim

import (
	"testing"
)

// The room's temperature is not published and thermal.csv does not fix it. The
// published grid keeps a cell only if no card was held by its temperature limit
// for over half of its busy time, so the room was no warmer than the warmest at
// which steady work holds none so long. The fleet file states that, to the half
// degree.
func TestAmbientIsTheWarmestThatHoldsNoCard(t *testing.T) {
	f := loadReference(t)
	held := func(ambient float64) float64 {
		share, err := f.Thermal.Held(ambient)
		if err != nil {
			t.Fatal(err)
		}
		return share
	}
	for a := f.Thermal.AmbientC - 2; a <= f.Thermal.AmbientC+3; a += 0.5 {
		share := held(a)
		t.Logf("at %.1f C the hottest card is held %.0f%% of the time", a, share*100)
		if a <= f.Thermal.AmbientC && share > 0.5 || a == f.Thermal.AmbientC+0.5 && share <= 0.5 {
			t.Errorf("%.1f C is not the warmest half degree at which no card is held for over half the time: at %.1f C the share is %.2f", f.Thermal.AmbientC, a, share)
		}
	}
}
