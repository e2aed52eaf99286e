package requests_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kvfleet/calibrate/fit"
	"kvfleet/calibrate/replay"
	"kvfleet/calibrate/requests"
	"kvfleet/sim"
	"kvfleet/traces"
)

// A fleet whose decode steps are a third slower than the base says is found again
// in the requests it served.
func Example() {
	base, err := sim.LoadFleet("cpu-vllm")
	if err != nil {
		panic(err)
	}
	truth := base.Copy()
	for i := range truth.Step.DecodeLadder {
		truth.Step.DecodeLadder[i].MS *= 4.0 / 3
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "captured.arrows")
	capture(truth, path)
	recording, err := replay.Open(path)
	if err != nil {
		panic(err)
	}
	if err := recording.FitTo(base); err != nil {
		panic(err)
	}
	result, err := requests.Fit(context.Background(), base, []requests.Trace{{Recording: recording}}, requests.Options{Seed: 1, Async: true})
	if err != nil {
		panic(err)
	}
	for _, e := range result.Estimates {
		if e.Path == "step.decode_ladder" {
			fmt.Printf("a decode step of one request, less its own part: base %.1f ms, truth 8.0 ms, found within 5%%: %v\n", 6.0, e.Value > 7.6 && e.Value < 8.4)
			fmt.Println("verdict:", e.Verdict == fit.Measured)
		}
	}
	// Output:
	// a decode step of one request, less its own part: base 6.0 ms, truth 8.0 ms, found within 5%: true
	// verdict: true
}

// capture simulates 300 requests of several lengths and keeps what their client
// would have seen. The first come one at a time and the last many at once: only
// the two together tell what a step costs from what each of its requests adds.
func capture(f *sim.Fleet, path string) {
	policy, err := sim.ParsePolicy("least_outstanding")
	if err != nil {
		panic(err)
	}
	var prompts []sim.Prompt
	at := int64(0)
	for i := range 300 {
		gap := 300 + i*37%400
		if i >= 150 {
			gap /= 6
		}
		at += int64(time.Duration(gap) * time.Millisecond)
		out := 8 + i*13%60
		prompts = append(prompts, sim.Prompt{ScheduledAt: at, Tokens: 60 + i*101%900, Max: out, Stop: out, Distinct: true})
	}
	sink, err := traces.Create(path, traces.Meta{Producer: "example"}, traces.Options{})
	if err != nil {
		panic(err)
	}
	_, err = sim.Run(context.Background(), sim.Config{
		Fleet: f, Policy: policy, Seed: 7, Trace: prompts, KeepIDs: true,
		Rows: func(r *traces.Row) {
			row := *r
			row.Blocks, row.BlockSize = nil, 0
			if err := sink.Write(&row); err != nil {
				panic(err)
			}
		},
	})
	if err != nil {
		panic(err)
	}
	if err := sink.Close(); err != nil {
		panic(err)
	}
}
