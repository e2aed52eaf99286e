package traces_test

import (
	"bytes"
	"errors"
	"fmt"

	"kvfleet/traces"
)

// A trace whose writer was killed gives back every batch it had flushed.
func Example() {
	var disk bytes.Buffer
	w, err := traces.NewWriter(&disk, traces.Meta{Workload: "three requests"}, traces.Options{BatchRows: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"a", "b", "c"} {
		row := traces.NewRow()
		row.RequestID = id
		if err := w.Write(&row); err != nil {
			fmt.Println(err)
			return
		}
	}
	// The process dies here: no Flush, no Close.

	r, err := traces.NewReader(&disk)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Meta().Workload)
	for row, err := range r.Rows() {
		var truncated *traces.TruncatedError
		if errors.As(err, &truncated) {
			fmt.Println("truncated after row", truncated.After)
			break
		}
		fmt.Println(row.RequestID, row.Outcome)
	}
	// Output:
	// three requests
	// a pending
	// b pending
	// truncated after row 2
}
