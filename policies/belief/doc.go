// Package belief is the router's own idea of what replicas hold: every prompt it
// sends somewhere is remembered, block by block, until a time to live has passed
// or room runs out.
//
// An [Index] behaves as if each block kept, for each replica, the time it was
// last admitted, believed while no older than the TTL; and as if one list of all
// blocks, ordered by use, lost its least recently used block whenever the index
// was over its capacity. An admission touches a prompt's blocks from the deepest
// to the first, so the first ends most recently used, and prompts lose their
// tails before their heads.
//
// # How it is done
//
// Because a chained hash implies every block before it, and because an admission
// always covers a prompt from its first block on, two things hold at all times:
// if a block is present so are all before it, and a replica's belief is never
// older on a block than on a later one. So a prompt's present blocks are found by
// binary search, and blocks that were always touched together are kept as one
// segment with one list of holders and one place in the order of use. The table
// knows every eighth block and each segment's first. Looking up and admitting
// cost a few steps for each segment and for each block not seen before; a prompt
// of hundreds of blocks is a handful of segments. The tests hold the index to a
// twin that does everything block by block.
//
// Nothing here knows what an engine really holds: see package residency for
// that. An index is not safe for concurrent use.
package belief
