package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"kvfleet/sim"
)

// readFaults reads a schedule of faults, strictly. Its error tells every fault
// of the file at once, each with its line.
func readFaults(path string, fleet *sim.Fleet) ([]sim.Fault, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := faultList(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []sim.Fault
	var wrong []error
	for _, node := range list.Content {
		fault, errs := readFault(node)
		all = append(all, fault)
		for _, err := range errs {
			wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	if err := sim.ValidateFaults(all, fleet); err != nil {
		return nil, eachLine(path+": ", err)
	}
	return all, nil
}

// faultList finds the list in a fault file.
func faultList(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document, want one")
	}
	none := errors.New("want a list named faults with at least one entry")
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, none
	}
	var list *yaml.Node
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		if key := pairs[i]; key.Value != "faults" {
			return nil, fmt.Errorf("line %d: unknown key %q, want faults", key.Line, key.Value)
		} else if list != nil {
			return nil, fmt.Errorf("line %d: faults is there twice", key.Line)
		}
		list = pairs[i+1]
	}
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return nil, none
	}
	return list, nil
}

// A faultField is a key of a fault file's entry.
type faultField struct {
	name, want string
	set        func(*sim.Fault, string) error
}

func faultFields() []faultField {
	const duration = "a duration such as 90s"
	return []faultField{
		{"at", duration, func(f *sim.Fault, s string) (err error) { f.At, err = time.ParseDuration(s); return err }},
		{"replica", "the name of a replica", func(f *sim.Fault, s string) error { f.Replica = s; return nil }},
		{"kind", "the name of a kind of fault", func(f *sim.Fault, s string) error { f.Kind = s; return nil }},
		{"for", duration, func(f *sim.Fault, s string) (err error) { f.For, err = time.ParseDuration(s); return err }},
		{"factor", "a number", func(f *sim.Fault, s string) (err error) { f.Factor, err = strconv.ParseFloat(s, 64); return err }},
	}
}

// readFault reads an entry and says all that is wrong with it.
func readFault(node *yaml.Node) (fault sim.Fault, wrong []error) {
	if node.Kind != yaml.MappingNode {
		return fault, []error{fmt.Errorf("line %d: got no fault, want one such as {at: 90s, replica: replica-1, kind: kill}", node.Line)}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if seen[key.Value] {
			wrong = append(wrong, fmt.Errorf("line %d: %s is there twice", key.Line, key.Value))
			continue
		}
		seen[key.Value] = true
		if err := setFault(&fault, key, value); err != nil {
			wrong = append(wrong, err)
		}
	}
	return fault, wrong
}

func setFault(fault *sim.Fault, key, value *yaml.Node) error {
	var names []string
	for _, field := range faultFields() {
		names = append(names, field.name)
		if field.name != key.Value {
			continue
		}
		got := strconv.Quote(value.Value)
		switch {
		case value.Kind == yaml.SequenceNode:
			got = "a list"
		case value.Kind == yaml.MappingNode:
			got = "keys and values"
		case value.Kind == yaml.AliasNode:
			got = "an alias"
		case value.Tag == "!!null":
			got = "nothing"
		case field.set(fault, value.Value) == nil:
			return nil
		}
		return fmt.Errorf("line %d: %s: got %s, want %s", value.Line, field.name, got, field.want)
	}
	return fmt.Errorf("line %d: unknown key %q, want one of %s", key.Line, key.Value, strings.Join(names, ", "))
}

// eachLine puts a prefix before every line of an error.
func eachLine(prefix string, err error) error {
	var all []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		all = append(all, errors.New(prefix+line))
	}
	return errors.Join(all...)
}
