package belief

// split cuts a segment after its first keep blocks and returns the new segment
// that holds them. The old one keeps the rest, and so its children. It walks the
// segment once, which is seldom: two prompts part only once.
func (ix *Index) split(seg, keep int32) int32 {
	up := ix.newSegment()
	s, u := &ix.segments[seg], &ix.segments[up]
	b, first := s.tail, s.tail
	for range s.length - keep {
		first, b = b, ix.blocks[b].prev
	}
	u.parent, u.children = s.parent, 1
	u.start, u.length, u.tail = s.start, keep, b
	u.holders.copyFrom(&s.holders)
	s.parent, s.start, s.length = up, s.start+keep, s.length-keep
	for range keep {
		ix.blocks[b].seg = up
		b = ix.blocks[b].prev
	}
	if s.start%stride != 0 {
		ix.table.insert(ix.blocks[first].hash, first)
	}
	ix.linkAfter(up, seg)
	return up
}

// makeRoom evicts until the blocks of the chain that are not present fit. That
// may cost the chain some of its own old blocks; makeRoom returns what is left of
// its path, deepest segment first, and the blocks to add.
//
// It evicts exactly what inserting the missing blocks one by one from the
// deepest would: each insertion would evict one block, never one just inserted,
// until the blocks present and the blocks inserted meet.
func (ix *Index) makeRoom(path []int32, chain []uint64, present int) ([]int32, []uint64) {
	for ix.count+len(chain)-present > ix.capacity {
		victim := ix.oldest
		own := len(path) > 0 && path[0] == victim
		gone := ix.evictTail(victim)
		if own {
			present--
			if gone {
				path = path[1:]
			}
		}
	}
	return path, chain[present:]
}

// evictTail removes the last block of a segment, and the segment if it was the
// only one.
func (ix *Index) evictTail(seg int32) (gone bool) {
	s := &ix.segments[seg]
	b := s.tail
	s.tail = ix.blocks[b].prev
	if s.length--; s.length == 0 || (s.start+s.length)%stride == 0 {
		ix.table.remove(ix.blocks[b].hash, b)
	}
	ix.freeB = append(ix.freeB, b)
	ix.count--
	if s.length > 0 {
		return false
	}
	if s.parent >= 0 {
		ix.segments[s.parent].children--
	}
	ix.unlink(seg)
	s.holders.reset()
	ix.freeS = append(ix.freeS, seg)
	return true
}

// extend adds blocks at the end of the path. They join its last segment if they
// share its holders and nothing else hangs below it.
func (ix *Index) extend(path []int32, fresh []uint64, replica int32) {
	seg := int32(none)
	if len(path) > 0 {
		seg = path[0]
	}
	if seg < 0 || ix.segments[seg].children > 0 || !ix.segments[seg].holders.only() {
		low := ix.newSegment()
		l := &ix.segments[low]
		l.parent, l.children, l.length = seg, 0, 0
		l.start = 0
		if seg >= 0 {
			up := &ix.segments[seg]
			up.children++
			l.start = up.start + up.length
		}
		l.holders.admit(ix.now, ix.now, replica)
		ix.linkNewest(low)
		seg = low
	}
	s := &ix.segments[seg]
	for _, hash := range fresh {
		b := ix.newBlock()
		ix.blocks[b] = block{hash: hash, prev: s.tail, seg: seg}
		if s.length > 0 {
			ix.blocks[s.tail].next = b
		}
		if s.length == 0 || (s.start+s.length)%stride == 0 {
			ix.table.insert(hash, b)
		}
		s.tail = b
		s.length++
	}
	ix.count += len(fresh)
}

func (ix *Index) newBlock() int32 {
	if last := len(ix.freeB) - 1; last >= 0 {
		b := ix.freeB[last]
		ix.freeB = ix.freeB[:last]
		return b
	}
	ix.blocks = append(ix.blocks, block{})
	return int32(len(ix.blocks) - 1)
}

func (ix *Index) newSegment() int32 {
	if last := len(ix.freeS) - 1; last >= 0 {
		s := ix.freeS[last]
		ix.freeS = ix.freeS[:last]
		return s
	}
	ix.segments = append(ix.segments, segment{})
	return int32(len(ix.segments) - 1)
}

func (ix *Index) linkNewest(seg int32) {
	if ix.newest >= 0 {
		ix.linkAfter(seg, ix.newest)
		return
	}
	s := &ix.segments[seg]
	s.older, s.newer = none, none
	ix.oldest, ix.newest = seg, seg
}

// linkAfter puts a segment right behind another in the order of use.
func (ix *Index) linkAfter(seg, behind int32) {
	s, o := &ix.segments[seg], &ix.segments[behind]
	s.older, s.newer = behind, o.newer
	if o.newer >= 0 {
		ix.segments[o.newer].older = seg
	} else {
		ix.newest = seg
	}
	o.newer = seg
}

func (ix *Index) unlink(seg int32) {
	s := &ix.segments[seg]
	if s.older >= 0 {
		ix.segments[s.older].newer = s.newer
	} else {
		ix.oldest = s.newer
	}
	if s.newer >= 0 {
		ix.segments[s.newer].older = s.older
	} else {
		ix.newest = s.older
	}
}
