package sim

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Copy is the fleet with numbers of its own: changing them changes nothing of f.
// Provenance and draws are copied too.
func (f *Fleet) Copy() *Fleet {
	g := *f
	g.Replicas = slices.Clone(f.Replicas)
	g.Step.DecodeLadder = slices.Clone(f.Step.DecodeLadder)
	g.Output.EarlyShares, g.Output.EarlyTokens = slices.Clone(f.Output.EarlyShares), slices.Clone(f.Output.EarlyTokens)
	g.Provenance = maps.Clone(f.Provenance)
	if f.Thermal != nil {
		t := *f.Thermal
		t.Cards = slices.Clone(t.Cards)
		t.Coupling = slices.Clone(t.Coupling)
		for i := range t.Coupling {
			t.Coupling[i] = slices.Clone(t.Coupling[i])
		}
		g.Thermal = &t
	}
	return &g
}

// Round is x to so many significant digits, as fleet files have their numbers.
func Round(x float64, digits int) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	return v
}

// Encode writes the fleet as a fleet file, which DecodeFleet reads back. The
// comment is its first lines.
func (f *Fleet) Encode(comment string) ([]byte, error) {
	var doc yaml.Node
	if err := doc.Encode(f); err != nil {
		return nil, fmt.Errorf("fleet %s: %w", f.Name, err)
	}
	flow(&doc, "", 0)
	doc.HeadComment = comment
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return nil, fmt.Errorf("fleet %s: %w", f.Name, err)
	}
	return out.Bytes(), e.Close()
}

// flow puts on one line what reads better so: lists of numbers, a rung, a
// replica, a number's provenance.
func flow(n *yaml.Node, key string, depth int) {
	switch n.Kind {
	case yaml.SequenceNode:
		scalars := true
		for _, c := range n.Content {
			scalars = scalars && c.Kind == yaml.ScalarNode
		}
		if scalars && key != "paths" {
			n.Style = yaml.FlowStyle
		}
		for _, c := range n.Content {
			if key == "decode_ladder" || key == "replicas" || key == "values" {
				c.Style = yaml.FlowStyle
			}
			flow(c, key, depth+1)
		}
	case yaml.MappingNode:
		if depth == 1 && (key == "health" || key == "slo") || depth == 2 && key == "provenance" {
			n.Style = yaml.FlowStyle
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i].Value
			if key == "provenance" && depth == 1 {
				k = key
			}
			flow(n.Content[i+1], k, depth+1)
		}
	}
}
