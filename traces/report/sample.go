package report

import (
	"cmp"
	"encoding/csv"
	"io"
	"os"
	"slices"
	"strconv"
)

// A Sample is a cell simulated with one draw of what a calibrated fleet's
// constants may be. Its key, parameters included, is that of the fleet's own cell.
type Sample struct {
	Draw int // 1 is the first of the fleet file
	Cell
}

const drawColumn = "draw"

// SampleHeader is the column names of samples.csv: the draw, then those of
// cells.csv.
func SampleHeader() []string { return append([]string{drawColumn}, Header()...) }

// WriteSamples writes the header and the samples, sorted by CompareSamples
// whatever order they came in. It does not judge them; ReadSamples does.
func WriteSamples(w io.Writer, samples []Sample) error {
	out := csv.NewWriter(w)
	if err := out.Write(SampleHeader()); err != nil {
		return err
	}
	for _, s := range sortedSamples(samples) {
		if err := out.Write(append([]string{strconv.Itoa(s.Draw)}, s.Record()...)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// ReadSamples reads a samples.csv as ReadCells reads a cells.csv. The samples
// come sorted by CompareSamples.
func ReadSamples(path string) ([]Sample, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return DecodeSamples(f, path)
}

// DecodeSamples is ReadSamples on an open file; name is what errors call it.
func DecodeSamples(r io.Reader, name string) ([]Sample, error) {
	samples, err := decodeRows(r, name, true)
	if err != nil {
		return nil, err
	}
	return sortedSamples(samples), nil
}

// CompareSamples orders samples by draw, then as CompareCells does.
func CompareSamples(a, b Sample) int {
	return cmp.Or(cmp.Compare(a.Draw, b.Draw), CompareCells(a.Cell, b.Cell))
}

func sortedSamples(samples []Sample) []Sample {
	s := slices.Clone(samples)
	slices.SortStableFunc(s, CompareSamples)
	return s
}
