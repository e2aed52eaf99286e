package fit_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"kvfleet/calibrate/fit"
)

// A step takes some time a token, and a constant that two settings share between
// them: rows tell the first and only the sum of the others.
func Example() {
	rng := rand.New(rand.NewPCG(1, 2))
	var tokens, ms []float64
	for range 200 {
		n := float64(100 + rng.IntN(2000))
		tokens, ms = append(tokens, n), append(ms, 8+0.2*n+2*rng.NormFloat64())
	}
	problem := fit.Problem{
		Parameters: []fit.Parameter{
			{Name: "token_ms", Start: 0.1, High: 1, Width: 0.01},
			{Name: "host_ms", Start: 5, High: 20, Width: 1},
			{Name: "delay_ms", Start: 5, High: 20, Width: 1},
		},
		Residuals: func(x []float64) []float64 {
			r := make([]float64, len(ms))
			for i := range r {
				r[i] = (x[0]*tokens[i] + x[1] + x[2] - ms[i]) / 2
			}
			return r
		},
	}
	solution, err := problem.Solve(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	var draws []float64
	for _, x := range solution.Draws(500, rng) {
		draws = append(draws, x[0])
	}
	low, high := fit.Interval(draws)
	fmt.Printf("%.3f ms a token, %.4f to %.4f\n", solution.X[0], low, high)
	for _, j := range solution.Judge() {
		fmt.Println(j)
	}
	// Output:
	// 0.200 ms a token, 0.1999 to 0.2008
	// token_ms: the rows leave 0% of what was unknown before
	// host_ms: the rows cannot tell it from [delay_ms]
	// delay_ms: the rows cannot tell it from [host_ms]
}
