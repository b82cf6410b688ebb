package trainer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"weft/engine"
)

// Several hosts save and stop after the same step, since a checkpoint is one of all hosts and a step needs all of them. What
// one of them asks for travels with the next batch that it launches; every host reads the sum with that step's metrics, when
// the step after it, k+1, is launched everywhere. So all act after step k+1, or after step k where that is an epoch's last or
// an evaluation follows: a rule of positions alone, whatever the speed of each.

// wants is what this process asks for now.
func (l *loop) wants() engine.Request {
	return engine.Request{Fail: l.broken != nil, Stop: l.stopping(), Save: l.SaveEvery > 0 && l.now().Sub(l.lastSave) >= l.SaveEvery}
}

// stopping tells whether this process was asked to stop.
func (l *loop) stopping() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// stopsNow tells whether a request to stop needs nobody's consent.
func (l *loop) stopsNow() bool { return !l.Agree && l.stopping() }

// launched is the number of updates that are done or under way.
func (l *loop) launched() int {
	if l.pending != nil {
		return l.at.Step + 1
	}
	return l.at.Step
}

// between does what is due after the steps that are launched, before the next one is: an evaluation, a save, the end.
func (l *loop) between(ctx context.Context) error {
	if !l.due.Stop {
		if err := l.evaluateBetween(ctx); err != nil {
			return err
		}
	}
	due := l.due
	if !l.Agree {
		due = due.Or(l.wants())
	}
	if l.SaveEverySteps > 0 && l.launched()%l.SaveEverySteps == 0 {
		due.Save = true
	}
	if !due.Any() {
		return nil
	}
	if err := l.settle(); err != nil {
		return err
	}
	if due.Stop || l.due.Stop {
		return l.saveAndStop(ctx)
	}
	if err := l.save(ctx, l.at, false); err != nil {
		return fmt.Errorf("save the checkpoint of step %d: %w", l.at.Step, err)
	}
	if l.stopsNow() {
		return ErrStopped // asked during the save, which needs no second one
	}
	return nil
}

// save saves the position unless the newest checkpoint is of it, and answers what was due.
func (l *loop) save(ctx context.Context, at Position, epochEnd bool) error {
	l.due.Save = false
	if l.Hooks.Save != nil && (epochEnd || at.Step != l.saved) {
		// The others know no better, and count it as saved.
		if err := l.keepGoing(l.Hooks.Save(ctx, at, epochEnd), "save"); err != nil {
			return err
		}
	}
	l.saved, l.lastSave = at.Step, l.now()
	// A step's time is its own.
	l.last = time.Now()
	return nil
}

func (l *loop) saveAndStop(ctx context.Context) error {
	if err := l.save(ctx, l.at, false); err != nil {
		return fmt.Errorf("save before stopping at step %d: %w", l.at.Step, err)
	}
	if l.broken != nil {
		return l.broken
	}
	return ErrStopped
}

// A host of several that cannot go on does not end: the others would wait for it in the next step. It launches the steps that
// they launch, on rows without tokens where it has no others, and raises Fail with each. Every host reads that with the first of
// them, at the same place of the loop, and ends with the error of the one that failed.

// keepGoing notes an error of this host that the others do not know of. Alone, it is returned.
func (l *loop) keepGoing(err error, what string) error {
	if err == nil || !l.Agree {
		return err
	}
	if l.broken == nil {
		l.broken = fmt.Errorf("%s at step %d: %w", what, l.at.Step, err)
	}
	return nil
}

// failed ends the run on every host, since one of them has failed.
func (l *loop) failed() error {
	if l.Hooks.Tell == nil {
		return errors.Join(l.broken, errOther)
	}
	return l.Hooks.Tell(l.broken)
}

var errOther = errors.New("a host has failed, so that all end: see what it says")

// batches are those of the rest of the epoch. A host that has none while others run goes on with empty ones.
func (l *loop) batches(ctx context.Context) iter.Seq2[engine.Batch, error] {
	source := l.Source.Batches(ctx, l.at.Epoch, l.at.StepInEpoch)
	if !l.Agree {
		return source
	}
	return func(yield func(engine.Batch, error) bool) {
		left := l.Source.StepsPerEpoch() - l.at.StepInEpoch
		for batch, err := range source {
			if err != nil && ctx.Err() != nil {
				yield(engine.Batch{}, err)
				return
			}
			if err != nil {
				_ = l.keepGoing(err, "read a batch")
				break
			}
			if left--; !yield(batch, nil) {
				return
			}
		}
		if left > 0 {
			_ = l.keepGoing(fmt.Errorf("the data of epoch %d ended %d steps early", l.at.Epoch+1, left), "read a batch")
		}
		for ; left > 0; left-- {
			if !yield(l.Empty, nil) {
				return
			}
		}
	}
}
