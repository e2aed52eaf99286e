package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// applyGrid sets the flags a grid file names: a mapping from flag names, with
// underscores, to a value or a list. What the command line gives stays, and with
// it which of the two drivers is meant. Whatever is wrong becomes a fault.
func (f *flags) applyGrid(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		f.fault("--grid: %w", err)
		return
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		f.fault("%s: %w", path, err)
		return
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		f.fault("%s: more than one document, want one", path)
		return
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		f.fault("%s: want keys and values, such as working_set: [1, 3]", path)
		return
	}
	g := gridFile{flags: f, path: path, seen: map[string]bool{}, skip: f.decided()}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := g.apply(pairs[i], pairs[i+1]); err != nil {
			f.fault("%s: line %d: %w", path, pairs[i].Line, err)
		}
	}
}

// decided lists the flags that a grid file may no longer set.
func (f *flags) decided() []string {
	var names []string
	f.set.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			names = append(names, flag.Name)
		}
	})
	if slices.Contains(names, "users") {
		names = append(names, "rate", "arrivals", "shape", "think")
	}
	if slices.Contains(names, "rate") {
		names = append(names, "users")
	}
	return names
}

type gridFile struct {
	*flags
	path string
	seen map[string]bool
	skip []string
}

func (g *gridFile) apply(key, node *yaml.Node) error {
	name := strings.ReplaceAll(key.Value, "_", "-")
	flag := g.set.Lookup(name)
	if flag == nil || name == "grid" || name == "help" || strings.Contains(key.Value, "-") {
		return fmt.Errorf("unknown key %q, want one of %s", key.Value, strings.Join(g.keys(), ", "))
	}
	if g.seen[name] {
		return fmt.Errorf("%s is there twice", key.Value)
	}
	g.seen[name] = true
	if slices.Contains(g.skip, name) {
		return nil
	}
	items, err := scalars(node)
	if err != nil {
		return fmt.Errorf("%s: %w", key.Value, err)
	}
	v := flag.Value.(*value)
	v.where = fmt.Sprintf("%s: line %d: %s", g.path, key.Line, key.Value)
	if len(items) > 1 && !v.many {
		return fmt.Errorf("%s: got a list, want one value", key.Value)
	}
	for _, item := range items {
		if err := v.Set(item); err != nil {
			return err
		}
	}
	return nil
}

func (g *gridFile) keys() []string {
	var names []string
	g.set.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "grid" && flag.Name != "help" {
			names = append(names, strings.ReplaceAll(flag.Name, "-", "_"))
		}
	})
	return names
}

// scalars is a value, or a list of values, as text.
func scalars(node *yaml.Node) ([]string, error) {
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	var items []string
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return nil, errors.New("want a value or a list of values")
		}
		items = append(items, n.Value)
	}
	if len(items) == 0 {
		return nil, errors.New("got an empty list, want at least one value")
	}
	return items, nil
}
