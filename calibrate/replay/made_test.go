package replay

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvfleet/sim"
	"kvfleet/sim/latency"
	"kvfleet/traces"
	"kvfleet/traces/seed"
)

// A made fleet is two replicas of round numbers, quick to simulate: a prompt of
// 100 tokens takes 10 ms, a decode step 10 ms.
func madeFleet(t testing.TB) *sim.Fleet {
	t.Helper()
	f, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		t.Fatal(err)
	}
	made := *f
	made.Name, made.Thermal = "made", nil
	made.Replicas = []sim.Replica{{Name: "a"}, {Name: "b", GPU: 1}}
	made.Engine.Blocks, made.Engine.TokenBudget = 400, 512
	made.Step = latency.Params{
		WeightsMS: 1e-6, DenseTokenMS: 0.1, TileTokens: 1, PairMS: 1e-9, SustainedMS: 1,
		DecodeLadder: []latency.Rung{{Batch: 8, MS: 10, ContextMS: 1e-4}},
	}
	return &made
}

// answered is a row of a request that was sent then and answered after so long,
// the first token a third of the way in.
func answered(id string, sent, took time.Duration) traces.Row {
	r := traces.NewRow()
	r.RequestID, r.Outcome, r.Status = id, traces.Success, 200
	r.ScheduledAt, r.SentAt = int64(sent), int64(sent)
	r.FirstTokenAt, r.LastTokenAt, r.EndedAt = int64(sent+took/3), int64(sent+took), int64(sent+took)
	r.PromptTokens, r.EnginePromptTokens, r.OutputTokens, r.MaxTokens = 100, 100, 10, 10
	return r
}

// file writes rows as a trace.
func file(t testing.TB, m traces.Meta, rows ...traces.Row) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.arrows")
	w, err := traces.Create(path, m, traces.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, m traces.Meta, rows ...traces.Row) *Recording {
	t.Helper()
	r, err := Open(file(t, m, rows...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func simulate(t testing.TB, r *Recording, f *sim.Fleet, policy string) []Outcome {
	t.Helper()
	if err := r.FitTo(f); err != nil {
		t.Fatal(err)
	}
	out, err := r.Simulate(context.Background(), f, policy, seed.Seed(1))
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != len(r.Rows) {
		t.Fatalf("%d outcomes of %d rows", len(out), len(r.Rows))
	}
	return out
}

func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("got %v, want an error that says %q", err, p)
		}
	}
}

var closedLoop = traces.Meta{Cell: traces.Cell{Driver: sim.DriverClosed}}
