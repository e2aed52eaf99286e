package residency_test

import (
	"fmt"

	"kvfleet/policies/residency"
)

func Example() {
	var x residency.Index
	prompt := []uint64{21, 22, 23}
	x.Apply(0, []residency.Event{{Kind: residency.Stored, Hashes: prompt[:2]}})
	x.Apply(1, []residency.Event{{Kind: residency.Stored, Hashes: prompt}})

	rotation, holders := []uint64{0b11}, []uint64{0}
	run := x.Longest(prompt, rotation, holders)
	fmt.Printf("%d blocks, held by replicas %02b\n", run, holders[0])

	x.Apply(1, []residency.Event{{Kind: residency.Cleared}})
	run = x.Longest(prompt, rotation, holders)
	fmt.Printf("%d blocks, held by replicas %02b\n", run, holders[0])
	// Output:
	// 3 blocks, held by replicas 10
	// 2 blocks, held by replicas 01
}
