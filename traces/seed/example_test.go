package seed_test

import (
	"fmt"

	"kvfleet/traces/seed"
)

func Example() {
	run := seed.Seed(1)
	before := run.Stream("visit", 4).IntN(1000)

	// Another user draws as often as it likes: user 4 notices nothing.
	other := run.Stream("visit", 5)
	for range 100 {
		other.IntN(1000)
	}
	fmt.Println(before == run.Stream("visit", 4).IntN(1000))
	// Output: true
}
