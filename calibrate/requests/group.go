package requests

import (
	"slices"

	"kvfleet/traces"
)

// group sorts the targets into groups that the same constants move alike: by
// trace and metric, by how many requests were under way, how much had to be
// computed and how long the sequence was. Each of these is cut at quantiles of
// the trace's own rows.
func (p *problem) group() {
	type key struct {
		trace, load, work, length int
		metric                    metric
	}
	numbers := map[key]int{}
	for t := range p.traces {
		rows := p.traces[t].Rows
		load := cut(inFlight(rows), 0.05, 0.2, 0.4, 0.6, 0.8)
		work := cut(uncached(rows), 0.17, 0.33, 0.5, 0.67, 0.83)
		length := cut(lengths(rows), 0.25, 0.5, 0.75)
		for i := range p.targets {
			g := &p.targets[i]
			if g.trace != t {
				continue
			}
			k := key{trace: t, metric: g.metric, load: load[g.row], length: length[g.row]}
			g.regime = regime{trace: t, metric: g.metric}
			if g.rows != nil {
				k.load, k.length = cutMean(load, g.rows), 0
			}
			if g.metric == metricTTFT {
				k.work = work[g.row]
				g.regime.work = work[g.row] / 2
			}
			n, ok := numbers[k]
			if !ok {
				n = len(numbers)
				numbers[k] = n
			}
			g.group = n
		}
	}
}

// cut numbers the values by the quantiles they lie between.
func cut(values []float64, shares ...float64) []int {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	var limits []float64
	for _, s := range shares {
		limits = append(limits, sorted[int(s*float64(len(sorted)-1))])
	}
	limits = slices.Compact(limits)
	out := make([]int, len(values))
	for i, v := range values {
		for out[i] < len(limits) && v > limits[out[i]] {
			out[i]++
		}
	}
	return out
}

// cutMean is the group that the rows are in on average.
func cutMean(groups, rows []int) int {
	sum := 0
	for _, i := range rows {
		sum += groups[i]
	}
	return sum / len(rows)
}

// inFlight is how many requests were under way when each was sent, the rows
// being in order of that.
func inFlight(rows []traces.Row) []float64 {
	var ends []int64
	for i := range rows {
		if e := rows[i].EndedAt; e != traces.None {
			ends = append(ends, e)
		}
	}
	slices.Sort(ends)
	out := make([]float64, len(rows))
	for i := range rows {
		done, _ := slices.BinarySearch(ends, rows[i].SentAt+1)
		out[i] = float64(i - done)
	}
	return out
}

func promptOf(r *traces.Row) float64 {
	if r.EnginePromptTokens != traces.None {
		return float64(r.EnginePromptTokens)
	}
	return float64(r.PromptTokens)
}

// uncached is the tokens of each prompt that had to be computed, as far as known.
func uncached(rows []traces.Row) []float64 {
	out := make([]float64, len(rows))
	for i := range rows {
		out[i] = promptOf(&rows[i])
		if c := rows[i].CachedTokens; c != traces.None {
			out[i] -= float64(c)
		}
	}
	return out
}

// lengths is each whole sequence, prompt and half of the answer.
func lengths(rows []traces.Row) []float64 {
	out := make([]float64, len(rows))
	for i := range rows {
		out[i] = promptOf(&rows[i])
		if n := rows[i].OutputTokens; n != traces.None {
			out[i] += float64(n) / 2
		}
	}
	return out
}
