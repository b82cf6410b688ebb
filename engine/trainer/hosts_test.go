package trainer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/engine"
)

// fabric joins simulated hosts: a step ends when every host has launched it, and its metrics hold the sum of what they ask
// for.
type fabric struct {
	hosts int
	mu    sync.Mutex
	steps map[int]*fabricStep
}

type fabricStep struct {
	launched int
	request  engine.Request
	ended    chan struct{}
}

func newFabric(hosts int) *fabric { return &fabric{hosts: hosts, steps: map[int]*fabricStep{}} }

// launch is one host's part of a step.
func (f *fabric) launch(step int, r engine.Request) *fabricStep {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.steps[step]
	if s == nil {
		s = &fabricStep{ended: make(chan struct{})}
		f.steps[step] = s
	}
	s.request = s.request.Or(r)
	if s.launched++; s.launched == f.hosts {
		close(s.ended)
	}
	return s
}

// host is one of the hosts: a Stepper and a Source, and what its hooks were told.
type host struct {
	fabric   *fabric
	epochLen int
	// pause is called before each batch, and between a step's end and its reading.
	pause func()
	// before is called with the number of a step, 1-based, when its batch is asked for.
	before func(step int)

	launched int
	steps    []int
	saves    []string
}

func (h *host) Run(_ *engine.State, b engine.Batch) (Pending, error) {
	h.launched++
	return hostPending{h.fabric.launch(h.launched, b.Request), h.launched, h}, nil
}

type hostPending struct {
	*fabricStep
	step int
	host *host
}

func (p hostPending) Ready() error { <-p.ended; return nil }

func (p hostPending) Wait() (engine.Metrics, error) {
	<-p.ended
	p.host.pause()
	return engine.Metrics{LossSum: 10 / float64(p.step), Targets: 1, GradNorm: 1, Request: p.request}, nil
}

func (h *host) StepsPerEpoch() int { return h.epochLen }

func (h *host) Batches(ctx context.Context, epoch, first int) iter.Seq2[engine.Batch, error] {
	return func(yield func(engine.Batch, error) bool) {
		for i := first; i < h.epochLen; i++ {
			h.pause()
			if h.before != nil {
				h.before(epoch*h.epochLen + i + 1)
			}
			if err := ctx.Err(); err != nil {
				yield(engine.Batch{}, err)
				return
			}
			if !yield(engine.Batch{}, nil) {
				return
			}
		}
	}
}

func (h *host) hooks() Hooks {
	return Hooks{
		Step:  func(r StepRecord) error { h.steps = append(h.steps, r.Step); return nil },
		Epoch: func(EpochRecord) {},
		Save: func(_ context.Context, at Position, epochEnd bool) error {
			if h.launched != at.Step {
				return fmt.Errorf("step %d is saved when %d are launched: the state is another", at.Step, h.launched)
			}
			h.saves = append(h.saves, fmt.Sprintf("%d%s", at.Step, map[bool]string{true: " epoch"}[epochEnd]))
			return nil
		},
	}
}

func (h *host) run(more Run) *Run {
	more.Step, more.Source, more.TokensPerStep = h, h, 8
	more.LR = func(int) float64 { return 1 }
	if more.Hooks.Step == nil {
		more.Hooks = h.hooks()
	}
	h.launched = more.From.Step
	if h.pause == nil {
		h.pause = func() {}
	}
	return &more
}

// ask is what one host raises while it waits for the batch of a step.
type ask struct {
	host, step int
	stop       bool
}

const simulatedHosts, simulatedEpoch, simulatedEpochs = 4, 10, 3

// simulate runs the loop on all hosts, with pauses drawn from the seed, and returns them and how each ended.
func simulate(t *testing.T, seed uint64, raise []ask, more Run) (hosts [simulatedHosts]*host, at [simulatedHosts]Position, errs [simulatedHosts]error) {
	t.Helper()
	f := newFabric(simulatedHosts)
	var all sync.WaitGroup
	for i := range hosts {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		var drawing sync.Mutex
		stop := make(chan struct{})
		// The host's own clock: an hour passes where it is to ask for a save.
		clock := time.Unix(int64(1000*i), 0)
		var ticking sync.Mutex
		h := &host{fabric: f, epochLen: simulatedEpoch}
		h.pause = func() {
			drawing.Lock()
			d := time.Duration(random.IntN(3)) * time.Duration(random.IntN(300)) * time.Microsecond
			drawing.Unlock()
			time.Sleep(d)
		}
		h.before = func(step int) {
			for _, a := range raise {
				if a.host != i || a.step != step {
					continue
				}
				if a.stop {
					close(stop)
				} else {
					ticking.Lock()
					clock = clock.Add(time.Hour)
					ticking.Unlock()
				}
			}
		}
		hosts[i] = h
		run := h.run(more)
		run.Epochs, run.Agree, run.SaveEvery = simulatedEpochs, true, time.Hour
		run.clock = func() time.Time {
			ticking.Lock()
			defer ticking.Unlock()
			return clock
		}
		all.Go(func() { at[i], errs[i] = run.Do(t.Context(), stop) })
	}
	all.Wait()
	return hosts, at, errs
}

