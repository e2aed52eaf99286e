package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"

	"kvfleet/sim"
	"kvfleet/traces/report"
)

const sweepFile = "sweep.json"

// A sweepRecord is sweep.json: how a sweep came about. It holds what differs
// from run to run and is therefore no part of the results.
type sweepRecord struct {
	Schema   string   `json:"schema"`
	Command  []string `json:"command"`
	Versions versions `json:"versions"`
	Seed     uint64   `json:"seed"`
	Fleet    struct {
		Name     string `json:"name"`
		Source   string `json:"source"` // as it was asked for
		Hash     string `json:"hash"`   // SHA-256 of the file
		Replicas int    `json:"replicas"`
		KVTokens int    `json:"kv_tokens"`
	} `json:"fleet"`
	Axes struct {
		Users       []int     `json:"users,omitempty"`
		Rates       []float64 `json:"rates,omitempty"`
		WorkingSets []float64 `json:"working_sets"`
		Skews       []float64 `json:"skews"`
		Repetitions int       `json:"repetitions"`
		Arrivals    string    `json:"arrivals,omitempty"`
		Shape       float64   `json:"shape,omitempty"`
		ThinkS      float64   `json:"think_s,omitempty"`
	} `json:"axes"`
	Policies []policyRecord `json:"policies"`
	// PolicyDefaults is what the plain name of every policy means on this fleet.
	PolicyDefaults map[string]string `json:"policy_defaults"`
	WindowS        float64           `json:"window_s"`
	WarmupS        float64           `json:"warmup_s"`
	CellsTotal     int               `json:"cells_total"`
	CellsFinished  int               `json:"cells_finished"`
	// FleetSamples is how many draws of the fleet's constants were asked for.
	FleetSamples    int `json:"fleet_samples,omitempty"`
	SamplesTotal    int `json:"samples_total,omitempty"` // cells under them
	SamplesFinished int `json:"samples_finished,omitempty"`
	timing
	// Previous is what earlier calls spent on the same directory, oldest first.
	Previous []timing `json:"previous,omitempty"`
}

type policyRecord struct {
	Name       string `json:"name"`
	Parameters string `json:"parameters"` // every one in force
}

// A timing is what one call did and spent.
type timing struct {
	CellsSimulated    int   `json:"cells_simulated"`    // those under draws included
	RequestsSimulated int64 `json:"requests_simulated"` // warm-up included
	spent
	RequestsPerCPUSecond figure `json:"requests_per_cpu_second"`
	GOMAXPROCS           int    `json:"gomaxprocs"`
	Workers              int    `json:"workers"`
	Interrupted          bool   `json:"interrupted,omitempty"`
}

// spent is time and memory of this process.
type spent struct {
	WallS        figure `json:"wall_s"`
	CPUS         figure `json:"cpu_s"` // user and system
	PeakRSSBytes int64  `json:"peak_rss_bytes"`
}

// A figure is a measured number; NaN is null.
type figure float64

func (f figure) MarshalJSON() ([]byte, error) { return report.Number(f).MarshalJSON() }

func (f *figure) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*f = figure(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(f))
}

func newSweepRecord(args []string, cfg *sim.SweepConfig, fleet fleetFile, o *sweepOptions, result *sim.SweepResult) sweepRecord {
	total := cellsOf(cfg)
	r := sweepRecord{
		Schema: "kvfleet.sweep/1", Command: append([]string{"kvfleet"}, args...), Versions: readVersions(),
		Seed: uint64(cfg.Seed), PolicyDefaults: fleet.defaults(),
		WindowS: cfg.Window.Seconds(), WarmupS: cfg.Warmup.Seconds(), CellsTotal: total, CellsFinished: len(result.Cells),
		FleetSamples: cfg.FleetSamples, SamplesTotal: total * cfg.FleetSamples, SamplesFinished: len(result.Samples),
	}
	r.Fleet.Name, r.Fleet.Source, r.Fleet.Hash = fleet.Name, o.fleet, fleet.hash
	r.Fleet.Replicas, r.Fleet.KVTokens = len(fleet.Replicas), fleet.KVTokens()
	r.Axes.Users, r.Axes.Rates, r.Axes.WorkingSets, r.Axes.Skews = cfg.Users, cfg.Rates, cfg.WorkingSets, cfg.Skews
	r.Axes.Repetitions, r.Axes.Arrivals, r.Axes.Shape, r.Axes.ThinkS = cfg.Repetitions, cfg.Arrivals, cfg.Shape, cfg.Think.Seconds()
	for _, p := range cfg.Policies {
		r.Policies = append(r.Policies, policyRecord{p.Spec.Name, p.Effective(fleet.Bounds())})
	}
	return r
}

func (r *sweepRecord) write(path string) error {
	return writeOut(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	})
}

// load is the sweep's one load in words; empty if it does not say, or has several.
func (r *sweepRecord) load() string {
	switch {
	case len(r.Axes.Users) == 1 && len(r.Axes.Rates) == 0:
		return report.LoadName(sim.DriverClosed, float64(r.Axes.Users[0]))
	case len(r.Axes.Rates) == 1 && len(r.Axes.Users) == 0:
		return report.LoadName(sim.DriverOpen, r.Axes.Rates[0])
	}
	return ""
}

// unfinished says how much of the sweep is missing, if something is.
func (r *sweepRecord) unfinished() []string {
	if r.CellsFinished >= r.CellsTotal {
		return nil
	}
	return []string{fmt.Sprintf("the sweep is unfinished, with %d of its %d cells: what is missing is not judged", r.CellsFinished, r.CellsTotal)}
}

// undrawn says how much is missing of the draws, if something is.
func (r *sweepRecord) undrawn() []string {
	if r.SamplesFinished >= r.SamplesTotal {
		return nil
	}
	return []string{fmt.Sprintf("the sweep is unfinished, with %d of the %d cells under draws: what is missing is not judged", r.SamplesFinished, r.SamplesTotal)}
}

// readSweepRecord reads a sweep.json; none is no error.
func readSweepRecord(path string) (r sweepRecord, found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, false, readError(path, err)
	}
	return r, true, nil
}

// A clock measures what a stretch of this process takes.
type clock struct {
	at  time.Time
	cpu float64
}

func startClock() clock {
	cpu, _ := usage()
	return clock{time.Now(), cpu}
}

func (c clock) read() spent {
	cpu, peak := usage()
	return spent{WallS: figure(time.Since(c.at).Seconds()), CPUS: figure(cpu - c.cpu), PeakRSSBytes: peak}
}

// usage is the process's CPU seconds and its peak resident memory in bytes.
func usage() (cpu float64, peak int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it only fails on arguments that make no sense
	}
	peak = int64(u.Maxrss)
	if runtime.GOOS != "darwin" && runtime.GOOS != "ios" {
		peak *= 1024
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime), peak
}

func perSecond(n int64, seconds figure) figure {
	if n == 0 || seconds <= 0 {
		return figure(math.NaN())
	}
	return figure(float64(n) / float64(seconds))
}
