package sim

import (
	"fmt"

	"kvfleet/policies"
	"kvfleet/sim/engine"
	"kvfleet/traces"
)

// A Rejection is a request that was refused: no replica could ever serve it.
type Rejection struct {
	Request string // the row's request_id
	Reason  string
}

// tooLong says why no replica could ever serve a prompt, or nothing.
func (f *Fleet) tooLong(p *Prompt) string {
	switch most := f.Engine.Tokens(); {
	case p.Tokens+p.Max > f.MaxModelLen:
		return fmt.Sprintf("%d tokens of prompt and %d of answer, the model's context is %d", p.Tokens, p.Max, f.MaxModelLen)
	case p.Tokens+p.Max > most:
		return fmt.Sprintf("%d tokens of prompt and %d of answer, a replica's KV cache holds %d", p.Tokens, p.Max, most)
	}
	return ""
}

// reject answers a prompt as an engine does that cannot serve it, with status
// 400. No replica is troubled: they would all say the same.
func (c *cluster) reject(p Prompt, why string) {
	now := c.loop.Now()
	c.serial++
	k := call{
		serial: c.serial, prompt: p, req: &engine.Request{}, sent: now, decided: now,
		from: policies.NoReplica, replica: policies.NoReplica,
	}
	c.lastEnd = now
	c.rejected = append(c.rejected, Rejection{k.name(), why})
	c.row(&k, traces.Failed, why, now)
	c.driver.ended(p.driverCookie, now, true)
}
