package trainer

import (
	"context"
	"fmt"
	"time"

	"weft/engine"
)

// Several hosts save and stop after the same step, since a checkpoint is one of all hosts and a step needs all of them. What
// one of them asks for travels with the next batch that it launches; every host reads the sum with that step's metrics, when
// the step after it, k+1, is launched everywhere. So all act after step k+1, or after step k where that is an epoch's last or
// an evaluation follows: a rule of positions alone, whatever the speed of each.

// wants is what this process asks for now.
func (l *loop) wants() engine.Request {
	return engine.Request{Stop: l.stopping(), Save: l.SaveEvery > 0 && l.now().Sub(l.lastSave) >= l.SaveEvery}
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
		if err := l.Hooks.Save(ctx, at, epochEnd); err != nil {
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
	return ErrStopped
}