// A request of one host is answered by all of them after the same step: that after the one which it travelled with, since
// it is launched everywhere when the request is read, or the epoch's last. Each host goes at its own speed.
func TestHostsActAfterTheSameStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		raise []ask
		// saves of every host; stopped after the last of them, unless it is the run's.
		saves   []string
		stopped bool
		run     Run
	}{
		{name: "nobody asks", saves: []string{"10 epoch", "20 epoch", "30 epoch"}},
		{name: "stop", raise: []ask{{2, 5, true}}, saves: []string{"6"}, stopped: true},
		{name: "stop with the first step", raise: []ask{{0, 1, true}}, saves: []string{"2"}, stopped: true},
		{name: "stop with the last step but one of an epoch", raise: []ask{{3, 19, true}}, saves: []string{"10 epoch", "20 epoch"}, stopped: true},
		{name: "stop with the last step of an epoch", raise: []ask{{3, 20, true}}, saves: []string{"10 epoch", "20 epoch"}, stopped: true},
		{name: "stop with the last step of all", raise: []ask{{3, 30, true}}, saves: []string{"10 epoch", "20 epoch", "30 epoch"}},
		{name: "two stop at different steps", raise: []ask{{1, 14, true}, {2, 13, true}}, saves: []string{"10 epoch", "14"}, stopped: true},
		{name: "all stop", raise: []ask{{0, 3, true}, {1, 3, true}, {2, 3, true}, {3, 3, true}}, saves: []string{"4"}, stopped: true},
		{name: "save", raise: []ask{{1, 4, false}}, saves: []string{"5", "10 epoch", "20 epoch", "30 epoch"}},
		{name: "two clocks", raise: []ask{{1, 4, false}, {3, 5, false}}, saves: []string{"5", "10 epoch", "20 epoch", "30 epoch"}},
		{name: "two saves", raise: []ask{{1, 4, false}, {0, 7, false}}, saves: []string{"5", "8", "10 epoch", "20 epoch", "30 epoch"}},
		{name: "a save that the epoch's end answers", raise: []ask{{0, 10, false}, {1, 9, false}}, saves: []string{"10 epoch", "20 epoch", "30 epoch"}},
		{name: "a save, then a stop", raise: []ask{{1, 4, false}, {0, 12, true}}, saves: []string{"5", "10 epoch", "13"}, stopped: true},
		{name: "a save and a stop", raise: []ask{{1, 4, false}, {0, 5, true}}, saves: []string{"5"}, stopped: true},
		{
			name: "every 4 steps", run: Run{SaveEverySteps: 4}, raise: []ask{{0, 6, true}},
			saves: []string{"4", "7"}, stopped: true,
		},
		{
			name: "a stop where a save is due", run: Run{SaveEverySteps: 4}, raise: []ask{{0, 7, true}},
			saves: []string{"4", "8"}, stopped: true,
		},
		{
			name: "every 4 steps to the end", run: Run{SaveEverySteps: 4},
			saves: []string{"4", "8", "10 epoch", "12", "16", "20 epoch", "24", "28", "30 epoch"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				hosts, at, errs := simulate(t, seed, c.raise, c.run)
				for i, h := range hosts {
					require.Equal(t, c.saves, h.saves, "host %d, seed %d", i, seed)
					at[i].Seconds = 0 // each has its own clock
					require.Equal(t, at[0], at[i])
					require.Equal(t, at[i].Step, len(h.steps), "every step is reported once")
					require.Equal(t, at[i].Step, h.launched, "no step is launched that is not saved")
					if c.stopped {
						require.ErrorIs(t, errs[i], ErrStopped)
					} else {
						require.NoError(t, errs[i])
					}
				}
			}
		})
	}
}

// Alone, a process acts after the steps that are launched: it waits for nobody's consent, nor for a batch.
func TestAloneStopsAfterTheLaunchedSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		stop  int // while the batch of this step is made
		from  Position
		saves []string
		err   error
	}{
		{name: "before the first step", stop: 1, err: ErrStopped},
		{name: "in an epoch", stop: 5, saves: []string{"4"}, err: ErrStopped},
		{name: "where the run went on from", stop: 5, from: Position{Step: 4, StepInEpoch: 4}, err: ErrStopped},
		{name: "one step after", stop: 6, from: Position{Step: 4, StepInEpoch: 4}, saves: []string{"5"}, err: ErrStopped},
		{name: "after an epoch", stop: 11, saves: []string{"10 epoch"}, err: ErrStopped},
	} {
		t.Run(c.name, func(t *testing.T) {
			stop := make(chan struct{})
			h := &host{fabric: newFabric(1), epochLen: 10}
			wait := make(chan struct{})
			h.before = func(step int) {
				if step == c.stop {
					close(stop)
					<-wait // the source is slow: only the cancelled context ends the wait
				}
			}
			run := h.run(Run{Epochs: 2, From: c.from})
			run.Source = slowSource{h, sync.OnceFunc(func() { close(wait) })}
			at, err := run.Do(t.Context(), stop)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.saves, h.saves)
			require.Equal(t, c.stop-1, at.Step)
			require.Equal(t, h.launched, at.Step)
		})
	}
}

