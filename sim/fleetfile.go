package sim

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed fleets/*.yaml
var embedded embed.FS

// FleetNames lists the fleets that come with the tool, sorted.
func FleetNames() []string {
	files, err := embedded.ReadDir("fleets")
	if err != nil {
		panic(err) // the directory is embedded
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// FleetFile returns the text of a fleet: one that comes with the tool, by name,
// or a file, by path.
func FleetFile(name string) ([]byte, error) {
	if slices.Contains(FleetNames(), name) {
		return embedded.ReadFile(path.Join("fleets", name+".yaml"))
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("fleet %q: no such fleet or file; the tool brings %s", name, strings.Join(FleetNames(), ", "))
	}
	return text, err
}

// LoadFleet reads a fleet by name or path.
func LoadFleet(name string) (*Fleet, error) {
	text, err := FleetFile(name)
	if err != nil {
		return nil, err
	}
	return DecodeFleet(text, name)
}

// inWords is a decoding error without the names of Go types.
func inWords(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n  ")
	text = unknownKey.ReplaceAllString(text, "unknown key $1")
	text = wrongType.ReplaceAllString(text, "cannot read $1 as a value of this key")
	return strings.ReplaceAll(text, "\n  ", "; ")
}

var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongType  = regexp.MustCompile(`cannot unmarshal \S+ (.+) into \S+`)
)

// DecodeFleet decodes a fleet file strictly: an unknown key is an error with its
// line, and so is a value out of range. name stands in errors.
func DecodeFleet(text []byte, name string) (*Fleet, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var f Fleet
	if err := d.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("fleet %s: empty file", name)
		}
		return nil, fmt.Errorf("fleet %s: %s", name, inWords(err))
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("fleet %s: more than one document, want one", name)
	}
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("fleet %s: %w", name, err)
	}
	return &f, nil
}
