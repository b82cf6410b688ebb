package stablehlo_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/internal/golden"
)

// callOf builds a program on l [8, 4] and r [8, 6] that calls a function with the given name and body.
func callOf(m sharding.Mesh, name string, dtype dtypes.DType, body func(l, r *graph.Node) *graph.Node) (*stablehlo.Program, error) {
	return stablehlo.Build(m, "reduced", func(g *graph.Graph) []*graph.Node {
		l, r := graph.Parameter(g, "l", shapes.Make(dtype, 8, 4)), graph.Parameter(g, "r", shapes.Make(dtype, 8, 6))
		f := graph.NewFunction(g, name, func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{body(graph.Parameter(g, "l", l.Shape()), graph.Parameter(g, "r", r.Shape()))}
		})
		return f.Call(l, r)
	})
}

func product(l, r *graph.Node) *graph.Node {
	b := graph.Dot(l, r).WithAccumulatorDType(dtypes.InvalidDType).WithOutputDType(dtypes.Float32)
	return b.General([]int{0}, nil, []int{0}, nil)
}

// The text of a product over a plane of four devices and two replicas of it, summed in bfloat16.
func TestGoldenReducedDot(t *testing.T) {
	m := mesh(t, sharding.Axis{Name: "replica", Size: 2}, sharding.Axis{Name: "y", Size: 2}, sharding.Axis{Name: "x", Size: 2})
	rows := sharding.Split(2, 0, "replica", "y", "x")
	d := stablehlo.ReducedDot{ContractLHS: []int{0}, ContractRHS: []int{0}, LHS: rows, RHS: rows, Out: sharding.Split(2, 0, "y", "x"), Reduce: dtypes.BFloat16}
	p, err := callOf(m, d.FunctionName("1"), dtypes.BFloat16, product)
	require.NoError(t, err)
	golden.Equal(t, "reduced_dot.mlir", p.Text)
}

func TestReducedDotNames(t *testing.T) {
	m := mesh(t, sharding.Axis{Name: "a;]#{b", Size: 2})
	rows := sharding.Split(2, 0, "a;]#{b")
	good := stablehlo.ReducedDot{ContractLHS: []int{0}, ContractRHS: []int{0}, LHS: rows, RHS: rows, Reduce: dtypes.Float32}
	p, err := callOf(m, good.FunctionName("any ]# text"), dtypes.BFloat16, product)
	require.NoError(t, err)
	require.Contains(t, string(p.Text), "sdy.manual_computation")
	for _, bad := range []string{
		"sdy.reduced_dot", "sdy.reduced_dot[0;0;;;;f32", "sdy.reduced_dot[0;0;;;f32]#x", "sdy.reduced_dot[0;x;;;;f32]#x",
		"sdy.reduced_dot[0;0;;;;f16]#x", "sdy.reduced_dot[0;0;{a;;;f32]#x", "sdy.reduced_dot[0;00;;;;f32]#x",
	} {
		_, err := callOf(m, bad, dtypes.BFloat16, product)
		require.ErrorContains(t, err, "rename the function", bad)
	}
}

// A body that is not the product is refused.
func TestReducedDotBody(t *testing.T) {
	m := mesh(t, sharding.Axis{Name: "fsdp", Size: 2})
	rows := sharding.Split(2, 0, "fsdp")
	d := stablehlo.ReducedDot{ContractLHS: []int{0}, ContractRHS: []int{0}, LHS: rows, RHS: rows, Reduce: dtypes.Float32}
	_, err := callOf(m, d.FunctionName("1"), dtypes.Float32, func(l, r *graph.Node) *graph.Node { return l })
	require.ErrorContains(t, err, "the function returns f32[8,4], the product is f32[4,6]")
}
