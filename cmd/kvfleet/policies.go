package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kvfleet/policies"
)

func (a *app) policiesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "policies", Short: "List the policies, their rules and parameters",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.listPolicies() },
	}
}

func (a *app) listPolicies() error {
	for i, s := range policies.Catalog() {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		fmt.Fprintf(a.stdout, "%s\n  %s\n  source: %s\n", s.Name, s.Rule, s.Source)
		if len(s.Params) == 0 {
			continue
		}
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		for _, p := range s.Params {
			def := p.Default
			if p.FromFleet {
				def = "the fleet's"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", p.Name+"="+def, p.Kind, p.Unit, p.Range(), p.Doc)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func policyNames() []string {
	var names []string
	for _, s := range policies.Catalog() {
		names = append(names, s.Name)
	}
	return names
}

// choose parses policies; whatever is wrong becomes a fault.
func (f *flags) choose(all []string) []policies.Choice {
	var choices []policies.Choice
	for _, text := range all {
		c, err := policies.ParseChoice(text)
		if err != nil {
			f.faults = append(f.faults, eachLine("--policy: ", err))
			continue
		}
		choices = append(choices, c)
	}
	return choices
}
