// Package traces holds the one row type of this project and how rows are stored.
//
// A Row is one request, however it came to be: planned by a workload, run in
// simulation, run live, or imported from a public trace. Rows are passed as a
// Source, an iterator that ends at the first error, and stored as an Apache
// Arrow IPC stream (".arrows") whose schema metadata is a Meta.
//
// A stream is flushed batch by batch, so a killed writer loses at most the batch
// it had not flushed, and a reader recovers every whole batch of what is left
// and then says how many rows that was. A stream is complete if it says so: by
// the row count in its closing batch, or by the end-of-stream mark. It is never
// assumed to be.
//
// A reader ignores columns it does not know, leaves columns it misses unknown,
// and refuses a newer major version of the schema. What is in a file is never
// trusted: corrupt input is an error that names the row, not a panic, and does
// not make a reader reserve more memory than the input can account for.
//
// The package refuses to judge: SLO verdicts, percentiles and comparisons are
// computed from rows and never stored in them (see summary).
package traces
