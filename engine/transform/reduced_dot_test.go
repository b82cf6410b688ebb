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

// reducedDotCase is the product dy [8, 3, 16] · x [8, 3, 8] over the first two dimensions.
type reducedDotCase struct {
	mesh sharding.Mesh
	// dy and x split the operands: the rows in the same way.
	dy, x, out sharding.Spec
	want       string // the collectives, as the CPU plugin has them
}

func reducedDotCases() map[string]reducedDotCase {
	line := sharding.Mesh{Name: "mesh", Axes: []sharding.Axis{{Name: "fsdp", Size: 4}}}
	split := func(dim int, axes ...string) sharding.Spec { return sharding.Split(2, dim, axes...) }
	rows := func(axes ...string) sharding.Spec { return sharding.Split(3, 0, axes...) }
	alike := func(m sharding.Mesh, rows, out sharding.Spec, want string) reducedDotCase {
		return reducedDotCase{m, rows, rows, out, want}
	}
	return map[string]reducedDotCase{
		"line, first dimension": alike(line, rows("fsdp"), split(0, "fsdp"), "1 × reduce-scatter f32[4,8]\n"),
		"line, last dimension":  alike(line, rows("fsdp"), split(1, "fsdp"), "1 × reduce-scatter f32[16,2]\n"),
		"line, replicated":      alike(line, rows("fsdp"), nil, "1 × all-reduce f32[16,8]\n"),
		"line, rows whole":      alike(line, nil, nil, ""),
		"plane":                 alike(plane(1), rows("y", "x"), split(0, "y", "x"), "1 × reduce-scatter f32[4,8]\n1 × reduce-scatter f32[8,8]\n"),
		"plane, x major":        alike(plane(1), rows("y", "x"), split(1, "x", "y"), "1 × reduce-scatter f32[16,2]\n1 × reduce-scatter f32[16,4]\n"),
		"plane, two dimensions": alike(plane(1), rows("y", "x"), sharding.Spec{{"x"}, {"y"}}, "1 × reduce-scatter f32[8,4]\n1 × reduce-scatter f32[8,8]\n"),
		"plane, split over one": alike(plane(1), rows("y", "x"), split(0, "x"), "1 × all-reduce f32[8,8]\n1 × reduce-scatter f32[8,8]\n"),
		"plane, replicated":     alike(plane(1), rows("y", "x"), nil, "1 × all-reduce f32[16,8]\n"),
		"plane in a cube":       alike(plane(2), rows("y", "x"), split(0, "y", "x"), "1 × reduce-scatter f32[4,8]\n1 × reduce-scatter f32[8,8]\n"),
		"one axis of a plane":   alike(plane(1), rows("x"), split(0, "x"), "1 × reduce-scatter f32[8,8]\n"),
		"words stay, rows sum":  {plane(1), sharding.Spec{{"y"}, nil, {"x"}}, rows("y"), split(0, "x"), "1 × all-reduce f32[8,8]\n"},
		"words split again":     {plane(1), sharding.Spec{{"y"}, nil, {"x"}}, rows("y"), split(0, "x", "y"), "1 × reduce-scatter f32[4,8]\n"},
	}
}

// build multiplies in compute and gives the product and its gradients.
func (c reducedDotCase) build(compute dtypes.DType, sharded bool) enginetest.BuildFunc {
	return func(g *graph.Graph, xs []*node) []*node {
		if b := stablehlo.Of(g); b != nil && sharded {
			b.ShardParameter("x0", c.dy)
			b.ShardParameter("x1", c.x)
			b.ShardOutputs([]sharding.Spec{c.out, c.dy, c.x})
		}
		dw := transform.ReduceScatterDot(graph.ConvertDType(xs[0], compute), graph.ConvertDType(xs[1], compute),
			transform.ReducedDot{ContractLHS: []int{0, 1}, ContractRHS: []int{0, 1}, LHS: c.dy, RHS: c.x, Out: c.out})
		return append(nodes(dw), graph.Gradient(total(graph.Sin(dw)), xs[0], xs[1])...)
	}
}

