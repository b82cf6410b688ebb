package gemma_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine/nn"
	"weft/models/arch"
	"weft/models/gemma"
)

// The presets have as many parameters as the released models' text parts.
func TestPresets(t *testing.T) {
	want := map[string]int{
		"gemma-3-270m": 268_098_176, "gemma-3-1b": 999_885_952, "gemma-4-E2B": 4_628_569_379, "gemma-4-E4B": 7_463_013_418, "gemma-4-31B": 30_697_345_340,
	}
	for _, name := range gemma.Presets() {
		raw, ok := gemma.Preset(name)
		require.True(t, ok, name)
		cfg, err := gemma.ParseConfig(raw)
		if name == "gemma-4-26B-A4B" {
			require.ErrorContains(t, err, "mixture of experts")
			continue
		}
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
	require.Len(t, gemma.Presets(), len(want)+1)
	hub, ok := gemma.Preset("google/gemma-4-e2b-it")
	require.True(t, ok)
	plain, _ := gemma.Preset("gemma-4-E2B")
	require.Equal(t, plain, hub)
	_, ok = gemma.Preset("gemma-5")
	require.False(t, ok)
}
