package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// RowRange is a half-open range of rows of the global batch.
type RowRange struct{ Start, End int }

// LoaderConfig says how a data set is cut into batches. All processes of a run use the same values but for Rows and
// Prefetch.
type LoaderConfig struct {
	GlobalBatch int        // rows of a step over all processes
	SeqLen      int        // tokens of a padded row; 0 is the data set's window
	PadID       int32      // input id of padding
	Seed        uint64     // of the order of rows
	Shuffle     bool       // a new order each epoch; without it, the order of the file
	DropLast    bool       // leave out the rows that do not fill a last batch, rather than pad it with empty rows
	Rows        []RowRange // this process's rows of the global batch, in the order wanted; nil is all
	Prefetch    int        // batches made ahead by another goroutine; 0 makes each when asked
}

// Batch is this process's part of a global batch, row-major [Rows, SeqLen].
type Batch struct {
	Epoch, Step  int // from 0; the step within the epoch
	Rows, SeqLen int
	InputIDs     []int32 // ids, and PadID after a row's end
	Labels       []int32 // not shifted: the id itself, or Ignore
	Mask         []int32 // 1 on tokens, 0 on padding

	// Of the whole global batch, the same on every process.
	Targets  int // predicted tokens, the divisor of the loss; 0 where no row has any
	RealRows int // rows that hold a record; fewer than the global batch only in a ragged last one
	Tokens   int // tokens without padding
}

// Loader cuts a data set into batches. It does not change; its methods may be called at once from many goroutines.
type Loader struct {
	ds    *Dataset
	c     LoaderConfig
	local int // rows of this process
}

// NewLoader checks the configuration.
func NewLoader(ds *Dataset, c LoaderConfig) (*Loader, error) {
	if c.SeqLen == 0 {
		c.SeqLen = ds.maxSeqLen
	}
	if c.Rows == nil {
		c.Rows = []RowRange{{0, c.GlobalBatch}}
	}
	l := &Loader{ds: ds, c: c}
	switch {
	case c.GlobalBatch < 1:
		return nil, fmt.Errorf("a global batch of %d rows; give at least 1", c.GlobalBatch)
	case c.SeqLen < ds.maxSeqLen && c.SeqLen < ds.stats.LongestTokens:
		return nil, fmt.Errorf("rows of %d tokens are too short for dataset %s, tokenised for a window of %d",
			c.SeqLen, ds.name, ds.maxSeqLen)
	case c.Prefetch < 0:
		return nil, fmt.Errorf("prefetch of %d batches; give 0 or more", c.Prefetch)
	case l.StepsPerEpoch() == 0:
		return nil, fmt.Errorf("dataset %s has %d rows, fewer than one global batch of %d: "+
			"lower the batch size, or keep the last batch", ds.name, ds.Len(), c.GlobalBatch)
	}
	taken := make([]bool, c.GlobalBatch)
	for _, r := range c.Rows {
		if r.Start < 0 || r.End > c.GlobalBatch || r.Start >= r.End {
			return nil, fmt.Errorf("rows [%d, %d) of a global batch of %d", r.Start, r.End, c.GlobalBatch)
		}
		for i := r.Start; i < r.End; i++ {
			if taken[i] {
				return nil, fmt.Errorf("row %d of the global batch is asked for twice", i)
			}
			taken[i] = true
		}
		l.local += r.End - r.Start
	}
	if l.local == 0 {
		return nil, errors.New("this process has no row of the global batch")
	}
	return l, nil
}

// StepsPerEpoch is the number of batches of an epoch.
func (l *Loader) StepsPerEpoch() int {
	if l.c.DropLast {
		return l.ds.Len() / l.c.GlobalBatch
	}
	return (l.ds.Len() + l.c.GlobalBatch - 1) / l.c.GlobalBatch
}

// Batches yields the batches of an epoch (from 0) from a step on. A batch is the caller's to keep. When ctx ends, its
// error comes as the last value. Whichever way the loop ends, the prefetching goroutine has ended too.
func (l *Loader) Batches(ctx context.Context, epoch, firstStep int) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		if epoch < 0 || firstStep < 0 || firstStep > l.StepsPerEpoch() {
			yield(nil, fmt.Errorf("batches of epoch %d from step %d: an epoch has %d steps", epoch, firstStep, l.StepsPerEpoch()))
			return
		}
		next, stop := l.batches(ctx, epoch, firstStep)
		defer stop()
		for step := firstStep; step < l.StepsPerEpoch(); step++ {
			b, err := next(step)
			if err != nil {
				yield(nil, fmt.Errorf("batch %d of epoch %d: %w", step, epoch, err))
				return
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// batches returns a function that gives the batches one by one, made ahead if the configuration says so.
func (l *Loader) batches(ctx context.Context, epoch, firstStep int) (next func(step int) (*Batch, error), stop func()) {
	if l.c.Prefetch == 0 {
		order := l.order(epoch)
		return func(step int) (*Batch, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return l.batch(order, epoch, step), nil
		}, func() {}
	}
	making, cancel := context.WithCancel(ctx)
	made := make(chan *Batch, l.c.Prefetch-1) // one more waits to be sent
	go func() {
		defer close(made)
		order := l.order(epoch)
		for step := firstStep; step < l.StepsPerEpoch(); step++ {
			select {
			case made <- l.batch(order, epoch, step):
			case <-making.Done():
				return
			}
		}
	}()
	next = func(int) (*Batch, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		select {
		case b, ok := <-made:
			if ok {
				return b, nil
			}
			return nil, context.Cause(ctx) // closed early: ctx ended
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	stop = func() {
		cancel()
		for range made { // until the goroutine closes it
		}
	}
	return next, stop
}

// order returns the rows of the data set in the order of an epoch, nil for that of the file.
func (l *Loader) order(epoch int) []int {
	if !l.c.Shuffle {
		return nil
	}
	return Order(l.ds.Len(), l.c.Seed, epoch)
}

// batch makes the local rows of a step.
func (l *Loader) batch(order []int, epoch, step int) *Batch {
	size := l.local * l.c.SeqLen
	b := &Batch{
		Epoch: epoch, Step: step, Rows: l.local, SeqLen: l.c.SeqLen,
		InputIDs: make([]int32, size), Labels: make([]int32, size), Mask: make([]int32, size),
	}
	first := step * l.c.GlobalBatch
	b.RealRows = min(l.c.GlobalBatch, l.ds.Len()-first)
	place := func(i int) int {
		if order == nil {
			return first + i
		}
		return order[first+i]
	}
	for i := range b.RealRows {
		ids, _, predicted := l.ds.row(place(i))
		b.Targets += predicted
		b.Tokens += len(ids)
	}
	at := 0
	for _, r := range l.c.Rows {
		for i := r.Start; i < r.End; i++ {
			var ids []int32
			var targets []span
			if i < b.RealRows {
				ids, targets, _ = l.ds.row(place(i))
			}
			l.fill(b, at, ids, targets)
			at += l.c.SeqLen
		}
	}
	return b
}

// fill writes a row at an offset of the batch.
func (l *Loader) fill(b *Batch, at int, ids []int32, targets []span) {
	input, mask := b.InputIDs[at:at+l.c.SeqLen], b.Mask[at:at+l.c.SeqLen]
	for i := copy(input, ids); i < len(input); i++ {
		input[i] = l.c.PadID
	}
	for i := range ids {
		mask[i] = 1
	}
	fillLabels(b.Labels[at:at+l.c.SeqLen], ids, targets)
}
