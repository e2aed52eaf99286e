package calibrate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"kvfleet/calibrate"
	"kvfleet/sim"
)

// Settings alone are an input too: they are stated, and nothing else moves.
func Example() {
	base, err := sim.LoadFleet("h100x1")
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "settings.json")
	text := `{"block_size": 16, "num_gpu_blocks": 9000, "engine_kwargs": {"max_num_seqs": 64, "async_scheduling": false}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		panic(err)
	}
	result, err := calibrate.Run(context.Background(), calibrate.Inputs{Base: base, BaseName: "h100x1", Settings: path}, calibrate.Options{})
	if err != nil {
		panic(err)
	}
	for _, e := range result.Estimates {
		fmt.Printf("%s: %g, %s (%s)\n", e.Path, e.Value, e.Verdict, e.Rows)
	}
	fmt.Println("scheduling ahead:", result.Fleet.Engine.Async)
	// Output:
	// engine.block_size: 16, stated (settings.json)
	// engine.num_gpu_blocks: 9000, stated (settings.json)
	// engine.max_num_seqs: 64, stated (settings.json)
	// engine.async_scheduling: 0, stated (settings.json)
	// scheduling ahead: false
}
