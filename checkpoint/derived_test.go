package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
)

// What a Part says must lie in the state.
func TestPartsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(s *Snapshot)
		want string
	}{
		"unknown":    {func(s *Snapshot) { s.Model.Tensors[0].Shards[0].Part.Tensor = "v" }, `"v", which the state does not have`},
		"shard":      {func(s *Snapshot) { s.Model.Tensors[0].Shards[0].Part.Shard = 2 }, "slice 2"},
		"offset":     {func(s *Snapshot) { s.Model.Tensors[1].Shards[0].Part.Offset = 9 }, "begins at 9"},
		"negative":   {func(s *Snapshot) { s.Model.Tensors[1].Shards[0].Part.Offset = -1 }, "begins at -1"},
		"dtype":      {func(s *Snapshot) { s.Model.Tensors[0].DType = safetensors.I32 }, "cannot be made"},
		"mixed":      {func(s *Snapshot) { s.Model.Tensors[0].Shards[0].Part = nil }, "all alike"},
		"both":       {func(s *Snapshot) { s.Model.Tensors[0].Shards[0].Fetch = func([]byte) error { return nil } }, "all alike"},
		"in a state": {func(s *Snapshot) { s.State[0].Shards[0].Part, s.State[0].Shards[0].Fetch = &Part{}, nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, a := openAsync(t, newMemFS(), AsyncOptions{})
			s := newDevice(1).snapshot(1, 1)
			c.edit(s)
			err := a.Save(t.Context(), s)
			require.ErrorIs(t, err, ErrSnapshot)
			require.ErrorContains(t, err, c.want)
			require.NoError(t, a.Close(t.Context()))
		})
	}
}

// Blocks go once over every element, in order, and are as large as allowed.
func TestBlocks(t *testing.T) {
	for _, shape := range [][]int{nil, {1}, {7}, {0}, {3, 0}, {4, 6}, {2, 3, 5}, {1, 1, 9}, {3, 1, 2, 2}} {
		for limit := 1; limit < 40; limit += 3 {
			next := int64(0)
			for start, size := range blocks(shape, limit) {
				n, err := region.Volume(size)
				require.NoError(t, err)
				require.LessOrEqual(t, n, int64(limit))
				runs := region.NewRuns(make([]int, len(shape)), shape, start, size, start, size, 1)
				src, _, count, ok := runs.Next()
				require.True(t, ok)
				require.Equal(t, []int64{next, n}, []int64{src, count}, "%v by %d: %v %v", shape, limit, start, size)
				next += n
			}
			n, _ := region.Volume(shape)
			require.Equal(t, n, next, "%v by %d", shape, limit)
		}
	}
}
