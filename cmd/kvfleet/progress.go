package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"kvfleet/sim"
)

const talkEvery = 5 * time.Second

// A watch shows how far a sweep is: a bar on a terminal, else a line every few
// seconds.
type watch struct {
	total int
	start time.Time

	mu   sync.Mutex
	last sim.SweepProgress
	bar  *mpb.Bar

	stop func()
}

func (a *app) watch(total int) *watch {
	w := &watch{total: total, start: time.Now()}
	if terminal(a.stderr) {
		w.draw(a.stderr)
	} else {
		w.stop = a.every(talkEvery, w.line)
	}
	return w
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (w *watch) draw(out io.Writer) {
	p := mpb.New(mpb.WithOutput(out), mpb.WithWidth(40))
	bar := p.AddBar(int64(w.total),
		mpb.PrependDecorators(decor.CountersNoUnit("%d of %d cells ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + w.rest() })),
	)
	w.bar = bar
	w.stop = func() {
		if !bar.Completed() {
			bar.Abort(false)
		}
		p.Wait()
	}
}

// progress takes the sweep's reports.
func (w *watch) progress(p sim.SweepProgress) {
	w.mu.Lock()
	w.last = p
	w.mu.Unlock()
	if w.bar != nil {
		w.bar.SetCurrent(int64(p.Done))
	}
}

func (w *watch) line() string {
	w.mu.Lock()
	done := w.last.Done
	w.mu.Unlock()
	return fmt.Sprintf("%d of %s, %s", done, plural(int64(w.total), "cell"), w.rest())
}

// rest is requests so far and time left, from how long the cells simulated by
// this call took.
func (w *watch) rest() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := plural(w.last.Requests, "request")
	fresh, left := w.last.Done-w.last.Skipped, w.total-w.last.Done
	if fresh > 0 && left > 0 {
		took := time.Since(w.start)
		text += ", about " + (took / time.Duration(fresh) * time.Duration(left)).Round(time.Second).String() + " left"
	}
	return text
}

// every tells a line every so often until stop is called.
func (a *app) every(period time.Duration, line func() string) (stop func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		t := time.NewTicker(period)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				a.talk("%s", line())
			}
		}
	}()
	return func() { close(done); <-gone }
}
