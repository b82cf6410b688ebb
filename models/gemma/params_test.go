package gemma_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/engine"
	"weft/engine/nn"
	"weft/engine/sharding"
	"weft/internal/fixture"
	"weft/internal/property"
	"weft/models/arch"
	"weft/models/gemma"
)

// tiny declares gemma4-tiny for four devices.
func tiny(t *testing.T, o arch.Options) (*gemma.Model, error) {
	t.Helper()
	if o.Policy.Compute == dtypes.InvalidDType {
		o.Policy = policy(t, 4, dtypes.Float32)
	}
	return gemma.New(parse(t, filepath.Join(fixture.Dir(t, "gemma4-tiny"), "config.json")), o)
}

func paramsByName(m *gemma.Model) map[string]engine.Param {
	out := map[string]engine.Param{}
	for _, p := range m.Params() {
		out[p.Name] = p
	}
	return out
}

// The rules of sharding.go: words, columns of the per-layer table, the largest dimension whose parts are whole tiles, small tensors whole.
func TestSharding(t *testing.T) {
	m, err := tiny(t, arch.Options{Scan: true, MinShardElements: 1024})
	require.NoError(t, err)
	params := paramsByName(m)
	for name, want := range map[string]string{
		"embed_tokens":                      "[fsdp, -]",
		"embed_tokens_per_layer":            "[-, fsdp]",
		"per_layer_model_projection":        "[fsdp, -]",
		"norm":                              "replicated",
		"layers.2-3:1.mlp.gate_proj":        "[-, fsdp, -]",
		"layers.4.self_attn.o_proj":         "[fsdp, -]",
		"layers.2-3:1.per_layer_projection": "[-, fsdp, -]",
		"layers.2-3:1.layer_scalar":         "replicated",
	} {
		require.Contains(t, params, name)
		require.Equal(t, want, params[name].Spec.String(), name)
	}
	m, err = tiny(t, arch.Options{})
	require.NoError(t, err)
	for _, p := range m.Params() {
		require.Equal(t, p.Name == "embed_tokens_per_layer", !p.Spec.IsReplicated(), "%s: only a tensor of 65,536 elements is split by default", p.Name)
	}
}

// A stack lists its layers in order; without the scan every layer is its own.
func TestStacks(t *testing.T) {
	m, err := tiny(t, arch.Options{Scan: true})
	require.NoError(t, err)
	p := paramsByName(m)["layers.2-3:1.mlp.gate_proj"]
	require.Equal(t, []int{2, 64, 64}, p.Dims)
	require.Equal(t, []string{"model.layers.2.mlp.gate_proj.weight", "model.layers.3.mlp.gate_proj.weight"}, p.Sources)
	flat, err := tiny(t, arch.Options{})
	require.NoError(t, err)
	require.Equal(t, sources(flat), sources(m), "both ways have the same tensors")
	require.Contains(t, paramsByName(flat), "layers.3.mlp.gate_proj")
}

func sources(m *gemma.Model) []string {
	var all []string
	for _, p := range m.Params() {
		all = append(all, p.Sources...)
	}
	slices.Sort(all)
	return all
}

func TestFreeze(t *testing.T) {
	for _, c := range []struct {
		name   string
		freeze []string
		frozen []string // of the sources, beside the layer scalars
	}{
		{"by default the per-layer table", nil, []string{"model.embed_tokens_per_layer.weight"}},
		{"an empty list nothing", []string{}, nil},
		{"a short name", []string{"norm"}, []string{"model.norm.weight"}},
		{"a full name", []string{"model.norm.weight"}, []string{"model.norm.weight"}},
		{"a pattern over layers", []string{"layers.?.self_attn.k_norm"}, []string{
			"model.layers.0.self_attn.k_norm.weight", "model.layers.1.self_attn.k_norm.weight", "model.layers.2.self_attn.k_norm.weight",
			"model.layers.3.self_attn.k_norm.weight", "model.layers.4.self_attn.k_norm.weight"}},
		{"one layer of a repeated group", []string{"layers.3.mlp.*"}, []string{
			"model.layers.3.mlp.down_proj.weight", "model.layers.3.mlp.gate_proj.weight", "model.layers.3.mlp.up_proj.weight"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := tiny(t, arch.Options{Scan: true, Freeze: c.freeze, FrozenDType: dtypes.BFloat16})
			require.NoError(t, err)
			var frozen []string
			for _, p := range m.Params() {
				scalar := strings.HasSuffix(p.Name, ".layer_scalar")
				require.False(t, scalar && p.Trainable, "layer scalars are buffers")
				if !p.Trainable && !scalar {
					frozen = append(frozen, p.Sources...)
					require.Equal(t, dtypes.BFloat16, p.DType, p.Name)
				} else {
					require.Equal(t, dtypes.Float32, p.DType, p.Name)
				}
			}
			slices.Sort(frozen)
			require.Equal(t, c.frozen, frozen)
		})
	}
}

