package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/safetensors"
)

// A weight of the model that is NaN is named, since no other setting would help against it.
func TestModelWithNaN(t *testing.T) {
	const first, second = "model.norm.weight", "model.layers.1.mlp.up_proj.weight" // in the order of the parameters
	model := tinyModel(t, "gemma3-tiny", func(dir string) {
		file := filepath.Join(dir, safetensors.SingleFile)
		f, err := safetensors.Open(file)
		require.NoError(t, err)
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for name, at := range map[string]int{first: 8, second: 0} {
			info, ok := f.Lookup(name)
			require.True(t, ok, name)
			require.Equal(t, safetensors.F32, info.DType)
			place := bytes.Index(raw, f.Bytes(name))
			require.Positive(t, place)
			copy(raw[place+4*at:], "\x00\x00\xc0\x7f")
		}
		require.NoError(t, f.Close())
		require.NoError(t, os.WriteFile(file, raw, 0o644))
	})
	o := weft(t, tinyArgs(t, model, filepath.Join(t.TempDir(), "out"), differentRows(8))...)
	require.Equal(t, 1, o.code, o.err)
	require.Contains(t, o.err, "weft: step 1 (epoch 1): the loss is NaN and the gradient norm NaN, since the weights are: tensor "+
		first+" of --model-id "+model+" holds 1 value that is NaN or infinite as float32, and 1 other tensor too: get the model again")
	require.NotContains(t, o.err, "--learning-rate")
}
