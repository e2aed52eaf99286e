package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versions says what made an output.
type versions struct {
	KVFleet string `json:"kvfleet"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

func readVersions() versions {
	v := versions{KVFleet: "unknown", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.KVFleet = info.Main.Version
	}
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if v.Commit != "" && modified {
		v.Commit += "+changes"
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersions()
			fmt.Fprintf(a.stdout, "kvfleet %s\n", v.KVFleet)
			if v.Commit != "" {
				fmt.Fprintf(a.stdout, "commit  %s\n", v.Commit)
			}
			_, err := fmt.Fprintf(a.stdout, "go      %s %s/%s\n", v.Go, runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
