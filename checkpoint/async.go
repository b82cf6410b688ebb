package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"
	"syscall"
	"time"

	"weft/internal/hostmem"
	"weft/internal/memory"
)

// Defaults of AsyncOptions.
const (
	DefaultCopiers = 4
	DefaultWriters = 4
	DefaultRetries = 3
	DefaultBackoff = time.Second
)

// AsyncOptions of NewAsync; the zero value means the defaults.
type AsyncOptions struct {
	// HostMemory bounds the bytes of the state that are on the host at once. 0, or more than the state that this process
	// writes: as many bytes as that state has, and Save waits for the copy only; with 0 not more than half of the memory that
	// the machine has left when it is taken. With less than the state, Save waits for the writer too,
	// slice by slice; the parameters are then fetched again for the model folder, and a write that fails after Save has
	// returned cannot be tried again. The least that works is twice the largest slice, for a model folder the slices of
	// the largest parameter and once more the largest; a smaller bound is raised to that.
	HostMemory int64
	// Copiers is how many slices are fetched at a time, Writers how many files are written at a time.
	Copiers, Writers int
	// Retries is how often a failed write is tried again, Backoff the time before the first of them; it doubles each time.
	// Negative Retries: never.
	Retries int
	Backoff time.Duration
	// Staged, if set, is told by Save, just before it returns, that the state is on the host: StateBytes, LimitBytes,
	// PeakBytes and Stall.
	Staged func(AsyncStats)
	// Done, if set, is told of every write that has ended, from the goroutine that wrote, before Wait returns.
	Done func(Saved)
}

// Saved is the outcome of one save.
type Saved struct {
	// Entry is the checkpoint; not valid when Err is set, unless that wraps ErrPrune.
	Entry Entry
	// Err is why there is none; with ErrPrune there is one, but an older one could not be deleted.
	Err   error
	Stats AsyncStats
}

// AsyncStats are the figures of one save.
type AsyncStats struct {
	// StateBytes is the state that this process writes, LimitBytes the bound of host memory in force, PeakBytes how much of
	// it the save used, WrittenBytes the checkpoint's files.
	StateBytes, LimitBytes, PeakBytes, WrittenBytes int64
	// Stall is how long Save kept its caller, with the wait for the save before; Write the time from the beginning of
	// writing to the commit, with what retries took.
	Stall, Write time.Duration
	// Tries counts the attempts at writing, 1 when nothing failed.
	Tries int
}

// BytesPerSecond is the rate of writing, up to the commit; 0 when nothing was written.
func (s AsyncStats) BytesPerSecond() float64 {
	if s.Write <= 0 {
		return 0
	}
	return float64(s.WrittenBytes) / s.Write.Seconds()
}

// Async saves checkpoints beside the run: Save copies the state to host memory, a goroutine writes, commits and prunes.
// Save, Prepare, Wait and Close are for one goroutine, Err for any.
//
// A failed write is tried again (see AsyncOptions) unless trying cannot help: no permission, a read-only file system, a lock
// that was lost, an invalid snapshot. A full disk is tried again once, since an attempt begins with removing what earlier
// ones left. Every failed attempt leaves the earlier checkpoints as they were. What is given up is reported once: by the
// next Err, Save or Wait.
type Async struct {
	m *Manager
	o AsyncOptions

	memory *hostmem.Memory
	taken  chan struct{} // closed when the memory's pages are there
	// bound is that of the memory taken; 0: undecided. available tells how much memory is left.
	bound     int64
	available func() (memory.Left, bool)

	mu      sync.Mutex
	running chan struct{} // closed when the write has ended; nil: there was none
	cancel  context.CancelCauseFunc
	failure error
}

// NewAsync makes an Async that saves through m, which must outlive it.
func NewAsync(m *Manager, o AsyncOptions) *Async {
	if o.Copiers <= 0 {
		o.Copiers = DefaultCopiers
	}
	if o.Writers <= 0 {
		o.Writers = DefaultWriters
	}
	if o.Retries == 0 {
		o.Retries = DefaultRetries
	}
	if o.Backoff <= 0 {
		o.Backoff = DefaultBackoff
	}
	return &Async{m: m, o: o, memory: &hostmem.Memory{}, available: memory.Available}
}

// Prepare takes the host memory for snapshots like s ahead of the first Save, which is shorter then. It returns at once.
func (a *Async) Prepare(s *Snapshot) error {
	job, err := newSaveJob(s, a.m.opts)
	if err != nil {
		return fmt.Errorf("preparing to save: %w", err)
	}
	_, err = a.take(job.plan)
	return err
}

