package gemma_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/engine/sharding"
	"weft/models/arch"
)

// The evaluation's program gives transformers' loss, on one device and with everything split over four, the same bits each time,
// and leaves the state to train on as it was.
func TestEvaluation(t *testing.T) {
	for name, devices := range map[string]int{"gemma3-tiny": 1, "gemma4-tiny": 4} {
		t.Run(name, func(t *testing.T) {
			rt := runtime(t, devices)
			g := loadGolden(t, name)
			p := open(t, rt, g.dir, "config.json", arch.Options{Scan: true, Remat: arch.RematFull})
			c := engine.StepConfig{Batch: g.dims()[0], SeqLen: g.dims()[1], BatchSpec: sharding.Split(2, 0, "fsdp")}
			eval, err := rt.NewEval(p.model, c)
			require.NoError(t, err)
			defer eval.Destroy()
			opt := fixtureAdamW(t)
			step, err := rt.NewStep(p.model, opt, c)
			require.NoError(t, err)
			defer step.Destroy()
			state, err := rt.NewState(p.model, opt, p.source.Read)
			require.NoError(t, err)
			defer state.Destroy()
			var losses []engine.Losses
			for range 2 {
				pending, err := eval.Run(state, g.batch())
				require.NoError(t, err)
				l, err := pending.Wait()
				require.NoError(t, err)
				losses = append(losses, l)
			}
			require.Equal(t, losses[0], losses[1])
			require.Equal(t, g.meta.Loss.Targets, losses[0].Targets)
			require.InDelta(t, g.meta.Loss.Value, losses[0].LossSum/float64(losses[0].Targets), tolLoss, "%s on %d devices", name, devices)
			pending, err := step.Run(state, g.batch())
			require.NoError(t, err)
			m, err := pending.Wait()
			require.NoError(t, err)
			require.InDelta(t, g.meta.Loss.Value, m.Loss(), tolLoss)
			pendingLosses, err := eval.Run(state, g.batch())
			require.NoError(t, err)
			after, err := pendingLosses.Wait()
			require.NoError(t, err)
			require.InDelta(t, g.meta.Losses[1], after.LossSum/float64(after.Targets), tolLosses, "after a step the evaluation sees its update")
		})
	}
}
