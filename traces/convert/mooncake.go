package convert

import (
	"encoding/json"
	"fmt"

	"kvfleet/traces"
)

// mooncakeBlock is how many prompt tokens one hash id of a Mooncake trace stands
// for. The last id of a prompt may stand for fewer.
const mooncakeBlock = 512

// mooncakeRow reads a line of a Mooncake trace. Its ids are chained already, an
// id names the whole prompt up to its block, so they are kept as they are.
func mooncakeRow(p *pass, number int, line []byte, r *traces.Row) (bool, error) {
	var v struct {
		Timestamp *float64 `json:"timestamp"`
		Input     *int64   `json:"input_length"`
		Output    *int64   `json:"output_length"`
		Hashes    []uint64 `json:"hash_ids"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return false, p.badJSON(number, line, err, mooncakeWants)
	}
	if v.Timestamp == nil || *v.Timestamp < 0 || *v.Timestamp > maxMillis {
		return false, p.bad(number, "timestamp", wantMillis, show(v.Timestamp))
	}
	if ok, err := p.lengths(number, r, "input_length", v.Input, "output_length", v.Output); !ok {
		return false, err
	}
	if want := ceilDiv(*v.Input, mooncakeBlock); int64(len(v.Hashes)) != want {
		return false, p.bad(number, "hash_ids", fmt.Sprintf("%d ids, one per %d of %d tokens", want, mooncakeBlock, *v.Input), fmt.Sprint(len(v.Hashes)))
	}
	r.RequestID = fmt.Sprint("mooncake-", number)
	r.ScheduledAt = nanos(*v.Timestamp, 1e6)
	r.BlockSize, r.Blocks = mooncakeBlock, v.Hashes
	return true, nil
}

// mooncakeWants is what a field holds, in words.
func mooncakeWants(field string) string {
	switch field {
	case "timestamp":
		return wantMillis
	case "input_length":
		return wantInput
	case "output_length":
		return wantOutput
	}
	return "a list of block ids, whole numbers of up to 64 bits"
}
