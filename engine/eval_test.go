package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
)

// The evaluation gives the loss that the step reports before its update, on any number of devices, and rows of padding add nothing
// to it. It comes from the compile cache the second time.
func TestEvalIsTheLossOfTheStep(t *testing.T) {
	cache := t.TempDir()
	var losses []float64
	for _, devices := range []int{1, 2, 4} {
		rt := openCPU(t, devices, cache, nil)
		model := toy{rt.Mesh(), 64, 32}
		c := StepConfig{Batch: toyRows, SeqLen: toySeq, BatchSpec: sharding.Split(2, 0, "fsdp")}
		step, err := rt.NewStep(model, sgd{}, c)
		require.NoError(t, err)
		defer step.Destroy()
		eval, err := rt.NewEval(model, c)
		require.NoError(t, err)
		defer eval.Destroy()
		require.False(t, eval.FromCache)
		again, err := rt.NewEval(model, c)
		require.NoError(t, err)
		defer again.Destroy()
		require.True(t, again.FromCache)
		state, err := rt.NewState(model, sgd{}, initToy)
		require.NoError(t, err)
		defer state.Destroy()
		batch := toyBatch(toyRows, toySeq, model.vocab, 0)
		padded := toyBatch(toyRows, toySeq, model.vocab, 0)
		for i := toyRows / 2 * toySeq; i < len(padded.Labels); i++ {
			padded.Labels[i], padded.Mask[i] = -100, 0
		}
		evaluate := func(e *Eval, b Batch) Losses {
			pending, err := e.Run(state, b)
			require.NoError(t, err)
			l, err := pending.Wait()
			require.NoError(t, err)
			return l
		}
		first := evaluate(eval, batch)
		require.Equal(t, first, evaluate(again, batch))
		half := evaluate(eval, padded)
		require.Equal(t, toyRows/2*(toySeq-1)-1, half.Targets)
		require.Less(t, half.LossSum, first.LossSum)
		pending, err := step.Run(state, batch)
		require.NoError(t, err)
		m, err := pending.Wait()
		require.NoError(t, err)
		require.Equal(t, m.Targets, first.Targets)
		require.InEpsilon(t, m.LossSum, first.LossSum, 1e-6)
		require.Less(t, evaluate(eval, batch).LossSum, first.LossSum, "it sees the update")
		losses = append(losses, first.LossSum)

		other, err := rt.NewState(toyPart{model}, sgd{}, initToy)
		require.NoError(t, err)
		defer other.Destroy()
		_, err = eval.Run(other, batch)
		require.ErrorContains(t, err, "another model")
	}
	for _, l := range losses {
		require.InEpsilon(t, losses[0], l, 1e-6)
	}
}

// toyPart lacks a parameter.
type toyPart struct{ toy }

func (m toyPart) Params() []Param { return m.toy.Params()[:2] }
