package gemma_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/sharding"
	"weft/internal/fixture"
	"weft/internal/golden"
	"weft/models/arch"
	"weft/models/gemma"
	"weft/optim"
)

// The FSDP runs: 16 rows, so that 16 devices have one each.
const (
	fsdpRows, fsdpSeq = 16, 32
	fsdpSteps         = 20
)

// small is gemma4-tiny with random weights, split wherever a dimension divides.
func small(t *testing.T, m sharding.Mesh, o arch.Options) *gemma.Model {
	t.Helper()
	o.Policy, o.MinShardElements, o.ShardAxes = policyOn(m, dtypes.Float32), 1024, shardAxes(m)
	model, err := gemma.New(parse(t, filepath.Join(fixture.Dir(t, "gemma4-tiny"), "config.json")), o)
	require.NoError(t, err)
	return model
}

// shardAxes are those that split parameters: all but that of replicas.
func shardAxes(m sharding.Mesh) []string {
	return slices.DeleteFunc(m.AxisNames(), func(a string) bool { return a == "replica" })
}

func fsdpConfig(m sharding.Mesh) engine.StepConfig {
	return engine.StepConfig{Batch: fsdpRows, SeqLen: fsdpSeq, BatchSpec: sharding.Split(2, 0, m.AxisNames()...)}
}

// adamw has the learning rate of the published job. A larger one, with random weights, makes the test one of chaos: AdamW
// divides tiny gradients by their own size, so that their last bits are steps of the full length.
func adamw(t *testing.T) *optim.AdamW {
	t.Helper()
	opt, err := optim.NewAdamW(optim.Constant(2e-5), 0.9, 0.999, 1e-8, 0.01)
	require.NoError(t, err)
	return opt
}

// fsdpBatch is a batch of rows of different lengths, from the step's number.
func fsdpBatch(step int) engine.Batch {
	random := rand.New(rand.NewPCG(11, uint64(step)))
	b := engine.Batch{Rows: []engine.RowRange{{Start: 0, End: fsdpRows}}}
	for range fsdpRows {
		length := fsdpSeq/2 + random.IntN(fsdpSeq/2+1)
		for pos := range fsdpSeq {
			id, label, mask := int32(random.IntN(512)), int32(0), int32(1)
			label = id
			if pos >= length {
				id, label, mask = 0, -100, 0
			}
			b.InputIDs, b.Labels, b.Mask = append(b.InputIDs, id), append(b.Labels, label), append(b.Mask, mask)
		}
	}
	return b
}

// The same global batches give one device's losses on 2, 4 and 16, on a plane of 2×2 and on two replicas of 2, while
// parameters and moments are really split.
func TestFSDPEqualsOneDevice(t *testing.T) {
	run := func(m sharding.Mesh) (losses []float64, sizes engine.Sizes) {
		rt := runtimeOn(t, m)
		model, opt := small(t, m, arch.Options{Scan: true, Remat: arch.RematFull}), adamw(t)
		step, err := rt.NewStep(model, opt, fsdpConfig(m))
		require.NoError(t, err)
		defer step.Destroy()
		state, err := rt.NewState(model, opt, func(p engine.Param, r sharding.Region, dst []byte) error { return model.Init(p, r, 5, dst) })
		require.NoError(t, err)
		defer state.Destroy()
		for i := range fsdpSteps {
			pending, err := step.Run(state, fsdpBatch(i))
			require.NoError(t, err)
			m, err := pending.Wait()
			require.NoError(t, err)
			losses = append(losses, m.Loss())
		}
		return losses, state.LocalBytes()
	}
	one, whole := run(mesh(t, 1))
	require.Less(t, one[fsdpSteps-1], one[0], "it learns")
	plane := sharding.Mesh{Name: "mesh", Axes: []sharding.Axis{{Name: "fsdp_y", Size: 2}, {Name: "fsdp_x", Size: 2}}}
	replicas := sharding.Mesh{Name: "mesh", Axes: []sharding.Axis{{Name: "replica", Size: 2}, {Name: "fsdp", Size: 2}}}
	for _, m := range []sharding.Mesh{mesh(t, 2), mesh(t, 4), mesh(t, 16), plane, replicas} {
		t.Run(m.String(), func(t *testing.T) {
			n := m.Parts(shardAxes(m)...)
			losses, sizes := run(m)
			tolerance := 2e-6
			if m.AxisSize("replica") > 1 {
				tolerance = 4e-6 // six units in the last place of the sum, whose halves of the rows are added in another order
			}
			require.InDeltaSlice(t, one, losses, tolerance)
			t.Logf("bytes a device: parameters %d of %d, moments %d of %d", sizes.Params, whole.Params, sizes.Slots, whole.Slots)
			// What is left whole on every device is the tensors under 1,024 elements.
			require.Less(t, float64(sizes.Params), 1.15*float64(whole.Params)/float64(n)+32<<10)
			require.Less(t, float64(sizes.Slots), 1.15*float64(whole.Slots)/float64(n)+64<<10)
		})
	}
}

// The text of a small training step, two scanned layers: what a refactor must leave as it is.
func TestGoldenProgram(t *testing.T) {
	lower := func() string {
		cfg := parse(t, filepath.Join(fixture.Dir(t, "gemma3-tiny"), "config.json"))
		cfg.Layers = cfg.Layers[3:5]
		model, err := gemma.New(cfg, arch.Options{Policy: policy(t, 4, dtypes.Float32), MinShardElements: 1024, Scan: true, Remat: arch.RematFull})
		require.NoError(t, err)
		low, err := engine.LowerStep(mesh(t, 4), model, adamw(t), fsdpConfig(mesh(t, 4)))
		require.NoError(t, err)
		return string(low.Text)
	}
	text := lower()
	require.Equal(t, text, lower(), "the same program twice is the same text")
	golden.Equal(t, "train_step_fsdp4.mlir", []byte(text))
}

// What the compiled step communicates, each kind of collective with its count.
func TestGoldenCollectives(t *testing.T) {
	rt := runtime(t, 4)
	var report strings.Builder
	for _, v := range []variant{{scan: true, remat: arch.RematFull}, {scan: false, remat: arch.RematNone}} {
		step, err := rt.NewStep(small(t, mesh(t, 4), arch.Options{Scan: v.scan, Remat: v.remat}), adamw(t), fsdpConfig(mesh(t, 4)))
		require.NoError(t, err)
		format, program, err := step.OptimizedProgram()
		step.Destroy()
		require.NoError(t, err)
		module, err := hlo.Parse(format, program)
		require.NoError(t, err)
		list, err := module.Collectives()
		require.NoError(t, err)
		fmt.Fprintf(&report, "%s\n%s\n", v, hlo.FormatCollectives(list))
	}
	golden.Equal(t, "collectives_fsdp4.txt", []byte(report.String()))
}
