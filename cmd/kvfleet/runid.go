package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kvfleet/sim"
	"kvfleet/traces"
)

// name says in the rows' metadata what the run was that no column and no key of
// the schema says, and names the run by all of it: equal runs have equal names,
// others have others.
func (j *job) name() {
	c := &j.cfg
	note := func(key, value string) {
		j.meta.Extra = append(j.meta.Extra, traces.KeyValue{Key: key, Value: value})
	}
	if c.Window > 0 {
		note("window", c.Window.String())
	}
	if c.Warmup > 0 {
		note("warmup", c.Warmup.String())
	}
	if c.Rate > 0 {
		note("arrival_process", cmp.Or(c.Arrivals, "even"))
		note("think", c.Think.String())
		if c.Shape > 0 {
			note("shape", strconv.FormatFloat(c.Shape, 'g', -1, 64))
		}
	}
	if len(c.Faults) > 0 {
		note("faults", faultsText(c.Faults))
	}
	if len(c.Trace) > 0 {
		note("prompts_sha256", promptsHash(c.Trace))
	}
	slices.SortFunc(j.meta.Extra, func(a, b traces.KeyValue) int { return strings.Compare(a.Key, b.Key) })
	h := sha256.New()
	for _, kv := range j.meta.KeyValues() {
		fmt.Fprintf(h, "%q=%q\n", kv.Key, kv.Value)
	}
	j.meta.RunID = hex.EncodeToString(h.Sum(nil)[:8])
}

// faultsText is the schedule in one line.
func faultsText(faults []sim.Fault) string {
	all := make([]string, len(faults))
	for i, f := range faults {
		all[i] = fmt.Sprintf("%v %s %s", f.At, f.Kind, f.Replica)
		if f.Factor != 0 {
			all[i] += fmt.Sprintf(" factor %v", f.Factor)
		}
		if f.For != 0 {
			all[i] += fmt.Sprintf(" for %v", f.For)
		}
	}
	return strings.Join(all, "; ")
}

// promptsHash is of everything a replayed trace brings into a run.
func promptsHash(prompts []sim.Prompt) string {
	h := sha256.New()
	var number [8]byte
	for i := range prompts {
		p := &prompts[i]
		fmt.Fprintf(h, "%q %q %d %d %d %d %d %d %d %d %d %v %v %v %d\n", p.RequestID, p.Session, p.Source, p.Turn, p.User, p.Bytes, p.Tokens,
			p.Max, p.Stop, p.ScheduledAt, p.TraceBlock, p.Distinct, p.System, p.Branch, len(p.Trace))
		for _, b := range p.Trace {
			binary.LittleEndian.PutUint64(number[:], b)
			h.Write(number[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
