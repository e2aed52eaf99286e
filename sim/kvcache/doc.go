// Package kvcache is the paged KV cache of one simulated replica, with the
// semantics of vLLM's V1 block pool: fixed-size blocks, reference counts, a
// free queue in least-recently-used order, and a prefix cache over chained
// block hashes whose entries live until their block is reused.
//
// It is exact, block by block; what makes it fast is that the hashes of one
// conversation are small consecutive integers, so that the look-up table is
// paged and a prompt's blocks sit side by side.
//
// It refuses to guess: freeing a block that nobody holds, or allocating more
// than is free, is a bug of the caller's and panics.
package kvcache
