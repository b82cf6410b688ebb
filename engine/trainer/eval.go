package trainer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"weft/engine"
)

// Evaluator gives the losses of a batch and leaves the state as it is.
type Evaluator interface {
	Run(state *engine.State, batch engine.Batch) (*engine.PendingLosses, error)
}

// EvalRecord is the report of one evaluation.
type EvalRecord struct {
	// Step is the number of updates done, Epoch the 1-based epoch of the last of them.
	Step  int `json:"step"`
	Epoch int `json:"epoch"`
	// Loss is the summed loss of all rows divided by the number of their Targets, in nats.
	Loss    float64 `json:"eval_loss"`
	Targets int     `json:"eval_targets"`
	Seconds float64 `json:"eval_time_s"`
}

// Evaluation runs an evaluator over a source of batches.
type Evaluation struct {
	Evaluator Evaluator
	State     *engine.State
	// Source's epoch 0 is what is evaluated.
	Source Source
	// Agree tells that other hosts evaluate with this one. One that has no batch any more then goes on with Empty, its rows without
	// a token, to the end, so that the others do not wait for it, and returns its error there: the loss is none.
	Agree bool
	Empty engine.Batch
}

// Do evaluates the state, which is that of a position. It runs one batch ahead of the losses that it reads. When stop is closed it
// ends after the batches under way and returns ErrStopped.
func (e *Evaluation) Do(ctx context.Context, stop <-chan struct{}, at Position) (EvalRecord, error) {
	start := time.Now()
	sum, targets, err := e.sums(ctx, stop)
	if err != nil {
		return EvalRecord{}, err
	}
	r := EvalRecord{Step: at.Step, Epoch: at.Epoch + 1, Loss: sum / math.Max(1, float64(targets)), Targets: targets, Seconds: time.Since(start).Seconds()}
	if math.IsNaN(r.Loss) || math.IsInf(r.Loss, 0) {
		return r, fmt.Errorf("the evaluation after step %d (epoch %d): the loss is %v; nothing was saved since the last checkpoint: lower --learning-rate, set --max-grad-norm, or use --compute-dtype float32",
			r.Step, r.Epoch, r.Loss)
	}
	return r, nil
}

// sums adds up the losses and targets of all batches.
func (e *Evaluation) sums(ctx context.Context, stop <-chan struct{}) (sum float64, targets int, err error) {
	var pending *engine.PendingLosses
	settle := func() error {
		if pending == nil {
			return nil
		}
		losses, err := pending.Wait()
		pending = nil
		sum, targets = sum+losses.LossSum, targets+losses.Targets
		return err
	}
	// What an error left under way has ended before the state is the caller's again.
	defer func() { err = errors.Join(err, settle()) }()
	var broken error
	for batch, err := range e.batches(ctx, &broken) {
		if err != nil {
			return 0, 0, err
		}
		select {
		case <-stop:
			return 0, 0, ErrStopped
		default:
		}
		next, err := e.Evaluator.Run(e.State, batch)
		if err != nil && e.Agree && errors.Is(err, engine.ErrNotLaunched) {
			// The others have launched theirs, and wait.
			broken = errors.Join(broken, err)
			next, err = e.Evaluator.Run(e.State, e.Empty)
		}
		if err != nil {
			return 0, 0, err
		}
		if err := settle(); err != nil {
			pending = next
			return 0, 0, err
		}
		pending = next
	}
	err = errors.Join(broken, settle())
	return sum, targets, err
}

// batches are those of the source, or with Agree as many, of which those after a failure are empty.
func (e *Evaluation) batches(ctx context.Context, broken *error) iter.Seq2[engine.Batch, error] {
	source := e.Source.Batches(ctx, 0, 0)
	if !e.Agree {
		return source
	}
	return func(yield func(engine.Batch, error) bool) {
		left := e.Source.StepsPerEpoch()
		for batch, err := range source {
			if err != nil && ctx.Err() == nil {
				*broken = err
				break
			}
			if left--; !yield(batch, err) || err != nil {
				return
			}
		}
		for ; left > 0; left-- {
			if !yield(e.Empty, nil) {
				return
			}
		}
	}
}

// evaluateBetween evaluates before the next step is launched, where it is time to.
func (l *loop) evaluateBetween(ctx context.Context) error {
	launched := l.launched()
	if l.Hooks.Eval == nil || l.EvalEverySteps == 0 || launched == 0 || launched%l.EvalEverySteps != 0 {
		return nil
	}
	if err := l.settle(); err != nil {
		return err
	}
	return l.evaluate(ctx)
}

// evaluate evaluates the state, unless the position tells that this was done. An evaluation that is to stop leaves a position
// from which the run goes on with it.
func (l *loop) evaluate(ctx context.Context) error {
	if l.Hooks.Eval == nil || l.at.Evaluated == l.at.Step {
		return nil
	}
	loss, err := l.Hooks.Eval(ctx, l.at)
	if errors.Is(err, ErrStopped) {
		return l.saveAndStop(ctx)
	}
	if err != nil {
		return err
	}
	l.at.Evaluated, l.at.EvalLoss = l.at.Step, loss
	l.last = time.Now()
	return nil
}
