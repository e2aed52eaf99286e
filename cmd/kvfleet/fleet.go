package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kvfleet/policies"
	"kvfleet/policies/block"
	"kvfleet/sim"
	"kvfleet/traces"
)

const defaultFleet = "rtx3090x5"

// A fleetFile is a fleet, the text it was read from and the text's hash, in hex.
type fleetFile struct {
	*sim.Fleet
	text []byte
	hash string
}

func loadFleet(name string) (fleetFile, error) {
	text, err := sim.FleetFile(name)
	if err != nil {
		return fleetFile{}, err
	}
	f, err := sim.DecodeFleet(text, name)
	if err != nil {
		return fleetFile{}, err
	}
	sum := sha256.Sum256(text)
	return fleetFile{f, text, hex.EncodeToString(sum[:])}, nil
}

// meta is what a trace records of the fleet.
func (f fleetFile) meta() traces.Fleet {
	return traces.Fleet{
		Name: f.Name, Hash: f.hash, Replicas: int64(len(f.Replicas)), KVTokens: int64(f.KVTokens()), Engine: f.EngineText(),
	}
}

// defaults gives every policy's parameters on this fleet when none is set.
func (f fleetFile) defaults() map[string]string {
	all := map[string]string{}
	for _, s := range policies.Catalog() {
		all[s.Name] = policies.Choice{Spec: s}.Effective(f.Bounds())
	}
	return all
}

// staleBelief says of a choice that takes the router's belief bound from the fleet
// file that it does not go with the file's cache, as after one of them was edited.
func (f fleetFile) staleBelief(c policies.Choice) string {
	blocks := f.Router.BeliefBlocks
	if !strings.Contains(c.Effective(f.Bounds())+",", fmt.Sprintf("belief_blocks=%d,", blocks)) {
		return ""
	}
	fits := float64(f.KVTokens()) * f.Router.BytesPerToken / block.Size
	if ratio := float64(blocks) / fits; ratio > 0.8 && ratio < 1.25 {
		return ""
	}
	return fmt.Sprintf("%s believes in %s blocks (router.belief_blocks), the fleet's KV cache holds %s: set it, and router.belief_ttl to how long evicted blocks had lain idle",
		c.Spec.Name, grouped(int64(blocks)), grouped(int64(fits)))
}

// fleetOptions choose a fleet and change what a run may change of it.
type fleetOptions struct {
	name        string
	replicas    int
	maxModelLen int
}

func (o *fleetOptions) declare(f *flags, c *cobra.Command) {
	declareFleet(f, c, &o.name)
	one(f, &o.replicas, countsTo(1, mostReplicas), "replicas", "scale the fleet to this many replicas like its own", "")
	one(f, &o.maxModelLen, counts(2), "max-model-len", "longest sequence a replica accepts, tokens, instead of the fleet's", "")
}

func declareFleet(f *flags, c *cobra.Command, name *string) {
	one(f, name, named("NAME|FILE", "a fleet or a fleet file"), "fleet", "a fleet that comes with the tool, or a fleet file", defaultFleet)
	complete(c, "fleet", sim.FleetNames())
}

// load reads the fleet; whatever is wrong becomes a fault.
func (o *fleetOptions) load(f *flags) (fleetFile, bool) {
	fleet, err := loadFleet(o.name)
	if err != nil {
		f.fault("--fleet: %w", err)
		return fleet, false
	}
	if f.given("replicas") && o.replicas > 0 {
		fleet.Fleet = fleet.Scale(o.replicas)
		if err := fleet.Validate(); err != nil {
			f.fault("--replicas: fleet %s: %w", o.name, err)
			return fleet, false
		}
	}
	if f.given("max-model-len") && o.maxModelLen > 0 {
		changed := *fleet.Fleet
		changed.MaxModelLen = o.maxModelLen
		fleet.Fleet = &changed
	}
	return fleet, true
}

func (a *app) fleetsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "fleets", Short: "List the fleets that come with the tool",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.listFleets() },
	}
	c.AddCommand(&cobra.Command{
		Use: "show NAME|FILE", Short: "Print a fleet's file, word for word",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(sim.FleetNames(), cobra.ShellCompDirectiveDefault),
		RunE: func(_ *cobra.Command, args []string) error {
			fleet, err := loadFleet(args[0])
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(fleet.text)
			return err
		},
	})
	return c
}

func (a *app) listFleets() error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FLEET\tREPLICAS\tKV TOKENS\tMODEL\tDESCRIPTION")
	for _, name := range sim.FleetNames() {
		f, err := loadFleet(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", name, len(f.Replicas), grouped(int64(f.KVTokens())), f.Model, f.Description)
	}
	return w.Flush()
}

// complete offers names when the shell asks for a flag's value.
func complete(c *cobra.Command, flag string, names []string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveDefault)); err != nil {
		panic(err) // the flag was declared just before
	}
}

// grouped writes a count with commas: 629,760.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}
