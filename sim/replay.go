package sim

import (
	"fmt"
	"time"

	"kvfleet/traces"
)

// replay sends a trace's prompts when they are due, or after the one they
// followed.
type replay struct {
	c         *cluster
	prompts   []Prompt
	k         int
	followers map[int64][]int // by the place of the request that lets them go
	waiting   int             // followers not yet due
}

func (d *replay) start(c *cluster) error {
	last := int64(0)
	for i := range d.prompts {
		p := &d.prompts[i]
		at := p.ScheduledAt
		if p.After > i || p.After < 0 {
			return fmt.Errorf("sim: trace row %d: follows row %d, want one before it", i+1, p.After)
		}
		if at < 0 || p.After == 0 && at < last {
			return fmt.Errorf("sim: trace row %d: due at %v, want times from 0 on in rising order", i+1, time.Duration(at))
		}
		if p.Replica != "" && !c.fleet.has(p.Replica) {
			return fmt.Errorf("sim: trace row %d: replica %s, which fleet %s does not have", i+1, p.Replica, c.fleet.Name)
		}
		if p.After == 0 {
			last = at
			continue
		}
		if d.followers == nil {
			d.followers = map[int64][]int{}
		}
		d.followers[int64(p.After-1)] = append(d.followers[int64(p.After-1)], i)
		d.waiting++
	}
	d.due()
	return nil
}

// due plans the next arrival that follows no other.
func (d *replay) due() {
	for d.k < len(d.prompts) && d.prompts[d.k].After > 0 {
		d.k++
	}
	if d.k < len(d.prompts) {
		d.c.loop.At(time.Duration(d.prompts[d.k].ScheduledAt), rankArrive, d, -1)
	}
}

// Fire sends the next prompt, or the follower of that place.
func (d *replay) Fire(_ time.Duration, place int64) {
	i := int(place)
	if place < 0 {
		i = d.k
		d.k++
		d.due()
	} else {
		d.waiting--
	}
	p := d.prompts[i]
	p.driverCookie = int64(i)
	if place >= 0 {
		p.ScheduledAt = traces.None
	}
	d.c.send(p)
}

// more says whether prompts are left.
func (d *replay) more() bool { return d.k < len(d.prompts) || d.waiting > 0 }

func (d *replay) ended(place int64, now time.Duration, _ bool) {
	for _, i := range d.followers[place] {
		d.c.loop.At(now+time.Duration(d.prompts[i].ScheduledAt), rankArrive, d, int64(i))
	}
}