// Alone, a request that comes during a save is answered by it.
func TestStopDuringASave(t *testing.T) {
	stop := make(chan struct{})
	h := &host{fabric: newFabric(1), epochLen: 10}
	hooks := h.hooks()
	save := hooks.Save
	hooks.Save = func(ctx context.Context, at Position, epochEnd bool) error {
		if at.Step == 4 {
			close(stop)
		}
		return save(ctx, at, epochEnd)
	}
	at, err := h.run(Run{Epochs: 2, SaveEverySteps: 4, Hooks: hooks}).Do(t.Context(), stop)
	require.Equal(t, ErrStopped, err)
	require.Equal(t, []string{"4"}, h.saves)
	require.Equal(t, 4, at.Step)
	require.Equal(t, 4, h.launched)
}

// slowSource ends a wait when the context of Batches is cancelled.
type slowSource struct {
	*host
	end func()
}

func (s slowSource) Batches(ctx context.Context, epoch, first int) iter.Seq2[engine.Batch, error] {
	context.AfterFunc(ctx, s.end)
	return s.host.Batches(ctx, epoch, first)
}

// Saves by time: after the step during which the time has passed, counted from the save before, of which kind ever.
func TestSaveEvery(t *testing.T) {
	clock := time.Unix(0, 0)
	h := &host{fabric: newFabric(1), epochLen: 10}
	h.before = func(int) { clock = clock.Add(time.Minute) } // a minute a step
	run := h.run(Run{Epochs: 2, SaveEvery: 4 * time.Minute})
	run.clock = func() time.Time { return clock }
	_, err := run.Do(t.Context(), nil)
	require.NoError(t, err)
	// The batch of step n is asked for in minute n, when step n-1 is launched; an epoch's end begins the count anew.
	require.Equal(t, []string{"3", "7", "10 epoch", "13", "17", "20 epoch"}, h.saves)
}

// A save that cannot be taken, and one that could not be written, end the run with its error, and no step is left under way.
func TestFailedSavesEndTheRun(t *testing.T) {
	full := errors.New("the disk is full")
	for _, c := range []struct {
		name  string
		hooks func(h *host, o *Hooks)
		text  string
		step  int
	}{
		{"between steps", func(h *host, o *Hooks) {
			o.Save = func(context.Context, Position, bool) error { return full }
		}, "save the checkpoint of step 4: the disk is full", 4},
		{"at an epoch's end", func(h *host, o *Hooks) {
			o.Save = func(_ context.Context, _ Position, end bool) error {
				if end {
					return full
				}
				return nil
			}
		}, "save the checkpoint of epoch 1: the disk is full", 10},
		{"written later", func(h *host, o *Hooks) {
			o.Failed = func() error {
				if len(h.steps) == 6 {
					return full
				}
				return nil
			}
		}, "after step 6: the disk is full", 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &host{fabric: newFabric(1), epochLen: 10}
			hooks := h.hooks()
			c.hooks(h, &hooks)
			at, err := h.run(Run{Epochs: 2, SaveEverySteps: 4, Hooks: hooks}).Do(t.Context(), nil)
			require.ErrorIs(t, err, full)
			require.NotErrorIs(t, err, ErrStopped)
			require.EqualError(t, err, c.text)
			require.Equal(t, c.step, len(h.steps))
			require.Contains(t, []int{c.step, c.step + 10}, at.Step+at.Epoch*10)
		})
	}
}

// A save that cannot be taken on the way out is an error of the run: it did not stop with everything saved.
func TestFailedSaveOnTheWayOut(t *testing.T) {
	full := errors.New("the disk is full")
	stop := make(chan struct{})
	h := &host{fabric: newFabric(1), epochLen: 10, before: func(step int) {
		if step == 4 {
			close(stop)
		}
	}}
	hooks := h.hooks()
	hooks.Save = func(context.Context, Position, bool) error { return full }
	_, err := h.run(Run{Epochs: 1, Hooks: hooks}).Do(t.Context(), stop)
	require.EqualError(t, err, "save before stopping at step 3: the disk is full")
	require.NotErrorIs(t, err, ErrStopped)
}
