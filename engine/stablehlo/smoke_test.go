package stablehlo_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func TestSmoke(t *testing.T) {
	c := cpuClient(t)
	fn := func(g *graph.Graph, xs []*graph.Node) []*graph.Node {
		x := xs[0]
		y := graph.Mul(graph.Erf(x), graph.Softmax(x))
		return append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(y), x)...)
	}
	in := fromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	got := runXLA(t, c, fn, in)
	want := runGo(t, fn, in)
	for i := range want {
		require.InDeltaSlice(t, want[i].tensor().Value().([][]float32)[0], got[i].tensor().Value().([][]float32)[0], 1e-5)
	}
}
