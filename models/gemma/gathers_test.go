package gemma_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/sharding"
	"weft/models/arch"
	"weft/models/gemma"
)

// gatherSteps are enough for every weight to have moved by what the moments remember.
const gatherSteps = 4

// A step that gathers each weight once gives the bits of one that gathers it twice, however the layers are run, and
// sends half of the weights.
func TestGathers(t *testing.T) {
	for _, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			rt := runtime(t, 4)
			two := trainGathering(t, rt, arch.Options{Scan: v.scan, Remat: v.remat}, 2)
			one := trainGathering(t, rt, arch.Options{Scan: v.scan, Remat: v.remat, Gathers: 1}, 1)
			require.Equal(t, two, one)
		})
	}
}

// On one device nothing is gathered: the program is the same.
func TestGathersOnOneDevice(t *testing.T) {
	lower := func(gathers int) string {
		m := mesh(t, 1)
		low, err := engine.LowerStep(m, small(t, m, arch.Options{Scan: true, Remat: arch.RematFull, Gathers: gathers}), adamw(t), fsdpConfig(m))
		require.NoError(t, err)
		return string(low.Text)
	}
	require.Equal(t, lower(2), lower(1))
}

func TestGathersRefused(t *testing.T) {
	_, err := gemma.New(handCount.config(t), arch.Options{Policy: policy(t, 4, dtypes.Float32), Gathers: 3})
	require.ErrorContains(t, err, "3 gathers of a weight in a step: use 1 or 2")
}

// trained is what a few steps of the small model give.
type trained struct {
	losses, norms []float64
	final         map[string][]float32
}

// trainGathering trains the small model, whose step must gather each weight so many times.
func trainGathering(t *testing.T, rt *engine.Runtime, o arch.Options, gathers int) trained {
	t.Helper()
	m := rt.Mesh()
	model, opt := small(t, m, o), adamw(t)
	step, err := rt.NewStep(model, opt, fsdpConfig(m))
	require.NoError(t, err)
	defer step.Destroy()
	requireFSDP(t, m, model, traffic{compute: "f32", reduce: "f32", gathers: gathers}, collectives(t, step))
	state, err := rt.NewState(model, opt, func(p engine.Param, r sharding.Region, dst []byte) error { return model.Init(p, r, 5, dst) })
	require.NoError(t, err)
	defer state.Destroy()
	run := trained{final: map[string][]float32{}}
	for i := range gatherSteps {
		pending, err := step.Run(state, fsdpBatch(i))
		require.NoError(t, err)
		metrics, err := pending.Wait()
		require.NoError(t, err)
		run.losses, run.norms = append(run.losses, metrics.Loss()), append(run.norms, metrics.GradNorm)
	}
	for _, e := range state.Entries() {
		if e.Slot == "" && e.Param.Trainable {
			unstack(e.Param, floats(t, e.Array), run.final)
		}
	}
	require.Greater(t, len(run.final), 20)
	return run
}

// collectives are those of the compiled step.
func collectives(t *testing.T, step *engine.Step) []hlo.Collective {
	t.Helper()
	format, program, err := step.OptimizedProgram()
	require.NoError(t, err)
	module, err := hlo.Parse(format, program)
	require.NoError(t, err)
	list, err := module.Collectives()
	require.NoError(t, err)
	return list
}
