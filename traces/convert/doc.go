// Package convert reads public and own traces as rows.
//
// A file or directory is recognised by its content, never by its name. Rows are
// streamed: except for Weka sessions, which have to be merged by time, memory
// does not grow with the file. A converted row is a plan: its outcome is
// Pending, ScheduledAt is its arrival, MaxTokens the recorded output length.
//
// What a source does not hold is left unknown and said in the trace's Meta. In
// particular Azure and vidur traces say nothing about which prompts share a
// prefix: their rows have no Blocks, every prompt counts as distinct, and no hit
// rate may be claimed from them.
//
// A row that cannot be read is an error naming file, row, field and what was
// expected. It ends the pass, or, up to Options.MaxErrors, is counted and named
// in the Report. Nothing is dropped or changed without being counted there.
//
// The package refuses to guess: it repairs no values, invents no arrival times,
// and merges no traces.
package convert
