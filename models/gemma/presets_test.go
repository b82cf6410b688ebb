package gemma_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine/nn"
	"weft/models/arch"
	"weft/models/gemma"
)

// The presets have as many parameters as the released models' text parts. For Gemma 3 the technical report's table 1 has
// them without the embedding: 3,209 M of 4b, 10,759 M of 12b, 25,600 M of 27b.
func TestPresets(t *testing.T) {
	want := map[string]int{
		"gemma-3-270m": 268_098_176, "gemma-3-1b": 999_885_952,
		"gemma-3-4b": 3_209_010_688 + 262_208*2560, "gemma-3-12b": 10_759_155_456 + 262_208*3840, "gemma-3-27b": 25_599_716_096 + 262_208*5376,
		"gemma-4-E2B": 4_628_569_379, "gemma-4-E4B": 7_463_013_418, "gemma-4-31B": 30_697_345_340,
	}
	for _, name := range gemma.Presets() {
		raw, ok := gemma.Preset(name)
		require.True(t, ok, name)
		cfg, err := gemma.ParseConfig(raw)
		require.NoError(t, err, name)
		model, err := gemma.New(cfg, arch.Options{Policy: nn.Policy{Mesh: mesh(t, 1), DataAxes: []string{"fsdp"}, Compute: dtypes.BFloat16}})
		require.NoError(t, err, name)
		n := 0
		for _, p := range model.Params() {
			size := 1
			for _, d := range p.Dims {
				size *= d
			}
			n += size
		}
		require.Equal(t, want[name], n, name)
	}
	require.Len(t, gemma.Presets(), len(want))
	experts, ok := gemma.Preset("gemma-4-26B-A4B")
	require.True(t, ok)
	_, err := gemma.ParseConfig(experts)
	require.ErrorContains(t, err, "mixture of experts", "it is known, and refused with the reason")
	hub, ok := gemma.Preset("google/gemma-4-e2b-it")
	require.True(t, ok)
	plain, _ := gemma.Preset("gemma-4-E2B")
	require.Equal(t, plain, hub)
	_, ok = gemma.Preset("gemma-5")
	require.False(t, ok)
}
