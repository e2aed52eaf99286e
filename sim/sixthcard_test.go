package sim

import (
	"context"
	"testing"
	"time"

	"kvfleet/policies"
	"kvfleet/traces"
)

// loadedMinutes sends prompts that share nothing, one at a time to each
// replica, for three minutes with ten seconds between them, from cold cards, and
// returns each replica's mean TTFT in ms by minute.
func loadedMinutes(t *testing.T, f *Fleet) map[string][3]float64 {
	t.Helper()
	f.Thermal.Warm = 0
	var prompts []Prompt
	for minute := range 3 {
		begin := time.Duration(minute) * 70 * time.Second
		for at := begin; at < begin+time.Minute; at += 820 * time.Millisecond {
			for range f.Replicas {
				prompts = append(prompts, Prompt{Tokens: 1288, Max: 64, Stop: 64, Distinct: true, ScheduledAt: int64(at)})
			}
		}
	}
	choice, err := policies.ParseChoice("round_robin")
	if err != nil {
		t.Fatal(err)
	}
	sum, n := map[string]*[3]float64{}, map[string]*[3]float64{}
	_, err = Run(context.Background(), Config{Fleet: f, Policy: choice, Seed: 1, Trace: prompts, Rows: func(r *traces.Row) {
		if sum[r.Replica] == nil {
			sum[r.Replica], n[r.Replica] = &[3]float64{}, &[3]float64{}
		}
		minute := int(time.Duration(r.SentAt) / (70 * time.Second))
		sum[r.Replica][minute] += float64(r.TTFT()) / 1e6
		n[r.Replica][minute]++
	}})
	if err != nil {
		t.Fatal(err)
	}
	mean := map[string][3]float64{}
	for name, s := range sum {
		mean[name] = [3]float64{s[0] / n[name][0], s[1] / n[name][1], s[2] / n[name][2]}
	}
	return mean
}

// The excluded sixth card loses TTFT minute by minute when all six cards run,
// and nothing when it runs alone (published: 1%, 13%, 17%).
func TestSixthCard(t *testing.T) {
	f, err := LoadFleet("rtx3090x6")
	if err != nil {
		t.Fatal(err)
	}
	together := loadedMinutes(t, f)
	alone := *f
	alone.Replicas = []Replica{f.Replicas[3]}
	solo := loadedMinutes(t, &alone)["replica-3"]
	var others [3]float64
	for _, r := range f.Replicas {
		if r.Name != "replica-3" {
			for m, v := range together[r.Name] {
				others[m] += v / float64(len(f.Replicas)-1)
			}
		}
	}
	var loss [3]float64
	for m, v := range together["replica-3"] {
		loss[m] = v/others[m] - 1
		t.Logf("minute %d: the sixth card %.0f ms, the others %.0f ms (%+.1f%%), alone %.0f ms", m+1, v, others[m], loss[m]*100, solo[m])
	}
	if loss[0] > 0.03 || loss[1] < 0.05 || loss[2] < 0.10 || loss[2] > 0.24 {
		t.Errorf("losses by minute are %.3f, want about 0.01, 0.13, 0.17", loss)
	}
	if solo[2]/solo[0] > 1.05 {
		t.Errorf("alone it goes from %.0f to %.0f ms, want it not to throttle", solo[0], solo[2])
	}
}
