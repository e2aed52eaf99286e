package belief_test

import (
	"fmt"
	"time"

	"kvfleet/policies/belief"
)

func Example() {
	ix, err := belief.New(belief.Config{TTL: time.Minute, Blocks: 16311})
	if err != nil {
		fmt.Println(err)
		return
	}
	first := []uint64{11, 12, 13}
	ix.Admit(0, ix.Find(first), 4)

	next := []uint64{11, 12, 13, 14, 15} // the session's next turn
	everyone, holders := []uint64{1<<5 - 1}, []uint64{0}
	run := ix.Longest(10*time.Second, ix.Find(next), everyone, holders)
	fmt.Printf("%d blocks, held by replicas %05b\n", run, holders[0])
	fmt.Println(ix.Run(2*time.Minute, ix.Find(next), 4), "blocks two minutes later")
	// Output:
	// 3 blocks, held by replicas 10000
	// 0 blocks two minutes later
}
