package workload_test

import (
	"fmt"
	"time"

	"kvfleet/traces/workload"
)

// The published workload for a fleet of five replicas, as an open loop of six
// requests a second sends it.
func Example() {
	m, err := workload.Published(1, 0, 629_760, 1).Resolve()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Name())

	plan := workload.OpenPlan{
		Rate: 6, Window: time.Second / 2,
		Tokenizer: workload.Tokenizer{BytesPerToken: 1.635, StartTokens: 25, HeaderTokens: 4, TrailerTokens: 1},
	}
	for row, err := range m.OpenRows(plan) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(time.Duration(row.ScheduledAt), row.Session, "turn", row.Turn, row.PromptTokens, "tokens")
	}
	for _, warning := range plan.Warnings(m.Turns) {
		fmt.Println("warning:", warning)
	}
	// Output:
	// multiturn(sessions=307,skew=0,turns=4,prompt=448t,output=64t,system=0.3x128t,branch=0.3x8fam1t,bpt=4,seed=1)
	// 0s sess-0-11 turn 0 1448 tokens
	// 166.666667ms sess-0-253 turn 0 1130 tokens
	// 333.333333ms sess-0-171 turn 0 1130 tokens
	// warning: window of 500ms is 0.025 visits of 20s (4 turns, 5s apart): the last are cut short, so early turns are over-represented
}
