package thermal

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Params are one card's constants. There is no useful zero value: New names
// every field that is out of range. Sources belong beside the values, in the
// fleet file.
type Params struct {
	// ReferenceClockMHz is the SM clock at which the step times were measured:
	// both factors are 1 there.
	ReferenceClockMHz float64 `yaml:"reference_clock_mhz"`
	// ClockFloorMHz, ClockTopMHz and ClockStepMHz are the ladder: floor,
	// floor+step, ... up to the top.
	ClockFloorMHz float64 `yaml:"clock_floor_mhz"`
	ClockTopMHz   float64 `yaml:"clock_top_mhz"`
	ClockStepMHz  float64 `yaml:"clock_step_mhz"`

	// PowerLimitW is the board power the limiter keeps working power under, W.
	PowerLimitW float64 `yaml:"power_limit_w"`
	// IdleW is the draw at rest, W. AwakeW is the draw with nothing to do during
	// the first AwakeHold after work, while the card keeps its clocks up.
	IdleW     float64       `yaml:"idle_w"`
	AwakeW    float64       `yaml:"awake_w"`
	AwakeHold time.Duration `yaml:"awake_hold"`
	// StaticW is the part of working power that does not follow the SM clock
	// (memory, board, leakage at LeakageReferenceC), W.
	StaticW float64 `yaml:"static_w"`
	// ComputeW and BandwidthW are the part that does follow it, at the reference
	// clock, for prefill and for decode, W; it scales with (clock/reference) to
	// the PowerExponent.
	ComputeW      float64 `yaml:"compute_w"`
	BandwidthW    float64 `yaml:"bandwidth_w"`
	PowerExponent float64 `yaml:"power_exponent"`
	// LeakageWPerK is the growth of working power with die temperature, W/K,
	// counted from LeakageReferenceC, degrees Celsius.
	LeakageWPerK      float64 `yaml:"leakage_w_per_k"`
	LeakageReferenceC float64 `yaml:"leakage_reference_c"`

	// DieKPerW and DieJPerK are the die's thermal resistance to the sink and its
	// heat capacity; SinkKPerW and SinkJPerK the same of the sink to local air.
	DieKPerW  float64 `yaml:"die_k_per_w"`
	DieJPerK  float64 `yaml:"die_j_per_k"`
	SinkKPerW float64 `yaml:"sink_k_per_w"`
	SinkJPerK float64 `yaml:"sink_j_per_k"`
	// AirLag is the time constant with which local air follows the heat that the
	// neighbours give off; at least Tick.
	AirLag time.Duration `yaml:"air_lag"`

	// TemperatureLimitC is the die temperature above which the ceiling is
	// lowered by one ladder step every ControlPeriod (a multiple of Tick); below
	// the limit less HysteresisK it is raised by one. Between, it stays.
	TemperatureLimitC float64       `yaml:"temperature_limit_c"`
	HysteresisK       float64       `yaml:"hysteresis_k"`
	ControlPeriod     time.Duration `yaml:"control_period"`

	// ComputeExponent and MemoryExponent turn a clock into a factor on
	// compute-bound and on bandwidth-bound time: (reference/clock)^exponent.
	ComputeExponent float64 `yaml:"compute_exponent"`
	MemoryExponent  float64 `yaml:"memory_exponent"`
}

// maxLadderSteps bounds the ladder, so that a step mistyped in Hz is named
// instead of filling memory.
const maxLadderSteps = 10_000

// faults returns everything wrong with the card at index i, nil if nothing is.
func (p *Params) faults(i int) error {
	var all []error
	fault := func(field string, got any, want string) {
		all = append(all, fmt.Errorf("thermal: card %d: %s: got %v, want %s", i, field, got, want))
	}
	positive := func(field string, v float64) {
		if !(v > 0) || math.IsInf(v, 0) {
			fault(field, v, "a positive finite number")
		}
	}
	notNegative := func(field string, v float64) {
		if !(v >= 0) || math.IsInf(v, 0) {
			fault(field, v, "a finite number of at least 0")
		}
	}
	finite := func(field string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			fault(field, v, "a finite number")
		}
	}
	positive("reference_clock_mhz", p.ReferenceClockMHz)
	positive("clock_floor_mhz", p.ClockFloorMHz)
	positive("clock_step_mhz", p.ClockStepMHz)
	finite("clock_top_mhz", p.ClockTopMHz)
	if !(p.ClockTopMHz >= p.ClockFloorMHz) {
		fault("clock_top_mhz", p.ClockTopMHz, fmt.Sprintf("at least the floor, %v", p.ClockFloorMHz))
	} else if (p.ClockTopMHz-p.ClockFloorMHz)/p.ClockStepMHz > maxLadderSteps {
		fault("clock_step_mhz", p.ClockStepMHz, fmt.Sprintf("a ladder of at most %d steps", maxLadderSteps))
	}
	positive("power_limit_w", p.PowerLimitW)
	notNegative("idle_w", p.IdleW)
	notNegative("awake_w", p.AwakeW)
	if p.AwakeW < p.IdleW {
		fault("awake_w", p.AwakeW, fmt.Sprintf("at least idle_w, %v", p.IdleW))
	}
	if p.AwakeHold < 0 {
		fault("awake_hold", p.AwakeHold, "at least 0")
	}
	notNegative("static_w", p.StaticW)
	positive("compute_w", p.ComputeW)
	positive("bandwidth_w", p.BandwidthW)
	positive("power_exponent", p.PowerExponent)
	notNegative("leakage_w_per_k", p.LeakageWPerK)
	finite("leakage_reference_c", p.LeakageReferenceC)
	positive("die_k_per_w", p.DieKPerW)
	positive("die_j_per_k", p.DieJPerK)
	positive("sink_k_per_w", p.SinkKPerW)
	positive("sink_j_per_k", p.SinkJPerK)
	if p.AirLag < Tick {
		fault("air_lag", p.AirLag, fmt.Sprintf("at least %v", Tick))
	}
	finite("temperature_limit_c", p.TemperatureLimitC)
	positive("hysteresis_k", p.HysteresisK)
	if p.ControlPeriod < Tick || p.ControlPeriod%Tick != 0 {
		fault("control_period", p.ControlPeriod, fmt.Sprintf("a positive multiple of %v", Tick))
	}
	notNegative("compute_exponent", p.ComputeExponent)
	notNegative("memory_exponent", p.MemoryExponent)
	return errors.Join(all...)
}
