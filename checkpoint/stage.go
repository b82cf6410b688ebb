package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// stageAlign is the alignment of slices in the staging memory: a cache line.
const stageAlign = 64

func aligned(n int64) int64 { return (n + stageAlign - 1) / stageAlign * stageAlign }

// stage is the state of one save on the host, or a moving part of it: copiers fetch slices into it in the order of
// writing, the writer uses them. One that holds everything keeps it until the end, so that the model folder is made of the
// same bytes and a failed write can begin again. A smaller one is a ring: a slice's room is free after its last use.
type stage struct {
	state []Tensor
	mem   []byte
	holds bool

	mu    sync.Mutex
	moved sync.Cond
	slots []slot // in the order of copying
	at    map[sliceKey]int
	next  int // the slot that gets room next
	// head and tail count the ring's bytes given and taken back since the beginning; front is the oldest slot in it.
	head, tail int64
	front      int
	peak       int64
	failed     error
	byWriter   bool // failed is the writer's
	complete   bool // every slice was copied
}

// slot is the place of a slice.
type slot struct {
	key   sliceKey
	bytes int64
	off   int64 // in mem
	end   int64 // of head, after it
	ready bool
	left  int // uses
}

// needs returns the bytes that a stage takes to hold the whole state, and the least with which a ring can work: what is in
// it at a time, from the oldest slice that is still needed to the newest, and once more the largest, which must lie in one
// piece.
func (p *loadPlan) needs() (whole, least int64) {
	var largest int64
	for _, l := range p.loads {
		if !l.key.model {
			whole += aligned(l.bytes)
		}
		largest = max(largest, aligned(l.bytes))
	}
	left := make([]int, len(p.loads))
	for i, l := range p.loads {
		left[i] = l.uses
	}
	oldest, next := 0, 0
	var held, most int64
	for _, at := range p.together {
		for _, i := range at {
			for ; next <= i; next++ {
				held += aligned(p.loads[next].bytes)
			}
		}
		most = max(most, held)
		for _, i := range at {
			left[i]--
		}
		for ; oldest < next && left[oldest] == 0; oldest++ {
			held -= aligned(p.loads[oldest].bytes)
		}
	}
	return whole, most + largest
}

// newStage lays out a save in mem: all of the state when it fits, else a ring.
func newStage(state []Tensor, plan *loadPlan, mem []byte) *stage {
	whole, _ := plan.needs()
	s := &stage{state: state, mem: mem, holds: whole <= int64(len(mem)), at: make(map[sliceKey]int, len(plan.loads))}
	s.moved.L = &s.mu
	for _, l := range plan.loads {
		if s.holds && l.key.model {
			s.at[l.key] = s.at[sliceKey{tensor: l.key.tensor, shard: l.key.shard}]
			continue
		}
		s.at[l.key] = len(s.slots)
		s.slots = append(s.slots, slot{key: l.key, bytes: l.bytes, left: l.uses})
	}
	return s
}

// copy fetches every slice with so many goroutines and returns when all are there, or when one failed, the context was
// cancelled or the writer gave up. No Fetch runs any more when it returns.
func (s *stage) copy(ctx context.Context, copiers int) error {
	defer context.AfterFunc(ctx, func() { _ = s.fail(context.Cause(ctx)) })()
	var group sync.WaitGroup
	for range max(1, min(copiers, len(s.slots))) {
		group.Go(func() {
			for i, ok := s.room(); ok; i, ok = s.room() {
				if err := s.fetch(i); err != nil {
					_ = s.fail(err)
					return
				}
			}
		})
	}
	group.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = s.failed == nil
	return s.failed
}

// fail ends copying and use with an error, unless copying is complete or another came first.
func (s *stage) fail(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil || s.complete {
		return false
	}
	s.failed = err
	s.moved.Broadcast()
	return true
}

// giveUp ends copying with the error of the writer, and tells whether copying was not complete yet.
func (s *stage) giveUp(err error) (early bool) {
	first := s.fail(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byWriter = first
	return !s.complete
}

// stoppedByWriter tells that it was the writer's error that ended copying.
func (s *stage) stoppedByWriter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byWriter
}

// room gives the next slice its place as soon as there is one; ok is false when there is none left or the stage failed.
func (s *stage) room() (i int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.failed == nil {
		if s.next == len(s.slots) {
			return 0, false
		}
		if !s.place(&s.slots[s.next]) {
			s.moved.Wait()
			continue
		}
		s.next++
		return s.next - 1, true
	}
	return 0, false
}

// place finds room behind the slices given before, at the beginning again where the end of mem is too near.
func (s *stage) place(p *slot) bool {
	size, n := int64(len(s.mem)), aligned(p.bytes)
	if n == 0 {
		p.end = s.head
		return true
	}
	off := s.head % size
	skip := int64(0)
	if off+n > size {
		skip, off = size-off, 0
	}
	if s.head+skip+n-s.tail > size {
		return false
	}
	s.head += skip + n
	p.off, p.end = off, s.head
	s.peak = max(s.peak, s.head-s.tail)
	return true
}

func (s *stage) bytesOf(p *slot) []byte { return s.mem[p.off : p.off+p.bytes : p.off+p.bytes] }

func (s *stage) fetch(i int) error {
	p := &s.slots[i]
	t := &s.state[p.key.tensor]
	shard := t.Shards[p.key.shard]
	if err := shard.Fetch(s.bytesOf(p)); err != nil {
		return fmt.Errorf("fetching slice start %v size %v of tensor %q: %w", shard.Start, shard.Size, t.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.ready = true
	s.moved.Broadcast()
	return nil
}

// errNotStaged is a slice that nobody announced.
var errNotStaged = errors.New("a slice of the state is written that was not staged")

// use implements stateBytes: it waits until the slice is there.
func (s *stage) use(ctx context.Context, key sliceKey) ([]byte, error) {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.moved.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.at[key]
	if !ok {
		return nil, errNotStaged
	}
	for !s.slots[i].ready {
		if err := errors.Join(s.failed, ctx.Err()); err != nil {
			return nil, err
		}
		s.moved.Wait()
	}
	return s.bytesOf(&s.slots[i]), ctx.Err()
}

// done implements stateBytes.
func (s *stage) done(key sliceKey) {
	if s.holds {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots[s.at[key]].left--
	for s.front < s.next && s.slots[s.front].ready && s.slots[s.front].left <= 0 {
		s.tail = s.slots[s.front].end
		s.front++
	}
	s.moved.Broadcast()
}

// peakBytes is the most that was in mem at once.
func (s *stage) peakBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}