// take makes sure that there is memory for a save, and returns its bytes.
func (a *Async) take(plan *loadPlan) ([]byte, error) {
	whole, least := plan.needs()
	if a.bound == 0 {
		a.bound = a.limit()
	}
	n := whole
	if a.bound < whole {
		n = min(whole, max(least, a.bound/stageAlign*stageAlign))
	}
	if a.taken != nil {
		<-a.taken
	}
	if a.taken == nil || int64(len(a.memory.Bytes())) < n {
		if err := a.memory.Free(); err != nil {
			return nil, err
		}
		m, err := hostmem.New(n)
		if err != nil {
			return nil, fmt.Errorf("making room to stage a checkpoint: %w", err)
		}
		a.memory, a.taken = m, make(chan struct{})
		go func(taken chan struct{}) {
			defer close(taken)
			m.Populate()
		}(a.taken)
	}
	return a.memory.Bytes()[:n], nil
}

// limit is the bound of host memory, at least 1.
func (a *Async) limit() int64 {
	if a.o.HostMemory > 0 {
		return a.o.HostMemory
	}
	if left, ok := a.available(); ok {
		return max(1, left.Bytes/2)
	}
	return math.MaxInt64
}

// Save copies the snapshot's state off the devices and returns; writing, the commit and pruning follow by themselves. What
// the state's Fetch read may change as soon as Save has returned; what the model folder's Fetch reads must not change
// before Wait. Save first waits for the write before it, whose failure it returns. A cancelled context ends the wait and
// the copy, not the write that follows it: see Wait. On an error of Save itself nothing is written.
//
// Where several processes save together, an error here makes the others' save fail, too.
func (a *Async) Save(ctx context.Context, s *Snapshot) error {
	err := a.save(ctx, s)
	if err != nil {
		a.Refuse(ctx, s, err)
	}
	return err
}

// Refuse tells the processes that save s together with this one why it does not, so that they do not wait for it.
func (a *Async) Refuse(ctx context.Context, s *Snapshot, why error) {
	switch {
	case !a.m.opts.several():
	case !a.m.opts.part():
		a.m.giveUp(s, why)
	case a.idle(ctx) == nil:
		a.start(func(ctx context.Context) { a.m.abstain(ctx, s, why) })
	}
}

func (a *Async) save(ctx context.Context, s *Snapshot) error {
	begin := time.Now()
	if err := a.idle(ctx); err != nil {
		return fmt.Errorf("saving step %d: waiting for the checkpoint before it: %w", s.Step, err)
	}
	if err := a.Err(); err != nil {
		return err
	}
	if err := s.check(a.m.opts.Processes); err != nil {
		return fmt.Errorf("saving step %d: %w", s.Step, err)
	}
	job, err := newSaveJob(s, a.m.opts)
	if err != nil {
		return fmt.Errorf("saving step %d: %w", s.Step, err)
	}
	mem, err := a.take(job.plan)
	if err != nil {
		return fmt.Errorf("saving step %d: %w", s.Step, err)
	}
	if a.taken != nil { // a process of several may have no state to save
		<-a.taken
	}
	w := &asyncWrite{Async: a, snapshot: s, begin: begin}
	w.stats = AsyncStats{LimitBytes: int64(len(mem))}
	for _, l := range job.plan.loads {
		if !l.key.model {
			w.stats.StateBytes += l.bytes
		}
	}
	for {
		w.stage = newStage(s.State, job.plan, mem)
		if w.stage.holds {
			err = w.whole(ctx)
		} else {
			err = w.pieces(ctx)
		}
		var again *tryAgain
		if !errors.As(err, &again) {
			break
		}
		if err = a.wait(ctx, w.stats.Tries); err != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("saving step %d: %w", s.Step, err)
	}
	return nil
}

// idle waits until nothing is being written.
func (a *Async) idle(ctx context.Context) error {
	a.mu.Lock()
	running := a.running
	a.mu.Unlock()
	if running == nil {
		return nil
	}
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Err returns, without waiting, the error of a write that was given up, and nil when it was asked before.
func (a *Async) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.failure
	a.failure = nil
	return err
}

// Wait returns when nothing is being written any more, with the error of a write that was given up. A cancelled context
// abandons what is not committed, and what it left on the disk is removed; the error then wraps the context's.
func (a *Async) Wait(ctx context.Context) error {
	if err := a.idle(ctx); err != nil {
		a.abort(err)
	}
	return a.Err()
}

// abort ends the write that runs and returns when it has cleaned up.
func (a *Async) abort(cause error) {
	a.mu.Lock()
	running, cancel := a.running, a.cancel
	a.mu.Unlock()
	cancel(cause)
	<-running
}

// Close waits as Wait does and gives the host memory back. The Async may be used again.
func (a *Async) Close(ctx context.Context) error {
	err := a.Wait(ctx)
	if a.taken != nil {
		<-a.taken
	}
	a.bound = 0
	return errors.Join(err, a.memory.Free())
}

