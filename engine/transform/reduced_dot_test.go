package transform_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"weft/engine/hlo"
	"weft/engine/internal/enginetest"
	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/engine/transform"
	"weft/pjrt"
)

// plane is a mesh of 2×2 devices and a third axis that splits no batch.
func plane(third int) sharding.Mesh {
	return sharding.Mesh{Name: "mesh", Axes: []sharding.Axis{{Name: "y", Size: 2}, {Name: "x", Size: 2}, {Name: "model", Size: third}}}
}

// reducedDotCase is a product dy [B, T, O] · x [B, T, I] over B and T.
type reducedDotCase struct {
	mesh sharding.Mesh
	axes []string
	spec sharding.Spec
	want string // the collectives, as the CPU plugin has them
}

func reducedDotCases() map[string]reducedDotCase {
	line := sharding.Mesh{Name: "mesh", Axes: []sharding.Axis{{Name: "fsdp", Size: 4}}}
	return map[string]reducedDotCase{
		"line, first dimension": {line, []string{"fsdp"}, sharding.Split(2, 0, "fsdp"), "1 × reduce-scatter f32[4,8]\n"},
		"line, last dimension":  {line, []string{"fsdp"}, sharding.Split(2, 1, "fsdp"), "1 × reduce-scatter f32[16,2]\n"},
		"line, replicated":      {line, []string{"fsdp"}, nil, "1 × all-reduce f32[16,8]\n"},
		"plane":                 {plane(1), []string{"y", "x"}, sharding.Split(2, 0, "y", "x"), "1 × reduce-scatter f32[4,8]\n1 × reduce-scatter f32[8,8]\n"},
		"plane, x major":        {plane(1), []string{"y", "x"}, sharding.Split(2, 1, "x", "y"), "1 × reduce-scatter f32[16,2]\n1 × reduce-scatter f32[16,4]\n"},
		"plane, two dimensions": {plane(1), []string{"y", "x"}, sharding.Spec{{"x"}, {"y"}}, "1 × reduce-scatter f32[8,4]\n1 × reduce-scatter f32[8,8]\n"},
		"plane, split over one": {plane(1), []string{"y", "x"}, sharding.Split(2, 0, "x"), "1 × all-reduce f32[8,8]\n1 × reduce-scatter f32[8,8]\n"},
		"plane, replicated":     {plane(1), []string{"y", "x"}, nil, "1 × all-reduce f32[16,8]\n"},
		"plane in a cube":       {plane(2), []string{"y", "x"}, sharding.Split(2, 0, "y", "x"), "1 × reduce-scatter f32[4,8]\n1 × reduce-scatter f32[8,8]\n"},
		"one axis of a plane":   {plane(1), []string{"x"}, sharding.Split(2, 0, "x"), "1 × reduce-scatter f32[8,8]\n"},
	}
}

// build multiplies in compute and asks for the product, and for its gradients.
func (c reducedDotCase) build(compute dtypes.DType, sharded bool) enginetest.BuildFunc {
	return func(g *graph.Graph, xs []*node) []*node {
		if b := stablehlo.Of(g); b != nil && sharded {
			b.ShardParameter("x0", sharding.Split(3, 0, c.axes...))
			b.ShardParameter("x1", sharding.Split(3, 0, c.axes...))
			b.ShardOutputs([]sharding.Spec{c.spec, sharding.Split(3, 0, c.axes...), sharding.Split(3, 0, c.axes...)})
		}
		dw := transform.ReduceScatterDot(graph.ConvertDType(xs[0], compute), graph.ConvertDType(xs[1], compute),
			transform.ReducedDot{ContractLHS: []int{0, 1}, ContractRHS: []int{0, 1}, Axes: c.axes, Spec: c.spec})
		return append(nodes(dw), graph.Gradient(total(graph.Sin(dw)), xs[0], xs[1])...)
	}
}

func TestReduceScatterDot(t *testing.T) {
	client := enginetest.Client(t)
	inputs := []*tensors.Tensor{enginetest.Random(1, 8, 3, 16), enginetest.Random(2, 8, 3, 8)}
	for name, c := range reducedDotCases() {
		t.Run(name, func(t *testing.T) {
			want := enginetest.RunGo(t, c.build(dtypes.Float32, false), inputs...)
			enginetest.Close(t, want, enginetest.Run(t, client, oneDevice, c.build(dtypes.Float32, false), inputs...), 1e-5)
			p := enginetest.Lower(t, c.mesh, c.build(dtypes.Float32, true), inputs...)
			exe := enginetest.Compile(t, client, p)
			defer func() { require.NoError(t, exe.Destroy()) }()
			enginetest.Close(t, want, enginetest.Execute(t, client, p, exe, inputs...), 1e-5)
			value := func(g *graph.Graph, xs []*node) []*node {
				out := c.build(dtypes.Float32, true)(g, xs)[:1]
				stablehlo.Of(g).ShardOutputs([]sharding.Spec{c.spec})
				return out
			}
			require.Equal(t, c.want, collectives(t, enginetest.Compile(t, client, enginetest.Lower(t, c.mesh, value, inputs...))))
			half := enginetest.Run(t, client, c.mesh, c.build(dtypes.BFloat16, true), inputs...)
			enginetest.Close(t, want, half, 0.05)
		})
	}
}

// collectives lists what an executable communicates, and destroys it.
func collectives(t *testing.T, exe *pjrt.LoadedExecutable) string {
	t.Helper()
	e, err := exe.Executable()
	require.NoError(t, err)
	format, code, err := e.OptimizedProgram()
	require.NoError(t, err)
	m, err := hlo.Parse(format, code)
	require.NoError(t, err)
	list, err := m.Collectives()
	require.NoError(t, err)
	require.NoError(t, e.Destroy())
	require.NoError(t, exe.Destroy())
	return hlo.FormatCollectives(list)
}
