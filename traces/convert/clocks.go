package convert

// maxWall bounds a time since the Unix epoch, in seconds: the year 2106. Two
// clocks of up to that are laid over each other without overflow.
const maxWall = 1 << 32

// clocks says how the two clocks of a trace stand to each other, in ns. Arrivals
// are on the first, what was measured on the second, and nothing in the file says
// which moments of the two are one. What follows an arrival does not come before
// it: the clocks are laid over each other so that nothing does, and the soonest
// follows at once. Whatever time the soonest took in truth is missing from every
// row alike; times measured by one clock keep their distances to the ns.
type clocks struct {
	seen  bool
	first int64 // the earliest arrival, by the first clock
	ahead int64 // what the second clock shows more than the first
}

// see notes a row's arrival by the first clock and what followed it by the
// second. Every row is to be seen before at is asked for a time.
func (k *clocks) see(arrival, followed int64) {
	if !k.seen {
		*k = clocks{true, arrival, followed - arrival}
	}
	k.first, k.ahead = min(k.first, arrival), min(k.ahead, followed-arrival)
}

// at is a time of the second clock as the first shows it.
func (k *clocks) at(t int64) int64 { return t - k.ahead }