// wait is the pause after the so manieth try failed.
func (a *Async) wait(ctx context.Context, tries int) error {
	t := time.NewTimer(a.o.Backoff << (tries - 1))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retry tells whether another attempt may help after the so manieth failed.
func (a *Async) retry(err error, tries int) bool {
	// A part of a save is written again when process 0 tries again.
	if hopeless(err) || a.m.opts.part() {
		return false
	}
	if errors.Is(err, ErrNoSpace) {
		return tries <= min(1, a.o.Retries)
	}
	return tries <= a.o.Retries
}

// hopeless tells that an error stays, whatever is tried.
func hopeless(err error) bool {
	for _, final := range []error{ErrSnapshot, ErrReadOnly, ErrLocked, ErrNewerFormat, fs.ErrPermission, syscall.EROFS, context.Canceled} {
		if errors.Is(err, final) {
			return true
		}
	}
	var other *HostError
	return errors.As(err, &other) && other.Final
}

// tryAgain is a failed attempt during Save after which another may help.
type tryAgain struct{ error }

// asyncWrite is one save on its way.
type asyncWrite struct {
	*Async
	snapshot *Snapshot
	stage    *stage
	begin    time.Time
	stats    AsyncStats
}

// whole copies all of the state, then lets the writer begin: until then the copy has the machine for itself.
func (w *asyncWrite) whole(ctx context.Context) error {
	if err := w.stage.copy(ctx, w.o.Copiers); err != nil {
		return err
	}
	w.staged()
	w.start(func(ctx context.Context) {
		began := time.Now()
		for {
			e, err := w.try(ctx, w.o.Writers)
			if !failed(err) || !w.retry(err, w.stats.Tries) {
				w.end(e, err, began)
				return
			}
			if stopped := w.wait(ctx, w.stats.Tries); stopped != nil {
				w.end(e, w.abandoned(stopped, err), began)
				return
			}
		}
	})
	return nil
}

// pieces copies while the writer writes, and returns when the last slice is on the host. A failure of the writer before
// that is Save's own, one after it that of Err.
func (w *asyncWrite) pieces(ctx context.Context) error {
	staged := make(chan struct{})
	w.start(func(ctx context.Context) {
		began := time.Now()
		// A ring goes round in the order of one writer.
		e, err := w.try(ctx, 1)
		if failed(err) {
			if early := w.stage.giveUp(err); early {
				return
			}
		}
		<-staged
		w.end(e, err, began)
	})
	err := w.stage.copy(ctx, min(2, w.o.Copiers))
	if err == nil {
		w.staged()
		close(staged)
		return nil
	}
	w.abort(err)
	if w.stage.stoppedByWriter() && w.retry(err, w.stats.Tries) {
		return &tryAgain{err}
	}
	return err
}

// staged ends the stall of a save whose state is on the host.
func (w *asyncWrite) staged() {
	w.stats.Stall, w.stats.PeakBytes = time.Since(w.begin), w.stage.peakBytes()
	if w.o.Staged != nil {
		w.o.Staged(AsyncStats{StateBytes: w.stats.StateBytes, LimitBytes: w.stats.LimitBytes, PeakBytes: w.stats.PeakBytes, Stall: w.stats.Stall})
	}
}

func failed(err error) bool { return err != nil && !errors.Is(err, ErrPrune) }

// start runs the writer. Its context ends with abort, not with that of Save.
func (a *Async) start(write func(context.Context)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	running := make(chan struct{})
	a.mu.Lock()
	a.running, a.cancel = running, cancel
	a.mu.Unlock()
	go func() {
		defer close(running)
		defer cancel(nil)
		write(ctx)
	}()
}

// try is one attempt at writing.
func (w *asyncWrite) try(ctx context.Context, writers int) (Entry, error) {
	w.stats.Tries++
	e, err := w.m.saveFrom(ctx, w.snapshot, w.stage, writers)
	if cause := context.Cause(ctx); cause != nil && failed(err) {
		err = w.abandoned(cause, nil)
	}
	return e, err
}

func (w *asyncWrite) abandoned(cause, after error) error {
	err := fmt.Errorf("the checkpoint of step %d was abandoned before it was committed: %w; earlier ones are untouched", w.snapshot.Step, cause)
	if after != nil {
		err = fmt.Errorf("%w; the attempt before: %w", err, after)
	}
	return err
}

// end records how the write ended, and tells.
func (w *asyncWrite) end(e Entry, err error, began time.Time) {
	if failed(err) && w.stats.Tries > 1 {
		err = fmt.Errorf("%w (tried %d times)", err, w.stats.Tries)
	}
	w.stats.Write = time.Since(began)
	if failed(err) {
		w.m.giveUp(w.snapshot, err)
		w.mu.Lock()
		w.failure = err
		w.mu.Unlock()
	} else {
		w.stats.WrittenBytes = e.Bytes
	}
	if w.o.Done != nil {
		w.o.Done(Saved{Entry: e, Err: err, Stats: w.stats})
	}
}
