package heat

import (
	"slices"
	"time"

	"kvfleet/calibrate/fit"
	"kvfleet/sim/thermal"
)

// everyCard is the card of a slot that all cards share.
const everyCard = -1

// A slot is one number that a search may move.
type slot struct {
	fit.Parameter
	unit   string
	card   int // index into Telemetry.GPUs, or everyCard
	advice string
	get    func(p thermal.Params) float64 // nil for what no fleet file holds, which every replay needs
	put    func(t *trial, v float64)
}

// shared adds what all cards have in common. Bounds leave room for another make.
func (s *search) shared() {
	first := s.held.cards[0]
	add := func(name, unit string, width, low, high, least float64, get func(p thermal.Params) float64, put func(t *trial, v float64), advice string) {
		start := max(get(first), least)
		s.slots = append(s.slots, slot{fit.Parameter{Name: name, Start: start, Low: low * start, High: high * start, Width: width * start}, unit, everyCard, advice, get, put})
	}
	const (
		moments = "sample once a second over the first seconds of work and of rest"
		minutes = "work for five minutes, then rest for five"
		wander  = "work at one load from cold cards until the temperature limit acts"
	)
	add("compute_w", "W", 0.1, 0.2, 4, 1, func(p thermal.Params) float64 { return p.ComputeW },
		func(t *trial, v float64) { t.computeW = v }, wander)
	add("leakage_w_per_k", "W/K", 0.08, 0, 5, 0.1, func(p thermal.Params) float64 { return p.LeakageWPerK },
		func(t *trial, v float64) { t.each(func(p *thermal.Params) { p.LeakageWPerK = v }) }, wander)
	add("awake_w", "W", 0.03, 0.05, 4, first.IdleW+1, func(p thermal.Params) float64 { return p.AwakeW },
		func(t *trial, v float64) { t.each(func(p *thermal.Params) { p.AwakeW = max(v, p.IdleW) }) }, moments)
	add("die_j_per_k", "J/K", 0.1, 0.1, 10, 0, func(p thermal.Params) float64 { return p.DieJPerK },
		func(t *trial, v float64) { t.each(func(p *thermal.Params) { p.DieJPerK = v }) }, moments)
	add("sink_j_per_k", "J/K", 0.05, 0.1, 10, 0, func(p thermal.Params) float64 { return p.SinkJPerK },
		func(t *trial, v float64) { t.each(func(p *thermal.Params) { p.SinkJPerK = v }) }, minutes)
	add("air_lag", "s", 0.2, 0.05, 10, 5, func(p thermal.Params) float64 { return p.AirLag.Seconds() },
		func(t *trial, v float64) { t.each(func(p *thermal.Params) { p.AirLag = seconds(v) }) }, alone)
}

// alone is the run that tells neighbours' heat.
const alone = "load one card alone for some minutes, then with its neighbour"

// couplingFactor multiplies the whole coupling.
func (s *search) couplingFactor(sd float64) slot {
	coupling := s.held.coupling
	return slot{fit.Parameter{Name: "coupling_k_per_w", Start: 1, Low: 0, High: 5, Width: 0.05, PriorSD: sd}, "times the base's", everyCard, alone,
		func(thermal.Params) float64 { return 1 },
		func(t *trial, v float64) { t.coupling = scaled(coupling, v) }}
}

func scaled(coupling [][]float64, by float64) [][]float64 {
	out := make([][]float64, len(coupling))
	for i, row := range coupling {
		for _, k := range row {
			out[i] = append(out[i], k*by)
		}
	}
	return out
}

// card adds what each card has of its own.
func (s *search) card(i int) {
	p, bins := s.held.cards[i], s.t.Bins[i]
	begin := bins[0].TempC
	if bins[0].State != Idle {
		begin -= 12 // a die warms by that within seconds of work
	}
	s.slots = append(s.slots, slot{Parameter: within("start", begin, 0.5, min(s.held.ambientC, begin), 120),
		unit: "degrees Celsius", card: i, put: func(t *trial, v float64) { t.startC[i] = v }})

	hot, drawn, worked := 0.0, 0.0, false
	for _, b := range bins {
		if b.State == Loaded {
			hot, drawn, worked = max(hot, b.TempC), max(drawn, b.PowerW), true
		}
	}
	const never = "the base's: the card never works throughout a bin"
	add := func(moves bool, how string, x slot) {
		x.card = i
		if worked && moves {
			s.slots = append(s.slots, x)
			return
		}
		if !worked {
			how, x.advice = never, "load this card too"
		}
		s.kept = append(s.kept, kept{x, how})
	}
	draw := s.held.draw(p)
	add(true, "", slot{Parameter: within("static_w", draw, 0.003*draw, draw/3, draw*3), unit: "W",
		get: func(p thermal.Params) float64 { return p.StaticW }, put: func(t *trial, v float64) { t.drawW[i] = v }})
	add(true, "", slot{Parameter: within("die_k_per_w", p.DieKPerW, 0.03*p.DieKPerW, p.DieKPerW/5, p.DieKPerW*5), unit: "K/W",
		advice: "sample once a second over the first seconds of work and of rest",
		get:    func(p thermal.Params) float64 { return p.DieKPerW }, put: func(t *trial, v float64) { t.cards[i].DieKPerW = v }})
	// The hottest bin is near balance.
	sink := (hot-s.air(i))/max(drawn, 1) - p.DieKPerW
	add(true, "", slot{Parameter: within("sink_k_per_w", sink, 0.03*p.SinkKPerW, p.SinkKPerW/5, p.SinkKPerW*5), unit: "K/W",
		advice: "work for five minutes, then rest for five",
		get:    func(p thermal.Params) float64 { return p.SinkKPerW }, put: func(t *trial, v float64) { t.cards[i].SinkKPerW = v }})
	limit, acted := s.t.limit(i)
	add(acted, "the base's, or a degree above the hottest bin of work: the limit hardly acted", slot{
		Parameter: within("temperature_limit_c", limit, 0.4, limit-5, limit+1), unit: "degrees Celsius", // bins hover about it
		advice: "load the card with its neighbours until its temperature limit acts",
		get:    func(p thermal.Params) float64 { return p.TemperatureLimitC }, put: func(t *trial, v float64) { t.cards[i].TemperatureLimitC = v }})
}

