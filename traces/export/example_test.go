package export_test

import (
	"fmt"
	"os"

	"kvfleet/traces"
	"kvfleet/traces/export"
)

func Example() {
	row := traces.NewRow()
	row.RequestID, row.ScheduledAt, row.PromptTokens = "azure-2", 0, 4808
	rows := func(yield func(traces.Row, error) bool) { yield(row, nil) }
	n, err := export.JSONL(rows, os.Stdout)
	fmt.Println(n, err)
	// Output:
	// {"request_id":"azure-2","session_source":"none","epoch":0,"scheduled_at":0,"prompt_tokens":4808,"system_prompt":false,"branch":false,"reroutes":0,"outcome":"pending","warmup":false}
	// 1 <nil>
}
