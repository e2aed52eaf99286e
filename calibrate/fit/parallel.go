package fit

import (
	"runtime"
	"sync"
)

// Each calls f(0) to f(n-1), on as many goroutines as there are processors. The
// order in which they run says nothing about their results: f writes to places
// of its own.
func Each(n int, f func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers < 2 {
		for i := range n {
			f(i)
		}
		return
	}
	var group sync.WaitGroup
	next := make(chan int)
	for range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				f(i)
			}
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}
