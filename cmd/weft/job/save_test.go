package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/engine"
	"weft/engine/sharding"
	"weft/models/hf"
)

// Tensors stacked in one parameter follow each other, so that the host holds one parameter's shards at a time; the rest
// keeps its order.
func TestTensorsOfAParameterAreWrittenTogether(t *testing.T) {
	up, down := &engine.Param{Name: "up"}, &engine.Param{Name: "down"}
	tensors := []hf.Tensor{
		{Name: "embed", Param: &engine.Param{Name: "embed"}}, {Name: "0.up", Param: up}, {Name: "0.down", Param: down}, {Name: "vision"},
		{Name: "1.up", Param: up}, {Name: "1.down", Param: down}, {Name: "norm", Param: &engine.Param{Name: "norm"}},
	}
	var got []string
	for _, s := range byParam(tensors) {
		got = append(got, s.Name)
	}
	require.Equal(t, []string{"embed", "0.up", "1.up", "0.down", "1.down", "vision", "norm"}, got)
}

// Blocks of rows cover a tensor once, in order, and are as large as allowed, but of one row at least.
func TestRowBlocks(t *testing.T) {
	for _, c := range []struct {
		shape []int
		limit int
		rows  []int
	}{
		{nil, 1, nil}, {[]int{5}, 100, []int{5}}, {[]int{5}, 4, []int{1, 1, 1, 1, 1}}, {[]int{5}, 8, []int{2, 2, 1}},
		{[]int{5, 3}, 24, []int{2, 2, 1}}, {[]int{5, 3}, 1, []int{1, 1, 1, 1, 1}}, {[]int{4, 3}, 24, []int{2, 2}}, {[]int{0, 3}, 1, []int{0}},
	} {
		var rows []int
		next := 0
		for _, r := range rowBlocks(c.shape, 4, c.limit) {
			if len(c.shape) == 0 {
				require.Empty(t, r.Size)
				continue
			}
			require.Equal(t, next, r.Start[0])
			require.Equal(t, c.shape[1:], r.Size[1:])
			next += r.Size[0]
			rows = append(rows, r.Size[0])
		}
		require.Equal(t, c.rows, rows, "%v by %d", c.shape, c.limit)
	}
}

// A tensor of a stack is a run of each shard that holds its index.
func TestPieceOf(t *testing.T) {
	stack := &engine.Param{Name: "stack", Sources: []string{"0.up", "1.up", "2.up"}, Dims: []int{3, 4, 6}}
	shard := sharding.Region{Start: []int{1, 0, 3}, Size: []int{2, 4, 3}}
	for index, want := range []int{-1, 0, 12} {
		piece, offset, ok := pieceOf(hf.Tensor{Param: stack, Index: index}, shard)
		require.Equal(t, want >= 0, ok)
		if ok {
			require.Equal(t, want, offset)
			require.Equal(t, sharding.Region{Start: []int{0, 3}, Size: []int{4, 3}}, piece)
		}
	}
	single := &engine.Param{Name: "one", Sources: []string{"one"}, Dims: []int{4, 6}}
	whole := sharding.Region{Start: []int{0, 3}, Size: []int{4, 3}}
	piece, offset, ok := pieceOf(hf.Tensor{Param: single}, whole)
	require.True(t, ok)
	require.Zero(t, offset)
	require.Equal(t, whole, piece)
}

// The line of a save has its figures, and says so when it took more than one try.
func TestSaveLine(t *testing.T) {
	s := checkpoint.AsyncStats{StateBytes: 2 << 30, LimitBytes: 2 << 30, PeakBytes: 1 << 30, WrittenBytes: 3 << 30, Stall: 1500 * time.Millisecond, Write: 3 * time.Second, Tries: 1}
	require.Equal(t, "save      3.0 GiB | training waited 1.50s | written in 3.00s, 1.0 GiB/s | host memory 1.0 GiB of 2.0 GiB", saveLine(s))
	s.Tries = 2
	require.Contains(t, saveLine(s), " | at try 2")
}
