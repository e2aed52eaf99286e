package sim

import (
	"testing"
	"time"

	"kvfleet/sim/thermal"
)

// The room's temperature is not published and thermal.csv does not fix it. The
// published grid keeps a cell only if no card was held by its temperature limit
// for over half of its busy time, so the room was no warmer than the warmest at
// which steady work holds none so long. The fleet file states that, to the half
// degree.
func TestAmbientIsTheWarmestThatHoldsNoCard(t *testing.T) {
	f := loadReference(t)
	held := func(ambient float64) float64 {
		cards, err := thermal.New(f.Thermal.Cards, f.Thermal.Coupling, ambient)
		if err != nil {
			t.Fatal(err)
		}
		work := make([]thermal.Activity, len(f.Thermal.Cards))
		for i := range work {
			work[i] = steadyWork
		}
		cards.Preheat(10*time.Minute, work)
		seconds := make([]int, len(work))
		const length = 600
		for s := range length {
			cards.Advance(time.Duration(s+1)*time.Second, work)
			for i := range seconds {
				if cards.Throttled(i) {
					seconds[i]++
				}
			}
		}
		worst := 0
		for _, n := range seconds {
			worst = max(worst, n)
		}
		return float64(worst) / length
	}
	for a := f.Thermal.AmbientC - 2; a <= f.Thermal.AmbientC+3; a += 0.5 {
		share := held(a)
		t.Logf("at %.1f C the hottest card is held %.0f%% of the time", a, share*100)
		if a <= f.Thermal.AmbientC && share > 0.5 || a == f.Thermal.AmbientC+0.5 && share <= 0.5 {
			t.Errorf("%.1f C is not the warmest half degree at which no card is held for over half the time: at %.1f C the share is %.2f", f.Thermal.AmbientC, a, share)
		}
	}
}
