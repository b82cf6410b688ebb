package trainer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/engine"
)

// failingHost is a host that fails in one way.
type failingHost struct {
	*host
	// data is the step, 1-based, whose batch it cannot make; launch that which it cannot launch.
	data, launch int
	gone         error
}

func (h *failingHost) Batches(ctx context.Context, epoch, first int) iter.Seq2[engine.Batch, error] {
	return func(yield func(engine.Batch, error) bool) {
		at := epoch*h.epochLen + first
		for b, err := range h.host.Batches(ctx, epoch, first) {
			if at++; at == h.data {
				b, err = engine.Batch{}, h.gone
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

func (h *failingHost) Run(s *engine.State, b engine.Batch) (Pending, error) {
	if h.launched+1 == h.launch {
		h.launch = 0
		return nil, fmt.Errorf("%w: %w", engine.ErrNotLaunched, h.gone)
	}
	return h.host.Run(s, b)
}

// Where one host cannot go on, all end after the same step, with its error, and save nothing of the steps that lack its rows.
func TestHostThatFailsEndsAll(t *testing.T) {
	gone := errors.New("the disk is gone")
	for _, c := range []struct {
		name string
		fail func(h *failingHost, hooks *Hooks)
		// saves of every host, launched and reported how many steps; failed what the failing one says.
		saves              []string
		launched, reported int
		failed             string
		// late: no step tells the others any more.
		late bool
	}{
		{name: "a batch", fail: func(h *failingHost, _ *Hooks) { h.data = 6 }, saves: []string{"4"}, launched: 7, reported: 5, failed: "read a batch at step 4: "},
		{name: "the first batch", fail: func(h *failingHost, _ *Hooks) { h.data = 1 }, launched: 2, reported: 0, failed: "read a batch at step 0: "},
		{name: "the batch of a step that is saved", fail: func(h *failingHost, _ *Hooks) { h.data = 8 }, saves: []string{"4"}, launched: 8, reported: 7, failed: "read a batch at step 6: "},
		{name: "an epoch's last batch", fail: func(h *failingHost, _ *Hooks) { h.data = 10 }, saves: []string{"4", "8"}, launched: 10, reported: 9, failed: "read a batch at step 8: "},
		{name: "launching a step", fail: func(h *failingHost, _ *Hooks) { h.launch = 6 }, saves: []string{"4"}, launched: 7, reported: 5, failed: "launch the step after at step 4: the step was not launched: "},
		{
			name: "taking a save", fail: func(_ *failingHost, o *Hooks) {
				save := o.Save
				o.Save = func(ctx context.Context, at Position, end bool) error {
					return errors.Join(save(ctx, at, end), gone)
				}
			}, saves: []string{"4"}, launched: 6, reported: 4, failed: "save at step 4: ",
		},
		{
			name: "writing a save", fail: func(h *failingHost, o *Hooks) {
				o.Failed = func() error {
					if len(h.steps) == 6 {
						return gone
					}
					return nil
				}
			}, saves: []string{"4"}, launched: 8, reported: 7, failed: "save at step 6: ",
		},
		{
			name: "reporting a step", fail: func(h *failingHost, o *Hooks) {
				step := o.Step
				o.Step = func(r StepRecord) error {
					if r.Step == 5 {
						return errors.Join(step(r), gone)
					}
					return step(r)
				}
			}, saves: []string{"4"}, launched: 8, reported: 6, failed: "report at step 5: ",
		},
		{
			name: "taking the last save", fail: func(_ *failingHost, o *Hooks) {
				save := o.Save
				o.Save = func(ctx context.Context, at Position, end bool) error {
					if at.Step == 20 {
						return errors.Join(save(ctx, at, end), gone)
					}
					return save(ctx, at, end)
				}
			}, saves: []string{"4", "8", "10 epoch", "12", "16", "20 epoch"}, launched: 20, reported: 20, failed: "save at step 20: ", late: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for failing := range 3 {
				f := newFabric(3)
				var hosts [3]*failingHost
				var errs [3]error
				var told [3][]error
				var all sync.WaitGroup
				for i := range hosts {
					h := &failingHost{host: &host{fabric: f, epochLen: 10, pause: func() { time.Sleep(time.Duration(i*100) * time.Microsecond) }}, gone: gone}
					hosts[i] = h
					hooks := h.hooks()
					hooks.Tell = func(own error) error {
						told[i] = append(told[i], own)
						if own == nil {
							own = errOther
						}
						return own
					}
					if i == failing {
						c.fail(h, &hooks)
					}
					run := h.run(Run{Epochs: 2, SaveEverySteps: 4, Agree: true, Hooks: hooks})
					run.Step, run.Source = h, h
					all.Go(func() { _, errs[i] = run.Do(t.Context(), nil) })
				}
				all.Wait()
				for i, h := range hosts {
					label := fmt.Sprintf("host %d, failing %d", i, failing)
					require.Equal(t, c.saves, h.saves, label)
					require.Equal(t, c.launched, h.host.launched, label)
					require.Len(t, h.steps, c.reported, label)
					switch {
					case i == failing:
						require.ErrorIs(t, errs[i], gone, label)
						require.EqualError(t, errs[i], c.failed+gone.Error(), label)
					case c.late:
						require.NoError(t, errs[i], label)
					default:
						require.ErrorIs(t, errs[i], errOther, label)
					}
					if !c.late {
						require.Len(t, told[i], 1, label)
					}
				}
			}
		})
	}
}

// A host whose evaluation has no batch any more gives empty ones to the end, as many as the others wait for.
func TestEvaluationThatFailsGoesOn(t *testing.T) {
	gone := errors.New("the disk is gone")
	h := &failingHost{host: &host{epochLen: 5, pause: func() {}}, data: 3, gone: gone}
	for agree, want := range map[bool][]int{true: {0, 0, 1, 1, 1}, false: {0, 0}} {
		e := Evaluation{Source: h, Agree: agree, Empty: engine.Batch{Rows: []engine.RowRange{{Start: 0, End: 1}}}}
		var rows []int
		var broken, failed error
		for b, err := range e.batches(t.Context(), &broken) {
			if err != nil {
				failed = err
				break
			}
			rows = append(rows, len(b.Rows))
		}
		require.Equal(t, want, rows)
		if agree {
			require.ErrorIs(t, broken, gone)
			require.NoError(t, failed)
		} else {
			require.ErrorIs(t, failed, gone)
		}
	}
}

// launches notes the batches that it refuses to launch.
type launches struct {
	err  error
	rows []int
}

func (l *launches) Run(_ *engine.State, b engine.Batch) (*engine.PendingLosses, error) {
	l.rows = append(l.rows, len(b.Rows))
	return nil, fmt.Errorf("%w: %w", engine.ErrNotLaunched, l.err)
}

// A host that cannot launch a batch of an evaluation launches an empty one instead; it ends when it cannot do that either.
func TestEvaluationThatIsNotLaunchedIsLaunchedEmpty(t *testing.T) {
	gone := errors.New("the memory is full")
	h := &failingHost{host: &host{epochLen: 5, pause: func() {}}}
	for agree, want := range map[bool][]int{true: {0, 1}, false: {0}} {
		l := &launches{err: gone}
		e := Evaluation{Evaluator: l, Source: h, Agree: agree, Empty: engine.Batch{Rows: []engine.RowRange{{Start: 0, End: 1}}}}
		_, err := e.Do(t.Context(), nil, Position{})
		require.ErrorIs(t, err, gone)
		require.Equal(t, want, l.rows)
	}
}
