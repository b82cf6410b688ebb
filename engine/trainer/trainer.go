// Package trainer is the training loop: epochs of steps over a source of batches, a report of each step, and a save at
// each epoch's end, between steps as often as is wanted, and when asked to stop.
//
// The loop runs one step ahead of the metrics it reads, so that the host prepares a batch while the devices work. It
// knows neither files nor terminals: batches, saves and reports are the caller's.
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

// Position is a place between two steps of a run, with what the epoch has summed up to it. It is what a checkpoint must
// hold, beside the state, to continue with the same bits.
type Position struct {
	// Epoch is 0-based; StepInEpoch steps of it are done.
	Epoch       int `json:"epoch"`
	StepInEpoch int `json:"step_in_epoch"`
	// Step is the number of updates done in all.
	Step int `json:"step"`
	// LossSum, in nats, and Targets are those of the epoch's steps so far.
	LossSum float64 `json:"loss_sum"`
	Targets int     `json:"targets"`
	// Seconds is the time spent on the epoch so far.
	Seconds float64 `json:"seconds"`
	// Evaluated is the step after which the run was last evaluated, and EvalLoss what came out; 0 before the first time.
	Evaluated int     `json:"evaluated,omitempty"`
	EvalLoss  float64 `json:"eval_loss,omitempty"`
}

// Loss is the mean loss over the targets of the epoch so far.
func (p Position) Loss() float64 { return p.LossSum / math.Max(1, float64(p.Targets)) }

// Next is where a run goes on after the position of an epoch's end.
func (p Position) Next() Position {
	return Position{Epoch: p.Epoch + 1, Step: p.Step, Evaluated: p.Evaluated, EvalLoss: p.EvalLoss}
}

// Source gives this process's part of every global batch.
type Source interface {
	StepsPerEpoch() int
	// Batches yields the batches of an epoch from step first on. A cancelled context ends it with its error.
	Batches(ctx context.Context, epoch, first int) iter.Seq2[engine.Batch, error]
}

// Stepper does one update: it enqueues it and returns.
type Stepper interface {
	Run(state *engine.State, batch engine.Batch) (Pending, error)
}

// Pending is the result of a step that may still be running: Ready waits for its end, Wait for its metrics. Each is called
// once.
type Pending interface {
	Ready() error
	Wait() (engine.Metrics, error)
}

// Compiled makes a compiled step the loop's.
func Compiled(s *engine.Step) Stepper { return compiled{s} }

type compiled struct{ *engine.Step }