func TestReduceScatterDot(t *testing.T) {
	client := enginetest.Client(t)
	inputs := []*tensors.Tensor{enginetest.Random(1, 8, 3, 16), enginetest.Random(2, 8, 3, 8)}
	plain := reducedDotCase{mesh: oneDevice}
	want := enginetest.RunGo(t, plain.build(dtypes.Float32, false), inputs...)
	enginetest.Close(t, want, enginetest.Run(t, client, oneDevice, plain.build(dtypes.Float32, false), inputs...), 1e-5)
	for name, c := range reducedDotCases() {
		t.Run(name, func(t *testing.T) {
			enginetest.Close(t, want, enginetest.Run(t, client, c.mesh, c.build(dtypes.Float32, true), inputs...), 1e-5)
			value := func(g *graph.Graph, xs []*node) []*node {
				out := c.build(dtypes.BFloat16, true)(g, xs)[:1]
				stablehlo.Of(g).ShardOutputs([]sharding.Spec{c.out})
				return out
			}
			p := enginetest.Lower(t, c.mesh, value, inputs...)
			exe := enginetest.Compile(t, client, p)
			enginetest.Close(t, want[:1], enginetest.Execute(t, client, p, exe, inputs...), 0.03)
			require.Equal(t, c.want, collectives(t, exe))
		})
	}
}

// In a loop, the layers' gradients are reduced at each step, in the dtype asked for.
func TestReduceScatterDotInScan(t *testing.T) {
	client := enginetest.Client(t)
	inputs := []*tensors.Tensor{enginetest.Random(1, 8, 16), enginetest.Random(2, 5, 16, 16)}
	rows, weights := sharding.Split(2, 0, "y", "x"), sharding.Split(3, 1, "y", "x")
	build := func(reduce dtypes.DType, sharded bool) enginetest.BuildFunc {
		return func(g *graph.Graph, xs []*node) []*node {
			d := transform.ReducedDot{ContractLHS: []int{0}, ContractRHS: []int{0}, Reduce: reduce}
			var o transform.ScanOptions
			if sharded {
				b := stablehlo.Of(g)
				b.ShardParameter("x0", rows)
				b.ShardParameter("x1", weights)
				b.ShardOutputs([]sharding.Spec{weights})
				d.LHS, d.RHS, d.Out, o.XsSpecs = rows, rows, weights.DropLeading(1), []sharding.Spec{weights}
			}
			layer := func(in []*node) []*node { return nodes(graph.Tanh(dot(in[0], graph.Transpose(in[1], 0, 1)))) }
			backward := func(in, out, ct []*node) []*node {
				dz := graph.Mul(ct[0], graph.OneMinus(graph.Square(out[0])))
				return nodes(dot(dz, in[1]), transform.ReduceScatterDot(dz, in[0], d))
			}
			h, _ := transform.Scan(func(c, w []*node) ([]*node, []*node) {
				return transform.CustomVJP("layer", layer, backward, c[0], w[0]), nil
			}, nodes(xs[0]), nodes(xs[1]), o)
			return graph.Gradient(total(graph.Sin(h[0])), xs[1])
		}
	}
	want := enginetest.Run(t, client, oneDevice, build(dtypes.Float32, false), inputs...)
	for _, c := range []struct {
		reduce    dtypes.DType
		tolerance float64
	}{{dtypes.Float32, 1e-5}, {dtypes.BFloat16, 0.02}} {
		p := enginetest.Lower(t, plane(1), build(c.reduce, true), inputs...)
		again := enginetest.Lower(t, plane(1), build(c.reduce, true), inputs...)
		require.Equal(t, string(p.Text), string(again.Text))
		exe := enginetest.Compile(t, client, p)
		enginetest.Close(t, want, enginetest.Execute(t, client, p, exe, inputs...), c.tolerance)
		list := collectives(t, exe)
		require.Contains(t, list, "5 × reduce-scatter f32[4,16]\n", "%s", c.reduce)
		require.Contains(t, list, "5 × reduce-scatter f32[8,16]\n", "%s", c.reduce)
		require.NotContains(t, list, "all-reduce")
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
