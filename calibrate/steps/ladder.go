package steps

import (
	"slices"

	"kvfleet/sim/latency"
)

// A Ladder says which batch sizes the engine has captured, by the log, and how
// rungs without steps were filled.
type Ladder struct {
	// Chosen is the name of the candidate that was taken.
	Chosen string
	// Sizes are its captured sizes, up to the base file's largest or, if that is
	// more, the largest batch of the log.
	Sizes []int
	// Decided says that every other ladder is worse or only finer. Where it is
	// false, the base file's ladder was kept if it is among the best.
	Decided bool
	// Candidates are what was compared, each on shapes held out.
	Candidates []Candidate
	// Curve is how rungs without steps are filled: "lines" between neighbours, or
	// "tiles", the cost of whole and started tiles of matrix products plus what
	// neighbours differ from it. Curves are both, compared likewise.
	Curve  string
	Curves []Candidate
	// Wave and WaveShare are decode_wave and decode_wave_share; Waves are none and
	// the best wave found, compared likewise.
	Wave, WaveShare float64
	Waves           []Candidate
}

// A Candidate is one hypothesis and its error on decode steps held out.
type Candidate struct {
	Name    string
	HeldOut Errors
	// Score is the mean absolute error, each error counting up to 0.3.
	Score float64
	sizes []int
}

func candidate(name string, sizes []int, errs []float64) Candidate {
	return Candidate{name, errorsOf(errs), score(errs), sizes}
}

// score is the mean of absolute errors up to 0.3.
func score(errs []float64) float64 {
	sum := 0.0
	for _, e := range errs {
		sum += min(max(e, -e), 0.3)
	}
	return sum / float64(max(1, len(errs)))
}

// clearly is the log-likelihood, in nats, by which errors must differ for one
// hypothesis to be called better; found is the same for one of many that were
// tried.
const (
	clearly = 5
	found   = 10
)

// nats is by how much the better of two scores is likelier, errors taken as double
// exponential; below 0 it is the worse. Scores below a thousandth are alike.
func nats(better, worse float64, rows int) float64 {
	return float64(rows) * (worse - better) / max(min(better, worse), 1e-3)
}

// The names of candidates.
const (
	ladderBase = "the base file's"
	curveLines = "lines"
	curveTiles = "tiles"
)

// A hypothesis is a rule for captured sizes.
type hypothesis struct {
	name  string
	first []int // then on by every
	every int
}

// sizes are the captured sizes up to the first that holds top requests.
func (h *hypothesis) sizes(top int) []int {
	sizes := slices.Clone(h.first)
	for sizes[len(sizes)-1] < top {
		last := sizes[len(sizes)-1]
		sizes = append(sizes, last-last%h.every+h.every)
	}
	return sizes[:rungOf(sizes, top)+1]
}

// ladders are the hypotheses that differ below top, the base file's first.
func ladders(base []latency.Rung, top int) []hypothesis {
	own, doubled, eights := []int{}, []int{}, []int{1, 2, 4}
	for _, r := range base {
		own = append(own, r.Batch)
	}
	for b := 1; b <= 1<<20; b *= 2 {
		doubled = append(doubled, b)
	}
	for b := 8; b <= 256; b += 8 {
		eights = append(eights, b)
	}
	var out []hypothesis
	for _, h := range []hypothesis{
		{ladderBase, own, mmaRows},
		{"1, 2, 4, then every 8, from 256 every 16", eights, 16},
		{"1, 2, 4, 8, then every 16", []int{1, 2, 4, 8, 16}, 16},
		{"1, 2, then every 4", []int{1, 2, 4}, 4},
		{"doubling", doubled, 1},
		{"every size", []int{1}, 1},
	} {
		same := slices.IndexFunc(out, func(o hypothesis) bool { return slices.Equal(o.sizes(top), h.sizes(top)) })
		if same < 0 {
			out = append(out, h)
		} else if same == 0 {
			out[0].name += ": " + h.name
		}
	}
	return out
}

// choose takes the likeliest of the candidates. Among those that are as good, the
// base file's, the first, is kept; else the one of fewest rungs is taken.
func (l *Ladder) choose(rows int) (best int) {
	list := l.Candidates
	likeliest := 0
	for i := range list {
		if list[i].Score < list[likeliest].Score {
			likeliest = i
		}
	}
	good := func(i int) bool { return nats(list[likeliest].Score, list[i].Score, rows) < clearly }
	if !good(0) {
		best = likeliest
		for i := range list {
			if good(i) && len(list[i].sizes) < len(list[best].sizes) {
				best = i
			}
		}
	}
	l.Chosen, l.Decided = list[best].Name, true
	for i := range list {
		if i != best && good(i) && !finer(list[i].sizes, list[best].sizes) {
			l.Decided = false
		}
	}
	return best
}

// finer says whether a has all sizes of b but perhaps the last, and more.
func finer(a, b []int) bool {
	return len(a) > len(b) && !slices.ContainsFunc(b[:len(b)-1], func(v int) bool { return !slices.Contains(a, v) })
}
