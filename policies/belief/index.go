package belief

import (
	"errors"
	"fmt"
	"time"
)

// A Config bounds an index. Both bounds are required: they come from
// measurements of the fleet, and no default would be right for another.
type Config struct {
	TTL    time.Duration // how long an admission is believed; > 0
	Blocks int           // the most blocks kept, over all replicas; > 0
}

func (c Config) validate() error {
	var faults []error
	if c.TTL <= 0 {
		faults = append(faults, fmt.Errorf("belief: TTL %v, expected more than 0", c.TTL))
	}
	if c.Blocks <= 0 || c.Blocks >= 1<<31-1 {
		faults = append(faults, fmt.Errorf("belief: capacity of %d blocks, expected 1 to 2^31-2", c.Blocks))
	}
	return errors.Join(faults...)
}

const none = -1

// An Index records which replicas were sent which prompts.
type Index struct {
	ttl      int64
	capacity int
	now      int64 // the latest time seen; time never goes back
	edits    uint64

	table    table
	blocks   []block
	freeB    []int32
	segments []segment
	freeS    []int32
	count    int // blocks present

	oldest, newest int32 // ends of the segments' order of use
	path           []int32
}

// A block is one hash present. Blocks come and go at a segment's tail only, so
// the links of its first to what is before and of its tail to what is beyond are
// meaningless.
type block struct {
	hash       uint64
	prev, next int32
	seg        int32
}

// stride is how far apart the blocks are that the table knows: those whose depth
// is a multiple of it, and the first of every segment. The others are reached by
// a few steps from there, and cost the table nothing.
const stride = 8

// A segment is a run of consecutive blocks that have the same holders, admitted
// at the same times, and stand together in the order of use, deepest first.
type segment struct {
	parent   int32 // the segment before it on the prompt; none at the beginning
	children int32
	start    int32 // blocks before it on the prompt
	length   int32
	tail     int32 // its last block
	older    int32
	newer    int32
	holders  holders
}

// New returns an empty index.
func New(c Config) (*Index, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	ix := &Index{ttl: int64(c.TTL), capacity: c.Blocks, oldest: none, newest: none}
	ix.table.reset(1024)
	return ix, nil
}

// Len is the number of blocks present, believed or not.
func (ix *Index) Len() int { return ix.count }

// A Place is where a prompt's blocks lie in the index. It is valid until the
// next Admit or Forget, and panics if used later.
type Place struct {
	chain   []uint64
	present int32 // leading blocks present
	seg     int32 // segment of the last of them
	edits   uint64
}

// Find looks a prompt up by its chained block hashes, in prompt order. A prompt
// longer than the index's capacity is looked up by as many leading blocks as fit.
func (ix *Index) Find(chain []uint64) Place {
	if len(chain) > ix.capacity {
		chain = chain[:ix.capacity]
	}
	p := Place{chain: chain, seg: none, edits: ix.edits}
	last := int32(none)
	lo, hi := 0, (len(chain)+stride-1)/stride
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if b := ix.table.find(chain[mid*stride]); b >= 0 {
			lo, last = mid+1, b
		} else {
			hi = mid
		}
	}
	if last < 0 {
		return p
	}
	present := (lo-1)*stride + 1
	for present < len(chain) {
		b := ix.follow(last, chain[present])
		if b < 0 {
			break
		}
		last = b
		present++
	}
	// Two prompts whose hashes collide could disagree on how deep a block lies;
	// such a prompt counts as new.
	seg := ix.blocks[last].seg
	if s := &ix.segments[seg]; int32(present) > s.start && int32(present) <= s.start+s.length {
		p.present, p.seg = int32(present), seg
	}
	return p
}

// follow returns the block of a hash that comes right after block b, or -1.
func (ix *Index) follow(b int32, hash uint64) int32 {
	from := &ix.blocks[b]
	if b != ix.segments[from.seg].tail {
		if ix.blocks[from.next].hash == hash {
			return from.next
		}
		return none
	}
	next := ix.table.find(hash)
	if next < 0 || ix.segments[ix.blocks[next].seg].parent != from.seg {
		return none
	}
	return next
}

// Longest returns the number of leading blocks of the prompt that some replica
// of the set in is believed to hold, and marks the replicas that hold so many in
// holders. Sets are bit id%64 of word id/64; holders is overwritten and must be
// as long as in.
func (ix *Index) Longest(at time.Duration, p Place, in, holders []uint64) int {
	ix.check(p)
	oldest := ix.advance(at)
	clear(holders)
	run := p.present
	for seg := p.seg; seg >= 0; {
		s := &ix.segments[seg]
		if s.holders.mark(oldest, in, holders) {
			return int(run)
		}
		run, seg = s.start, s.parent
	}
	return 0
}

// Run returns the number of leading blocks one replica is believed to hold.
func (ix *Index) Run(at time.Duration, p Place, replica int32) int {
	ix.check(p)
	oldest := ix.advance(at)
	run := p.present
	for seg := p.seg; seg >= 0; {
		s := &ix.segments[seg]
		if s.holders.alive(oldest, replica) {
			return int(run)
		}
		run, seg = s.start, s.parent
	}
	return 0
}

// Admit records that the prompt was sent to a replica.
func (ix *Index) Admit(at time.Duration, p Place, replica int32) {
	ix.check(p)
	if len(p.chain) == 0 {
		return
	}
	oldest := ix.advance(at)
	ix.edits++
	leaf := p.seg
	if leaf >= 0 {
		if s := &ix.segments[leaf]; p.present < s.start+s.length {
			leaf = ix.split(leaf, p.present-s.start)
		}
	}
	ix.path = ix.path[:0]
	for seg := leaf; seg >= 0; seg = ix.segments[seg].parent {
		ix.path = append(ix.path, seg)
	}
	path, fresh := ix.makeRoom(ix.path, p.chain, int(p.present))
	for _, seg := range path {
		ix.segments[seg].holders.admit(ix.now, oldest, replica)
	}
	if len(fresh) > 0 {
		ix.extend(path, fresh, replica)
	}
	for _, seg := range path {
		ix.unlink(seg)
		ix.linkNewest(seg)
	}
}

// Forget drops every belief about one replica.
func (ix *Index) Forget(replica int32) {
	ix.edits++
	for i := range ix.segments {
		ix.segments[i].holders.drop(replica)
	}
}

// advance moves the index's time on and returns the time of the oldest admission
// still believed. Time that runs back would break the order of beliefs along a
// prompt, so it is taken to stand still.
func (ix *Index) advance(at time.Duration) int64 {
	ix.now = max(ix.now, int64(at))
	return ix.now - ix.ttl
}

func (ix *Index) check(p Place) {
	if p.edits != ix.edits {
		panic("belief: a Place was used after the index changed")
	}
}
