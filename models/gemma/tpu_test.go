package gemma_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
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
	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// wide is gemma4-tiny with six layers whose widths fill a TPU's tiles and divide over 16 chips.
func wide(t *testing.T) *gemma.Config {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(fixture.Dir(t, "gemma4-tiny"), "config.json"))
	require.NoError(t, err)
	config := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &config))
	for name, value := range map[string]any{
		"hidden_size": 512, "intermediate_size": 2048, "head_dim": 128, "hidden_size_per_layer_input": 256,
		"vocab_size": 4096, "vocab_size_per_layer_input": 4096, "max_position_embeddings": 1024, "sliding_window": 64,
		"num_hidden_layers": 6, "num_kv_shared_layers": 2,
		"layer_types":      []string{"sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"},
		"per_layer_config": map[string]any{"1": map[string]int{"head_dim": 256}, "3": map[string]int{"head_dim": 256}, "5": map[string]int{"head_dim": 256}},
	} {
		config[name] = value
	}
	raw, err = json.Marshal(config)
	require.NoError(t, err)
	cfg, err := gemma.ParseConfig(raw)
	require.NoError(t, err)
	return cfg
}

// What the training step communicates on a v6e slice, compiled with no chip present.
func TestGoldenTPUCollectives(t *testing.T) {
	pjrttest.TPU(t, tpuCollectives, "-update="+flag.Lookup("update").Value.String())
}

func tpuCollectives(t *testing.T, p *pjrt.Plugin) {
	top, err := p.NewTopology("v6e:4x4", nil)
	require.NoError(t, err)
	devices, err := top.Devices()
	require.NoError(t, err)
	mesh, err := engine.FSDPMesh(devices, len(devices))
	require.NoError(t, err)
	require.Equal(t, "fsdp_y=4, fsdp_x=4", mesh.String())
	var report strings.Builder
	for _, c := range []struct {
		variant
		gathers int
		reduce  dtypes.DType
		name    string // of reduce in the program
	}{
		{variant{scan: true, remat: arch.RematFull}, 2, dtypes.Float32, "f32"},
		{variant{scan: false, remat: arch.RematNone}, 2, dtypes.BFloat16, "bf16"},
		{variant{scan: true, remat: arch.RematFull}, 1, dtypes.Float32, "f32"},
		{variant{scan: true, remat: arch.RematNone}, 1, dtypes.Float32, "f32"},
		{variant{scan: false, remat: arch.RematFull}, 1, dtypes.Float32, "f32"},
		{variant{scan: false, remat: arch.RematNone}, 1, dtypes.Float32, "f32"},
	} {
		policy := policyOn(mesh, dtypes.BFloat16)
		policy.Reduce = c.reduce
		model, err := gemma.New(wide(t), arch.Options{Policy: policy, Scan: c.scan, Remat: c.remat, Gathers: c.gathers, MinShardElements: 1024})
		require.NoError(t, err)
		list := tpuStep(t, top, mesh, model)
		requireFSDP(t, mesh, model, traffic{compute: "bf16", reduce: c.name, gathers: c.gathers}, list)
		fmt.Fprintf(&report, "%s, weights gathered %d×, gradients reduced in %s\n%s\n", c.variant, c.gathers, c.reduce, hlo.FormatCollectives(list))
	}
	golden.Equal(t, "collectives_v6e_4x4.txt", []byte(report.String()))
	require.NoError(t, top.Destroy())
}

// The batch of the TPU steps: no weight has a dimension of its rows.
const tpuRows, tpuSeq = 32, 128

// tpuStep compiles the training step at the lowest effort and returns what it communicates.
func tpuStep(t *testing.T, top *pjrt.Topology, mesh sharding.Mesh, model *gemma.Model) []hlo.Collective {
	t.Helper()
	low, err := engine.LowerStep(mesh, model, adamw(t), engine.StepConfig{
		Batch: tpuRows, SeqLen: tpuSeq, BatchSpec: sharding.Split(2, 0, mesh.AxisNames()...),
	})
	require.NoError(t, err)
	a, err := engine.CompileAhead(top, "test", low, pjrt.EffortO0)
	require.NoError(t, err)
	format, program, err := a.Executable.OptimizedProgram()
	require.NoError(t, err)
	require.NoError(t, a.Destroy())
	module, err := hlo.Parse(format, program)
	require.NoError(t, err)
	list, err := module.Collectives()
	require.NoError(t, err)
	return list
}

// traffic is what a step sends of its weights and gradients: their dtypes, and how often each weight is gathered.
type traffic struct {
	compute, reduce string
	gathers         int
}

// requireFSDP wants every split weight of the layers gathered so many times a step in the compute dtype and its gradient
// reduce-scattered once, one axis of the mesh after the other; no weight's gradient may be all-reduced.
func requireFSDP(t *testing.T, mesh sharding.Mesh, model *gemma.Model, w traffic, list []hlo.Collective) {
	t.Helper()
	want, got, split := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, p := range model.Params() {
		if !p.Trainable || p.Spec.IsReplicated() || p.Name == "embed_tokens" {
			continue
		}
		dims, spec := p.Dims, p.Spec
		if len(p.Sources) > 1 {
			dims, spec = dims[1:], spec.DropLeading(1)
		}
		want[fmt.Sprint("all-gather ", w.compute, dims)] += w.gathers * len(p.Sources)
		part := slices.Clone(dims)
		for d := range dims {
			for _, a := range spec.Axes(d) {
				split[fmt.Sprint(part)] = true
				part[d] /= mesh.AxisSize(a)
				want[fmt.Sprint("reduce-scatter ", w.reduce, part)] += len(p.Sources)
			}
		}
	}
	for _, c := range list {
		for _, s := range append(slices.Clone(c.Shape.Tuple), c.Shape) {
			dims := s.Dims
			if len(dims) == 3 && dims[0] == 1 { // of a step of a loop
				dims = dims[1:]
			}
			if c.Opcode == hlo.AllReduce {
				require.False(t, split[fmt.Sprint(dims)], "all-reduce of %s, which is as large as a gradient", s)
			} else if len(dims) == 2 && s.DType != "s32" {
				got[fmt.Sprint(c.Opcode, " ", s.DType, dims)] += int(c.Count)
			}
		}
	}
	require.Equal(t, want, got)
}
