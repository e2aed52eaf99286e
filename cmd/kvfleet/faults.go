package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

	"kvfleet/sim"
)

// readFaults reads a schedule of faults, strictly.
func readFaults(path string, fleet *sim.Fleet) ([]sim.Fault, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var file struct {
		Faults []sim.Fault `yaml:"faults"`
	}
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document, want one", path)
	}
	if len(file.Faults) == 0 {
		return nil, fmt.Errorf("%s: want a list named faults with at least one entry", path)
	}
	if err := sim.ValidateFaults(file.Faults, fleet); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file.Faults, nil
}
