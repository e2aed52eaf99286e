package des_test

import (
	"fmt"
	"time"

	"kvfleet/sim/des"
)

type door struct{ loop *des.Loop }

func (d *door) Fire(at time.Duration, visitor int64) {
	fmt.Println(at, "visitor", visitor)
	if visitor == 1 {
		d.loop.At(at+time.Second, 0, d, 3)
	}
}

func Example() {
	var loop des.Loop
	d := &door{&loop}
	loop.At(2*time.Second, 1, d, 2)
	loop.At(time.Second, 0, d, 1)
	for loop.Step() {
	}
	// Output:
	// 1s visitor 1
	// 2s visitor 3
	// 2s visitor 2
}
