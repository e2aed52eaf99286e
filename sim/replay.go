package sim

import (
	"fmt"
	"time"
)

// replay sends a trace's prompts when they are due.
type replay struct {
	c        *cluster
	prompts  []Prompt
	k        int
	rejected []Rejection
}

func (d *replay) start(c *cluster) error {
	for i, p := range d.prompts {
		if p.ScheduledAt < 0 || i > 0 && p.ScheduledAt < d.prompts[i-1].ScheduledAt {
			return fmt.Errorf("sim: trace row %d: due at %v, want times from 0 on in rising order", i+1, time.Duration(p.ScheduledAt))
		}
	}
	d.due()
	return nil
}

func (d *replay) due() {
	if d.k < len(d.prompts) {
		d.c.loop.At(time.Duration(d.prompts[d.k].ScheduledAt), rankArrive, d, 0)
	}
}

// Fire sends every prompt due at this instant; those no replica could ever hold
// are named instead.
func (d *replay) Fire(at time.Duration, _ int64) {
	p := d.prompts[d.k]
	d.k++
	d.due()
	f := d.c.fleet
	if most := min(f.MaxModelLen, f.Engine.Tokens()); p.Tokens+p.Max > most {
		d.rejected = append(d.rejected, Rejection{p.RequestID, fmt.Sprintf("prompt of %d tokens and %d of answer, fleet %s takes %d", p.Tokens, p.Max, f.Name, most)})
		return
	}
	d.c.send(p)
}

func (d *replay) ended(int64, time.Duration) {}
