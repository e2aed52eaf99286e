package sim

import (
	"testing"
)

// The room's temperature is not published and thermal.csv does not fix it. The
// published grid keeps a cell only if no card was held by its temperature limit
// for over half of its busy time: in the fleet file's room steady work holds none
// so long, and in a warm enough one it does.
func TestAmbientHoldsNoCard(t *testing.T) {
	f := loadReference(t)
	last := -1.0
	for a := f.Thermal.AmbientC - 2; a <= f.Thermal.AmbientC+15; a += 0.5 {
		share, err := f.Thermal.Held(a)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("at %.1f C the hottest card is held %.0f%% of the time", a, share*100)
		if a <= f.Thermal.AmbientC && share > 0.5 {
			t.Errorf("at %.1f C a card is held for %.2f of the time, want at most half of it", a, share)
		}
		last = share
	}
	if last <= 0.5 {
		t.Errorf("even in a room 15 degrees warmer no card is held for over half the time (%.2f): the limit is nowhere", last)
	}
}