func within(name string, start, width, low, high float64) fit.Parameter {
	return fit.Parameter{Name: name, Start: min(max(start, low), high), Low: low, High: high, Width: width}
}

// air is around a card while all cards work.
func (s *search) air(i int) float64 {
	sum := s.held.ambientC
	for j, k := range s.held.coupling[i] {
		sum += k * s.held.cards[j].PowerLimitW
	}
	return sum
}

// limit is the hottest loaded bin, and whether the temperature limit acted for at
// least half a bin of work: else the telemetry only bounds it from below.
func (t *Telemetry) limit(i int) (hottest float64, acted bool) {
	share := 0.0
	for _, b := range t.Bins[i] {
		if b.State == Loaded {
			hottest = max(hottest, b.TempC)
			share += b.Thermal
		}
	}
	return hottest, share >= 0.5
}

// edges adds the ends of work that lie within a bin after the first work. They are
// no constants of the cards, but the temperatures of those bins hang on them.
func (s *search) edges() {
	for _, group := range s.t.Alike {
		for k, l := range s.t.Loads[group[0]] {
			if k > 0 {
				s.edge(group, l.From, "load from", func(t *trial, i int, at time.Duration) { t.loads[i][k].From = at })
			}
			s.edge(group, l.To, "load to", func(t *trial, i int, at time.Duration) { t.loads[i][k].To = at })
		}
	}
}

func (s *search) edge(group []int, at time.Duration, name string, put func(t *trial, i int, at time.Duration)) {
	b := int(at / s.t.Length)
	if at%s.t.Length == 0 || s.t.Bins[group[0]][b].State != Straddling {
		return
	}
	low := (time.Duration(b) * s.t.Length).Seconds()
	length := s.t.Length.Seconds()
	s.slots = append(s.slots, slot{Parameter: within(name, at.Seconds(), length/20, low+0.001*length, low+0.999*length), unit: "s", card: everyCard,
		put: func(t *trial, v float64) {
			for _, i := range group {
				put(t, i, time.Duration(v*float64(time.Second)))
			}
		}})
}

// A belief is a constant that the search holds, as a slot that it could move, with
// what is known of it as the slot's prior.
type belief struct {
	slot
	path string
}

// beliefs are those whose effect on the others a fit tries.
func (s *search) beliefs(coupled bool) []belief {
	p := s.held.cards[0]
	one := func(path, name, unit string, value, sd, width, low float64, put func(t *trial, v float64), advice string) belief {
		return belief{slot{Parameter: fit.Parameter{Name: name, Start: value, Low: low, High: value + 5*sd, Width: width, PriorSD: sd},
			unit: unit, card: everyCard, advice: advice, put: put}, path + name}
	}
	out := []belief{
		one("thermal.", "ambient_c", "degrees Celsius", s.held.ambientC, 5, 0.5, s.held.ambientC-25, func(t *trial, v float64) { t.ambientC = v },
			"read the air at the cards' inlets during the run: cards that work at one power do not tell the room from their sinks"),
		one("thermal.cards[*].", "power_exponent", "-", p.PowerExponent, 0.3*p.PowerExponent, 0.1, 0.1*p.PowerExponent,
			func(t *trial, v float64) { t.each(func(p *thermal.Params) { p.PowerExponent = v }) },
			"repeat the load with the SM clock locked at four or more steps, below the power limit"),
		one("thermal.cards[*].", "hysteresis_k", "K", p.HysteresisK, 0.5*p.HysteresisK, 0.2*p.HysteresisK, 0.01*p.HysteresisK,
			func(t *trial, v float64) { t.each(func(p *thermal.Params) { p.HysteresisK = v }) },
			"sample temperature and clock once a second while the temperature limit acts"),
	}
	if !coupled && !flat(s.held.coupling) {
		c := s.couplingFactor(0.5)
		c.advice += ": here all cards work at the same times"
		out = append(out, belief{c, "thermal.coupling_k_per_w"})
	}
	return out
}

func flat(coupling [][]float64) bool {
	return !slices.ContainsFunc(coupling, func(row []float64) bool { return slices.Max(row) > 0 })
}
