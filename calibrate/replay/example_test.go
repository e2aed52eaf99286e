package replay_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"kvfleet/calibrate/replay"
	"kvfleet/sim"
)

// Three requests of a run, one of which is said to have more cached than it has. The
// others are simulated where they went.
func Example() {
	const rows = `scheduled_ms,started_ms,session,turn,replica,decision,inflight_at_choice,prompt_tokens,cached_tokens,prompt_bytes,output_tokens,ttft_ms,total_ms,itl_mean_ms,itl_p50_ms,itl_max_ms,outcome
0,0,ann,0,replica-0,NO_AFFINITY,0,2400,0,4000,64,640,1100,7.3,7.2,8,success
1500,1500,ann,1,replica-0,AFFINITY,0,4900,2448,8000,64,720,1190,7.5,7.4,8,success
1600,1600,bob,0,replica-1,NO_AFFINITY,0,2400,2416,4000,64,640,1100,7.3,7.2,8,success
`
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rows.csv")
	if err := os.WriteFile(path, []byte(rows), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	recording, err := replay.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fleet, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := recording.FitTo(fleet); err != nil {
		fmt.Println(err)
		return
	}
	out, err := recording.Simulate(context.Background(), fleet, "", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, o := range out {
		row := &recording.Rows[i]
		fmt.Printf("%s on %s: first token after %.1f s, simulated %.1f s, %d tokens cached\n",
			row.Session, row.Replica, float64(row.TTFT())/1e9, float64(o.TTFT)/1e9, o.Cached)
	}
	for _, e := range recording.Excluded {
		fmt.Println(e)
	}
	// Output:
	// ann on replica-0: first token after 0.6 s, simulated 0.6 s, 0 tokens cached
	// ann on replica-0: first token after 0.7 s, simulated 0.7 s, 2448 tokens cached
	// row 3 (kvroute-4): cached_tokens: are 2416 of a prompt of 2400
}
