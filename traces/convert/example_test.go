package convert_test

import (
	"fmt"
	"os"
	"path/filepath"

	"kvfleet/traces/convert"
)

func Example() {
	dir, err := os.MkdirTemp("", "convert")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "download")
	text := `{"timestamp": 27482, "input_length": 700, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 30535, "input_length": 900, "output_length": 26, "hash_ids": [46, 2353]}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		fmt.Println(err)
		return
	}

	trace, err := convert.Open(path, convert.Options{RateScale: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(trace.Format, trace.Meta.Workload)
	for row, err := range trace.Rows() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(row.ScheduledAt/1e6, "ms", row.PromptTokens, row.MaxTokens, row.Blocks)
	}
	// Output:
	// mooncake trace(format=mooncake,file=download,bytes=172,rate_scale=2)
	// 0 ms 700 52 [46 47]
	// 1526 ms 900 26 [46 2353]
}
