package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvfleet/traces"
	"kvfleet/traces/report"
)

// A sheet is a table of finished cells in a sweep's directory: cells.csv, or
// samples.csv where they are of draws. Those of the call under way are in
// a part file, written as they finish.
type sheet struct {
	dir   string
	drawn bool
	rows  []report.Sample // draw 0 in cells.csv
	part  *os.File
}

const (
	cellsFile   = "cells.csv"
	partFile    = "cells.part.csv"
	samplesFile = "samples.csv"
)

func (s *sheet) file() string {
	if s.drawn {
		return samplesFile
	}
	return cellsFile
}

func (s *sheet) partFile() string { return strings.TrimSuffix(s.file(), ".csv") + ".part.csv" }

// find reads what is finished and marks it in have.
func (s *sheet) find(have, wanted map[cellKey]bool) error {
	for _, name := range []string{s.file(), s.partFile()} {
		if err := s.load(name, have, wanted); err != nil {
			return err
		}
	}
	return nil
}

// begin opens a part.
func (s *sheet) begin() error {
	// The cells found in a part file move to the sheet before a new part begins.
	if err := s.write(); err != nil {
		return err
	}
	part, err := os.Create(filepath.Join(s.dir, s.partFile()))
	s.part = part
	return err
}

// load reads finished cells. A line that a killed process left unfinished at the
// end of a part file is simulated again.
func (s *sheet) load(name string, have, wanted map[cellKey]bool) error {
	path := filepath.Join(s.dir, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if name == s.partFile() {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	if len(text) == 0 || name == s.partFile() && bytes.Count(text, []byte("\n")) == 1 {
		return nil // killed before its first row was whole
	}
	rows, err := s.decode(bytes.NewReader(text), path)
	if err != nil {
		return err
	}
	for _, c := range rows {
		k := sampleKey(&c)
		if !wanted[k] {
			return fmt.Errorf("sweep: %s has a cell this sweep has not (%s, working set %v, skew %v): %w", path, c.Policy, c.WorkingSet, c.Skew, ErrOtherSweep)
		}
		if !have[k] {
			have[k] = true
			s.rows = append(s.rows, c)
		}
	}
	return nil
}

func (s *sheet) decode(r io.Reader, path string) ([]report.Sample, error) {
	if s.drawn {
		return report.DecodeSamples(r, path)
	}
	cells, err := report.DecodeCells(r, path)
	var rows []report.Sample
	for _, c := range cells {
		rows = append(rows, report.Sample{Cell: c})
	}
	return rows, err
}

// encode is the rows as the sheet has them, under their header.
func (s *sheet) encode(rows []report.Sample) ([]byte, error) {
	var text bytes.Buffer
	if s.drawn {
		err := report.WriteSamples(&text, rows)
		return text.Bytes(), err
	}
	err := report.WriteCells(&text, cellsOf(rows))
	return text.Bytes(), err
}

// add keeps a finished cell, on disk before it returns.
func (s *sheet) add(c report.Sample) error {
	text, err := s.encode([]report.Sample{c})
	if err != nil {
		return err
	}
	if at, _ := s.part.Seek(0, 1); at > 0 {
		text = text[bytes.IndexByte(text, '\n')+1:] // the header is there
	}
	if _, err := s.part.Write(text); err != nil {
		return err
	}
	s.rows = append(s.rows, c)
	return nil
}

// close sorts everything into the sheet.
func (s *sheet) close() error {
	if err := s.part.Close(); err != nil {
		return err
	}
	if err := s.write(); err != nil {
		return err
	}
	return os.Remove(filepath.Join(s.dir, s.partFile()))
}

func (s *sheet) write() error {
	if len(s.rows) == 0 {
		return nil
	}
	slices.SortFunc(s.rows, report.CompareSamples)
	text, err := s.encode(s.rows)
	if err != nil {
		return err
	}
	return traces.WriteWhole(filepath.Join(s.dir, s.file()), text)
}

func cellsOf(rows []report.Sample) []report.Cell {
	var cells []report.Cell
	for _, r := range rows {
		cells = append(cells, r.Cell)
	}
	return cells
}
