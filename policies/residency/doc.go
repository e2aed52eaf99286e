// Package residency knows which engine blocks each replica has said it holds,
// through KV cache events.
//
// Engines announce every copy of a block by itself, so an [Index] counts copies:
// a replica holds a block until as many copies were removed as were stored.
// Nothing is assumed about the order in which blocks go: a replica may lose the
// head of a prompt and keep its tail, and then holds no leading run of it.
//
// The index believes its events. Lost ones are for the caller to notice, and to
// answer with [Index.Forget]. It is not safe for concurrent use.
package residency