func (c compiled) Run(state *engine.State, batch engine.Batch) (Pending, error) {
	p, err := c.Step.Run(state, batch)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// StepRecord is the report of one step.
type StepRecord struct {
	// Step and Epoch are 1-based.
	Step  int `json:"step"`
	Epoch int `json:"epoch"`
	// Loss is the mean over the batch's targets, in nats, before the update; GradNorm the global norm before clipping.
	Loss     float64 `json:"loss"`
	GradNorm float64 `json:"grad_norm"`
	LR       float64 `json:"lr"`
	// Tokens is the number of positions of the global batch, padding included, and Targets how many were learned from.
	Tokens       int     `json:"tokens"`
	Targets      int     `json:"targets"`
	StepTime     float64 `json:"step_time_s"`
	TokensPerSec float64 `json:"tokens_per_s"`
}

// EpochRecord is the report of one epoch.
type EpochRecord struct {
	// Epoch is 1-based, of Epochs.
	Epoch, Epochs int
	// Loss is the summed loss of the epoch's targets divided by their number.
	Loss         float64
	Seconds      float64
	TokensPerSec float64
	// EvalLoss is that of the evaluation at the epoch's end; without one Evaluated is false.
	EvalLoss  float64
	Evaluated bool
}

// Hooks are the caller's side of the loop. Save, Eval and Failed may be nil.
type Hooks struct {
	Step  func(StepRecord) error
	Epoch func(EpochRecord)
	// Eval gives the loss of an evaluation of the state, which is that after at.Step updates; ErrStopped when a request to
	// stop ended it. It is called at each epoch's end, before the save, and after every EvalEverySteps updates.
	Eval func(ctx context.Context, at Position) (loss float64, err error)
	// Save takes a checkpoint of the state at a position; it may return before that is written. epochEnd tells an epoch's end
	// from a save between steps or on the way out.
	Save func(ctx context.Context, at Position, epochEnd bool) error
	// Tell, where hosts agree, is called on all of them when one has failed, with this one's failure or nil. It returns the error
	// that the run ends with, which names the hosts that failed.
	Tell func(own error) error
	// Failed returns, without waiting, the error of a save that was taken and could not be written. It is asked after every
	// step and ends the run.
	Failed func() error
}

// Run is one run of the loop.
type Run struct {
	Step   Stepper
	State  *engine.State
	Source Source
	Epochs int
	// EvalEverySteps is how many updates lie between evaluations within an epoch; 0: there are none.
	EvalEverySteps int
	// SaveEverySteps is how many updates, and SaveEvery how much time, lie between saves within an epoch; 0: there are none.
	SaveEverySteps int
	SaveEvery      time.Duration
	// Agree tells that other hosts run this loop too, on the same Source, Epochs and From. Then all of them save and stop after
	// the same step, that which their requests arrive at; else a request is answered after the steps that are launched, and
	// one to stop ends the wait for a batch.
	Agree bool
	// Empty is what this host gives, where Agree is set, instead of a batch that it cannot make: its rows without a token.
	Empty engine.Batch
	// TokensPerStep is the number of positions of a global batch.
	TokensPerStep int
	// LR returns the learning rate of a 1-based update, for the reports.
	LR func(step int) float64
	// From is where to begin: zero, or the position of a checkpoint whose state State holds.
	From  Position
	Hooks Hooks

	clock func() time.Time // nil: time.Now
}

// ErrStopped is returned when the run was asked to stop. What it did since From is saved.
var ErrStopped = errors.New("stopped before the end")

// Do runs the loop. When stop is closed, here or where another host runs it, it finishes the steps that run, saves what is not
// saved and returns ErrStopped; a run whose last step is launched is finished instead.
func (r *Run) Do(ctx context.Context, stop <-chan struct{}) (Position, error) {
	feed, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			if !r.Agree {
				cancel()
			}
		case <-feed.Done():
		}
	}()
	l := loop{Run: r, at: r.From, saved: r.From.Step, stop: stop, now: time.Now}
	if r.clock != nil {
		l.now = r.clock
	}
	l.lastSave = l.now()
	for l.at.Epoch < r.Epochs {
		if err := l.epoch(ctx, feed); err != nil {
			return l.at, err
		}
	}
	return l.at, l.broken
}

// NonFiniteError is a step whose loss or gradient norm is NaN or infinite.
type NonFiniteError struct {
	// Step and Epoch are 1-based.
	Step, Epoch    int
	Loss, GradNorm float64
}

// Error says what was lost, and what may help where the weights were good before.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("step %d (epoch %d): the loss is %v and the gradient norm %v; nothing was saved since the last checkpoint: lower --learning-rate, set --max-grad-norm, or use --compute-dtype float32",
		e.Step, e.Epoch, e.Loss, e.GradNorm)
}

type loop struct {
	*Run
	at      Position
	stop    <-chan struct{}
	pending chan settled // nil: no step is in flight
	last    time.Time
	now     func() time.Time
	// due is what the hosts asked for with the steps that have ended.
	due engine.Request
	// broken is why this host cannot go on, which the others do not know yet.
	broken error
	// saved is the step of the newest save, lastSave when it was taken.
	saved    int
	lastSave time.Time
}

// settled is a step that has ended on the devices.
type settled struct {
	metrics engine.Metrics
	err     error
	at      time.Time
}

