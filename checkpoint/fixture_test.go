package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/safetensors"
	"weft/internal/fixture"
)

// The weights that transformers saved, written again by us from shards along
// the last dimension, give the same file, byte for byte.
func TestSameBytesAsTransformers(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(fixture.Dir(t), "*", safetensors.SingleFile))
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, theirs := range dirs {
		set, err := safetensors.OpenDir(filepath.Dir(theirs))
		require.NoError(t, err)
		model := &ModelFolder{}
		for _, i := range set.Tensors() {
			tt := Tensor{Name: i.Name, DType: i.DType, Shape: i.Shape}
			cells := [][2][]int{{make([]int, len(i.Shape)), i.Shape}}
			if d := len(i.Shape) - 1; d >= 0 && i.Shape[d] > 1 {
				left, right := append([]int{}, i.Shape...), append([]int{}, i.Shape...)
				left[d], right[d] = 1, i.Shape[d]-1
				at := make([]int, len(i.Shape))
				at[d] = 1
				cells = [][2][]int{{make([]int, len(i.Shape)), left}, {at, right}}
			}
			for _, c := range cells {
				tt.Shards = append(tt.Shards, Shard{Start: c[0], Size: c[1], Fetch: func(dst []byte) error {
					return set.ReadRegion(i.Name, c[0], c[1], dst)
				}})
			}
			model.Tensors = append(model.Tensors, tt)
		}
		out := filepath.Join(t.TempDir(), "model")
		require.NoError(t, WriteModelFolder(context.Background(), OS{}, out, model))
		want, err := os.ReadFile(theirs)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(out, safetensors.SingleFile))
		require.NoError(t, err)
		require.True(t, string(want) == string(got), "%s differs (%d and %d bytes)", theirs, len(want), len(got))
		require.NoError(t, set.Close())
	}
	t.Logf("%d files", len(dirs))
}
