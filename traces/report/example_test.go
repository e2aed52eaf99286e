package report_test

import (
	"fmt"
	"log"

	"kvfleet/traces/report"
)

// A sweep becomes a grid, and two of its policies a pressure map.
func Example() {
	cells, err := report.ReadCells("testdata/cells.csv")
	if err != nil {
		log.Fatal(err)
	}
	grid, err := report.NewGrid(cells, report.Defaults{"prefix_affinity": "spill_factor=1.5,ttl=10m"})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range report.NewPressureMap(grid, "prefix_affinity", "session_affinity").Points {
		fmt.Printf("working set %v, skew %v: %+.0f%%, within spread: %t\n", d.WorkingSet, d.Skew, 100*d.Ratio, d.WithinSpread)
	}
	// Output:
	// working set 1, skew 0: +67%, within spread: false
	// working set 1, skew 1.4: +177%, within spread: false
	// working set 8, skew 0: +2%, within spread: true
	// working set 8, skew 1.4: -7%, within spread: false
}

// Simulated cells are held against measured ones.
func ExampleValidate() {
	cells, err := report.ReadCells("testdata/cells.csv")
	if err != nil {
		log.Fatal(err)
	}
	measured, err := report.ReadMeasured("testdata/measured.csv")
	if err != nil {
		log.Fatal(err)
	}
	v, err := report.Validate(cells, measured)
	if err != nil {
		log.Fatal(err)
	}
	for _, fault := range (report.Limits{MaxMedianError: 0.025, RequireOverlap: true}).Check(v) {
		fmt.Println(fault)
	}
	// Output:
	// median goodput error over stable cells is 0.10000, limit 0.025
	// working set 8, skew 1.4, session_affinity: simulated goodput [30.00..31.00] and measured [14.00..21.00] do not overlap
}
