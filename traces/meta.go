package traces

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Version is the version of the schemas this package writes. Readers accept any
// minor version of this major.
const Version = "1.0"

// The clocks a Meta may name.
const (
	ClockVirtual   = "virtual"   // simulated time
	ClockMonotonic = "monotonic" // a live run's clock
	ClockRecorded  = "recorded"  // arrival times of an imported trace
)

// A Meta says what a stream's rows are. It is stored as schema metadata, one
// text per key; a zero field is not stored and reads back as zero.
type Meta struct {
	Producer string // the program and its version, for example "kvfleet 0.1.0"
	Commit   string // of the producer
	RunID    string
	Seed     uint64
	Clock    string // ClockVirtual, ClockMonotonic or ClockRecorded
	// Origin is the wall-clock time of the run's origin, ns since the Unix epoch;
	// 0 if there is none.
	Origin int64

	Cell     Cell
	Workload string // the workload's name, which holds every knob that changes a byte
	SLO      SLO
	Fleet    Fleet
	// Evidence is what speaks for or against the rows, one remark per entry: what
	// a source does not hold, what was skipped, why a cell is set aside.
	Evidence []string

	// Extra holds keys this version does not know, in ascending order of key.
	Extra []KeyValue
}

// A Cell is one point of a grid, and one repetition of it.
type Cell struct {
	Policy     string
	Parameters string // every effective parameter, "k=v", sorted, joined by commas
	Driver     string // "closed" or "open"; empty if rows were not driven
	Load       float64
	WorkingSet float64
	Skew       float64
	Repetition int64
}

// A Fleet is what a trace records of the fleet that served it.
type Fleet struct {
	Name     string
	Hash     string // of the fleet file's content
	Replicas int64
	KVTokens int64 // KV capacity summed over the replicas
	Engine   string
}

// A KeyValue is one entry of schema metadata.
type KeyValue struct{ Key, Value string }

const evidenceSeparator = "\n"

// pairs lists the non-zero fields under their keys. It is the one place where a
// field meets its key; parse inverts it.
func (m *Meta) pairs() []metaPair {
	return []metaPair{
		text("producer", &m.Producer), text("commit", &m.Commit), text("run_id", &m.RunID),
		{"seed", func() string { return zeroEmpty(m.Seed != 0, strconv.FormatUint(m.Seed, 10)) },
			func(s string) (err error) { m.Seed, err = strconv.ParseUint(s, 10, 64); return err }},
		text("clock", &m.Clock), integer("time_origin_unix_ns", &m.Origin),
		text("policy", &m.Cell.Policy), text("parameters", &m.Cell.Parameters), text("driver", &m.Cell.Driver),
		number("load", &m.Cell.Load), number("working_set", &m.Cell.WorkingSet), number("skew", &m.Cell.Skew),
		integer("repetition", &m.Cell.Repetition), text("workload", &m.Workload),
		{"slo", func() string { return zeroEmpty(m.SLO != SLO{}, m.SLO.String()) },
			func(s string) (err error) { m.SLO, err = ParseSLO(s); return err }},
		text("fleet", &m.Fleet.Name), text("fleet_hash", &m.Fleet.Hash), integer("replicas", &m.Fleet.Replicas),
		integer("fleet_kv_tokens", &m.Fleet.KVTokens), text("engine", &m.Fleet.Engine),
		{"evidence", func() string { return strings.Join(m.Evidence, evidenceSeparator) },
			func(s string) error { m.Evidence = strings.Split(s, evidenceSeparator); return nil }},
	}
}

type metaPair struct {
	key   string
	get   func() string
	parse func(string) error
}

func text(key string, at *string) metaPair {
	return metaPair{key, func() string { return *at }, func(s string) error { *at = s; return nil }}
}

func integer(key string, at *int64) metaPair {
	return metaPair{key, func() string { return zeroEmpty(*at != 0, strconv.FormatInt(*at, 10)) },
		func(s string) (err error) { *at, err = strconv.ParseInt(s, 10, 64); return err }}
}

func number(key string, at *float64) metaPair {
	return metaPair{key, func() string { return zeroEmpty(*at != 0, strconv.FormatFloat(*at, 'g', -1, 64)) },
		func(s string) (err error) {
			if *at, err = strconv.ParseFloat(s, 64); err == nil && (math.IsNaN(*at) || math.IsInf(*at, 0)) {
				err = errors.New("not a finite number")
			}
			return err
		}}
}

func zeroEmpty(set bool, value string) string {
	if set {
		return value
	}
	return ""
}

// KeyValues lists the metadata as it is stored, without the schema's own name
// and version: known keys in a fixed order, then Extra.
func (m *Meta) KeyValues() []KeyValue {
	var all []KeyValue
	for _, p := range m.pairs() {
		if v := p.get(); v != "" {
			all = append(all, KeyValue{p.key, v})
		}
	}
	return append(all, m.Extra...)
}

// schemaKeys are the keys that say what a stream is.
const (
	keySchema  = "schema_name"
	keyVersion = "schema_version"
)

// readMeta checks that the pairs describe a stream of the given schema in a
// version this package reads, and reads them.
func readMeta(schema string, stored []KeyValue) (Meta, error) {
	var m Meta
	known := m.pairs()
	var name, version string
	for _, kv := range stored {
		if kv.Key == keySchema {
			name = kv.Value
			continue
		}
		if kv.Key == keyVersion {
			version = kv.Value
			continue
		}
		i := slices.IndexFunc(known, func(p metaPair) bool { return p.key == kv.Key })
		switch {
		case i < 0:
			m.Extra = append(m.Extra, kv)
		case kv.Value != "":
			if err := known[i].parse(kv.Value); err != nil {
				return Meta{}, fmt.Errorf("metadata key %s: value %q: %w", kv.Key, kv.Value, err)
			}
		}
	}
	sort.SliceStable(m.Extra, func(i, j int) bool { return m.Extra[i].Key < m.Extra[j].Key })
	if name != schema {
		return Meta{}, fmt.Errorf("schema name is %q, want %q", name, schema)
	}
	return m, checkVersion(version)
}

// ErrNewer is what reading a stream of a newer major version reports.
var ErrNewer = errors.New("written by a newer kvfleet")

func checkVersion(version string) error {
	majorText, _, _ := strings.Cut(version, ".")
	major, err := strconv.Atoi(majorText)
	if err != nil || major < 1 {
		return fmt.Errorf("schema version is %q, want major.minor", version)
	}
	own, _, _ := strings.Cut(Version, ".")
	if want, _ := strconv.Atoi(own); major > want {
		return fmt.Errorf("schema version is %s, this program reads up to %s.x: %w", version, own, ErrNewer)
	}
	return nil
}