func TestNewNamesTheOption(t *testing.T) {
	for _, c := range []struct {
		o    arch.Options
		want string
	}{
		{arch.Options{Policy: nn.Policy{Compute: dtypes.Float16}}, "compute dtype Float16: use Float32 or BFloat16"},
		{arch.Options{Remat: "some"}, `remat "some": use "none" or "full"`},
		{arch.Options{Freeze: []string{"layers.9.*"}}, `freeze pattern "layers.9.*" matches no tensor`},
		{arch.Options{Freeze: []string{"["}}, `freeze pattern "["`},
	} {
		_, err := tiny(t, c.o)
		require.ErrorContains(t, err, c.want)
	}
}

// initialised returns the values of a region, by seed.
func initialised(t require.TestingT, m *gemma.Model, p engine.Param, r sharding.Region, seed uint64) []float32 {
	raw := make([]byte, r.Elements()*4)
	require.NoError(t, m.Init(p, r, seed, raw))
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

func whole(dims []int) sharding.Region {
	return sharding.Region{Start: make([]int, len(dims)), Size: dims}
}

// A value depends on the seed, the tensor and the position only: any region of any stacking has it.
func TestInitDependsOnPositionOnly(t *testing.T) {
	stacked, err := tiny(t, arch.Options{Scan: true})
	require.NoError(t, err)
	flat, err := tiny(t, arch.Options{})
	require.NoError(t, err)
	want := map[string][]float32{}
	for _, p := range flat.Params() {
		want[p.Sources[0]] = initialised(t, flat, p, whole(p.Dims), 7)
	}
	property.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(stacked.Params()).Draw(rt, "parameter")
		var r sharding.Region
		for _, d := range p.Dims {
			start := rapid.IntRange(0, d-1).Draw(rt, "start")
			r.Start, r.Size = append(r.Start, start), append(r.Size, rapid.IntRange(1, min(4, d-start)).Draw(rt, "size"))
		}
		got := initialised(rt, stacked, p, r, 7)
		index := make([]int, len(r.Size))
		for _, v := range got {
			source, dims, first := p.Sources[0], p.Dims, 0
			if len(p.Sources) > 1 {
				source, dims, first = p.Sources[r.Start[0]+index[0]], p.Dims[1:], 1
			}
			at := 0
			for d := range dims {
				at = at*dims[d] + r.Start[first+d] + index[first+d]
			}
			require.Equal(rt, want[source][at], v, "%s at %d", source, at)
			for d := len(index) - 1; d >= 0; d-- {
				if index[d]++; index[d] < r.Size[d] {
					break
				}
				index[d] = 0
			}
		}
	})
}

// Matrices are normal with the configured deviation, the padding row is zero, norms and scalars are at rest.
func TestInitIsTransformers(t *testing.T) {
	m, err := tiny(t, arch.Options{})
	require.NoError(t, err)
	params := paramsByName(m)
	table := params["embed_tokens"]
	values := initialised(t, m, table, whole(table.Dims), 1)
	require.Equal(t, make([]float32, 64), values[:64], "the padding row")
	mean, square := 0.0, 0.0
	for _, v := range values[64:] {
		mean += float64(v)
		square += float64(v) * float64(v)
	}
	n := float64(len(values) - 64)
	require.InDelta(t, 0, mean/n, 5*0.02/math.Sqrt(n))
	require.InDelta(t, 0.02, math.Sqrt(square/n), 0.0004)
	require.NotEqual(t, values, initialised(t, m, table, whole(table.Dims), 2), "another seed")
	require.NotEqual(t, initialised(t, m, params["layers.0.mlp.up_proj"], whole([]int{64, 64}), 1), initialised(t, m, params["layers.1.mlp.up_proj"], whole([]int{64, 64}), 1), "another tensor")
	require.Equal(t, []float32{1}, initialised(t, m, params["layers.0.layer_scalar"], whole([]int{1}), 1))
	require.Equal(t, float32(1), initialised(t, m, params["norm"], whole([]int{64}), 1)[3])

	three, err := gemma.New(parse(t, filepath.Join(fixture.Dir(t, "gemma3-tiny"), "config.json")), arch.Options{Policy: policy(t, 1, dtypes.Float32)})
	require.NoError(t, err)
	require.Equal(t, float32(0), initialised(t, three, paramsByName(three)["norm"], whole([]int{64}), 1)[3], "Gemma 3 scales by 1+w")

	require.ErrorContains(t, m.Init(table, whole(table.Dims), 1, make([]byte, 8)), "initialise embed_tokens: 8 bytes")
}
