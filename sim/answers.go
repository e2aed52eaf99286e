package sim

import "kvfleet/traces/seed"

// Answers returns the draw of how many tokens an answer has: most (the request's
// max_tokens), or fewer for the share of answers measured to stop early. A
// conversation's turn gets the same length whatever the policy and the load.
func (f *Fleet) Answers(s seed.Seed, epoch, most int) func(user, visit, turn int) int {
	o := &f.Output
	if len(o.EarlyShares) == 0 {
		return func(int, int, int) int { return most }
	}
	return func(user, visit, turn int) int {
		share := o.EarlyShares[min(turn, len(o.EarlyShares)-1)]
		u := seed.Unit(s.Value("stop", epoch, user, visit, turn))
		if u >= share {
			return most
		}
		n := o.EarlyTokens[int(u/share*float64(len(o.EarlyTokens)))]
		return max(1, n*most/o.EarlyOf)
	}
}
