package job

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"weft/checkpoint"
	"weft/engine/trainer"
)

// Stop is how a run is ended early. Nil, and a nil channel, never do.
type Stop struct {
	// Request, when closed, lets the run finish the steps under way, save and end, for which it has Config.GracePeriod. Before
	// the first step, when there is nothing to save, it ends the run at once.
	Request <-chan struct{}
	// Abort, when closed, ends the run without a save: what is being written is abandoned.
	Abort <-chan struct{}
}

// unwindTime is how long a run that is ended at once may take to close what it holds. Nothing depends on it: what it leaves,
// the next start clears away.
const unwindTime = 500 * time.Millisecond

// The phases of a run.
const (
	phasePreparing = iota // nothing was trained: a request to stop ends it at once
	phaseTraining
	phaseAbandoned // before training
)

// progress is what those who end a run know of it.
type progress struct {
	phase atomic.Int32
	// step is the number of updates done.
	step atomic.Int64
	// saver is set when the training begins.
	saver atomic.Pointer[saver]
}

// errStoppedEarly is a request to stop that came before there was anything to save.
var errStoppedEarly = fmt.Errorf("%w: no step had begun; run the same command again", trainer.ErrStopped)

// errAborted is the cause of the cancelled context of a run that is ended without a save.
var errAborted = errors.New("the run was ended without waiting for it")

// outcome is how a run ended.
type outcome struct {
	result *Result
	err    error
}

// supervise does the run in a goroutine of its own, since much of what it waits for can't be interrupted: a compiler, a step, a
// disk, a pipe. A request to stop does not wait for those where there is nothing to save, nor beyond the grace period. What is
// abandoned ends with the process, or by itself when it comes back.
func (r *run) supervise(ctx context.Context, abort <-chan struct{}) (*Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan outcome, 1)
	go func() {
		result, err := r.do(ctx)
		ended <- outcome{result, errors.Join(err, r.close())}
	}()
	abandon := func() outcome {
		r.report.mute()
		cancel(errAborted)
		select {
		case out := <-ended:
			return out
		case <-time.After(unwindTime):
			return outcome{nil, errAborted}
		}
	}
	select {
	case out := <-ended:
		return r.answer(out)
	case <-r.stop:
	case <-abort:
	}
	if r.progress.phase.CompareAndSwap(phasePreparing, phaseAbandoned) {
		abandon()
		return nil, errStoppedEarly
	}
	grace := time.NewTimer(max(r.GracePeriod-unwindTime, r.GracePeriod/2)) // what is abandoned ends in it too
	defer grace.Stop()
	why := "the save was skipped at the second request"
	select {
	case out := <-ended:
		return r.answer(out)
	case <-abort:
	case <-grace.C:
		why = fmt.Sprintf("the grace period of %v ended before a save did", r.GracePeriod)
	}
	out := abandon()
	if out.err == nil || errors.Is(out.err, trainer.ErrStopped) {
		return out.result, out.err // it came to its end after all
	}
	return nil, fmt.Errorf("%w: %s; %s", trainer.ErrStopped, why, r.lost())
}

// answer is the outcome of a run that ended by itself. One that failed while it prepared, when it was asked to stop, may have
// failed by that: the terminal's interrupt reaches its children too.
func (r *run) answer(out outcome) (*Result, error) {
	if out.err != nil && r.progress.phase.Load() == phasePreparing && r.asked() {
		return nil, errStoppedEarly
	}
	return out.result, out.err
}

// asked tells whether the run was asked to stop.
func (r *run) asked() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// newest is the checkpoint that the run would continue from, and where it is; false when there is none.
func (r *run) newest() (at checkpoint.Entry, where string, ok bool) {
	if s := r.progress.saver.Load(); s != nil {
		if e := s.newest(); e.Dir != "" {
			return e, r.folder.of(e), true
		}
	}
	if r.from != nil {
		e := r.from.entry
		e.Step = r.from.at.Step
		return e, r.from.where, true
	}
	return checkpoint.Entry{}, "", false
}

// lost says what a run that ends now loses.
func (r *run) lost() string {
	done := int(r.progress.step.Load())
	newest, where, ok := r.newest()
	switch n := done - newest.Step; {
	case !ok && n == 0:
		return "no step had ended: run the same command again"
	case n == 0:
		return "nothing is lost: run the same command again to continue from " + where
	case !ok:
		return fmt.Sprintf("there is no checkpoint, and %s lost: run the same command again to begin again", steps(n))
	default:
		return fmt.Sprintf("the newest checkpoint is %s (step %d), and %s lost since: run the same command again to continue from it", where, newest.Step, steps(n))
	}
}

// steps is "1 step is" or "N steps are".
func steps(n int) string {
	if n == 1 {
		return "1 step is"
	}
	return fmt.Sprintf("%d steps are", n)
}

// stopped is the error of a run that stopped at a position when it was asked to, and saved.
func (r *run) stopped(err error, at trainer.Position) error {
	_, where, ok := r.newest()
	if !ok {
		return errStoppedEarly
	}
	return fmt.Errorf("%w at step %d of %d, everything is saved in %s: run the same command again to continue", err, at.Step, r.totalSteps(), where)
}

// failed is the error of a training that failed, with what there is to continue from.
func (r *run) failed(err error) error {
	newest, where, ok := r.newest()
	if !ok {
		return fmt.Errorf("%w; there is no checkpoint yet", err)
	}
	return fmt.Errorf("%w; the newest checkpoint is %s (step %d)", err, where, newest.Step)
}
