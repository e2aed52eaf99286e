package sim

import (
	"fmt"
	"time"
)

// replay sends a trace's prompts when they are due.
type replay struct {
	c       *cluster
	prompts []Prompt
	k       int
}

func (d *replay) start(c *cluster) error {
	for i := range d.prompts {
		at := d.prompts[i].ScheduledAt
		if at < 0 || i > 0 && at < d.prompts[i-1].ScheduledAt {
			return fmt.Errorf("sim: trace row %d: due at %v, want times from 0 on in rising order", i+1, time.Duration(at))
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

// Fire sends the next prompt.
func (d *replay) Fire(time.Duration, int64) {
	p := d.prompts[d.k]
	d.k++
	d.due()
	d.c.send(p)
}

// more says whether prompts are left.
func (d *replay) more() bool { return d.k < len(d.prompts) }

func (d *replay) ended(int64, time.Duration, bool) {}