// epoch runs the rest of the epoch at l.at.
func (l *loop) epoch(ctx, feed context.Context) error {
	l.last = time.Now()
	defer l.drain()
	for batch, err := range l.batches(feed) {
		if l.stopsNow() {
			break
		}
		if err != nil {
			return err
		}
		if err := l.between(ctx); err != nil {
			return err
		}
		batch.Request = l.wants()
		if err := l.launch(batch); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.settle(); err != nil {
		return err
	}
	if l.at.StepInEpoch < l.Source.StepsPerEpoch() {
		if !l.stopsNow() {
			return fmt.Errorf("the data of epoch %d ended after %d of %d steps", l.at.Epoch+1, l.at.StepInEpoch, l.Source.StepsPerEpoch())
		}
		return l.saveAndStop(ctx)
	}
	return l.finishEpoch(ctx)
}

// launch enqueues a step, then settles the one before it.
func (l *loop) launch(batch engine.Batch) error {
	next, err := l.Step.Run(l.State, batch)
	if err != nil && l.Agree && errors.Is(err, engine.ErrNotLaunched) && l.broken == nil {
		_ = l.keepGoing(err, "launch the step after")
		empty := l.Empty
		empty.Request = l.wants()
		next, err = l.Step.Run(l.State, empty)
	}
	if err != nil {
		return err
	}
	// Waited for beside the loop, so that a step's time is right also where launching the next one blocks.
	done := make(chan settled, 1)
	go func() {
		ready := next.Ready()
		at := time.Now()
		m, err := next.Wait()
		done <- settled{m, errors.Join(ready, err), at}
	}()
	if err := l.settle(); err != nil {
		<-done
		return err
	}
	l.pending = done
	return nil
}

// settle waits for the step in flight, adds it to the epoch and reports it.
func (l *loop) settle() error {
	if l.pending == nil {
		return nil
	}
	done := <-l.pending
	l.pending = nil
	if done.err != nil {
		return done.err
	}
	m := done.metrics
	seconds := l.elapsed(done.at)
	l.at.Step++
	l.at.StepInEpoch++
	l.at.LossSum += m.LossSum
	l.at.Targets += m.Targets
	l.at.Seconds += seconds
	l.due = l.due.Or(m.Request)
	if l.due.Fail {
		return l.failed()
	}
	if math.IsNaN(m.LossSum) || math.IsInf(m.LossSum, 0) || math.IsNaN(m.GradNorm) || math.IsInf(m.GradNorm, 0) {
		return &NonFiniteError{Step: l.at.Step, Epoch: l.at.Epoch + 1, Loss: m.Loss(), GradNorm: m.GradNorm}
	}
	err := l.Hooks.Step(StepRecord{
		Step: l.at.Step, Epoch: l.at.Epoch + 1, Loss: m.Loss(), GradNorm: m.GradNorm, LR: l.LR(l.at.Step),
		Tokens: l.TokensPerStep, Targets: m.Targets, StepTime: seconds, TokensPerSec: float64(l.TokensPerStep) / seconds,
	})
	if err = l.keepGoing(err, "report"); err != nil || l.Hooks.Failed == nil {
		return err
	}
	if err := l.keepGoing(l.Hooks.Failed(), "save"); err != nil {
		return fmt.Errorf("after step %d: %w", l.at.Step, err)
	}
	return nil
}

// elapsed is the time in seconds from the end of the step before to that of this one, at, which becomes the last. It is
// above 0 always: on a busy host the one that waits for a step may wake after the one that waits for the next.
func (l *loop) elapsed(at time.Time) float64 {
	if least := l.last.Add(time.Microsecond); at.Before(least) {
		at = least
	}
	seconds := at.Sub(l.last).Seconds()
	l.last = at
	return seconds
}

// drain waits for a step that an error left in flight: the state is not the caller's before.
func (l *loop) drain() {
	if l.pending != nil {
		<-l.pending
		l.pending = nil
	}
}

// finishEpoch evaluates and reports the epoch, moves to the next one and saves.
func (l *loop) finishEpoch(ctx context.Context) error {
	if err := l.evaluate(ctx); err != nil {
		return err
	}
	l.Hooks.Epoch(EpochRecord{
		Epoch: l.at.Epoch + 1, Epochs: l.Epochs, Loss: l.at.Loss(), Seconds: l.at.Seconds,
		TokensPerSec: float64(l.TokensPerStep*l.at.StepInEpoch) / l.at.Seconds,
		EvalLoss:     l.at.EvalLoss, Evaluated: l.Hooks.Eval != nil,
	})
	done := l.at
	l.at = done.Next()
	if err := l.save(ctx, done, true); err != nil {
		return fmt.Errorf("save the checkpoint of epoch %d: %w", done.Epoch+1, err)
	}
	if l.at.Epoch < l.Epochs && (l.due.Stop || l.stopsNow()) {
		return ErrStopped
	}
	return nil
}
