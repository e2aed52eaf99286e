package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// An app is one invocation.
type app struct {
	args   []string
	stdout *bufio.Writer
	stderr io.Writer
	began  bool // a command was found and its arguments counted
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "kvfleet",
		Short:         "Routing policies for LLM fleets, simulated",
		Long:          "kvfleet simulates routing policies over fleets of LLM replicas, and holds what it predicts against what was measured.",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.began = true
		},
	}
	root.AddCommand(
		a.sweepCommand(), a.mapCommand(), a.calibrateCommand(), a.validateCommand(), a.runCommand(), a.traceCommand(),
		a.fleetsCommand(), a.policiesCommand(), a.versionCommand(),
	)
	return root
}

// talk tells the person at the terminal something that is not data.
func (a *app) talk(format string, args ...any) {
	fmt.Fprintf(a.stderr, "kvfleet: "+format+"\n", args...)
}

// group makes a command that only holds others: alone, or with the name of none
// of them, it is a mistake.
func group(c *cobra.Command, children ...*cobra.Command) *cobra.Command {
	c.AddCommand(children...)
	var names []string
	for _, child := range children {
		names = append(names, child.Name())
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s: want a command, one of %s", c.Name(), strings.Join(names, ", "))
		}
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("unknown command %q for %q: did you mean %q?", args[0], c.CommandPath(), near[0])
		}
		return fmt.Errorf("unknown command %q for %q, want one of %s", args[0], c.CommandPath(), strings.Join(names, ", "))
	}
	c.RunE = func(*cobra.Command, []string) error { panic("kvfleet: a group ran") }
	c.SuggestionsMinimumDistance = 2
	return c
}
