package transform_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine/internal/enginetest"
	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/engine/transform"
)

// TestReducedDotErrors is about products that do not fit their mesh.
func TestReducedDotErrors(t *testing.T) {
	mesh := sharding.Mesh{Name: "mesh", Axes: []sharding.Axis{{Name: "halves", Size: 2}, {Name: "thirds", Size: 3}}}
	split := func(dim int, axis string) sharding.Spec { return sharding.Split(2, dim, axis) }
	for _, c := range []struct {
		d    transform.ReducedDot // of [2, 3] and [3, 4]
		want string
	}{
		{reduced(nil, split(0, "thirds"), nil), "dimension 1 of the left operand is split over [], the one it is contracted with over [thirds]"},
		{reduced(split(0, "halves"), nil, nil), "dimension 0 of the result is split over [], of the operand over [halves]"},
		{reduced(nil, nil, split(0, "halves")), `the result is split over axis "halves", the contraction over [] only`},
		{reduced(split(1, "halves"), split(0, "halves"), nil), "the left operand: sharding [-, halves] splits dimension 1 of [2 3] in 2 parts, which does not divide 3"},
		{reduced(split(1, "thirds"), split(0, "thirds"), split(1, "thirds")), "the result: sharding [-, thirds] splits dimension 1 of [2 4] in 3 parts, which does not divide 4"},
		{reduced(split(1, "fifths"), split(0, "fifths"), nil), `names axis "fifths", the mesh has halves=2, thirds=3`},
	} {
		_, err := stablehlo.Build(mesh, "wrong", func(g *graph.Graph) []*node {
			l := graph.Parameter(g, "l", shapes.Make(dtypes.Float32, 2, 3))
			r := graph.Parameter(g, "r", shapes.Make(dtypes.Float32, 3, 4))
			return nodes(transform.ReduceScatterDot(l, r, c.d))
		})
		require.ErrorContains(t, err, c.want)
	}
}

func buildError(build enginetest.BuildFunc) error {
	_, err := stablehlo.Build(oneDevice, "wrong", func(g *graph.Graph) []*node {
		var in []*node
		for i, dims := range [][]int{{2, 3}, {5, 3, 3}, {3, 3}, {5, 3, 3}} {
			in = append(in, graph.Parameter(g, fmt.Sprintf("x%d", i), shapes.Make(dtypes.Float32, dims...)))
		}
		return build(g, in)
	})
	return err
}

// reduced contracts the last dimension of the left operand with the first of the right one.
func reduced(lhs, rhs, out sharding.Spec) transform.ReducedDot {
	return transform.ReducedDot{ContractLHS: []int{1}, ContractRHS: []int{0}, LHS: lhs, RHS: rhs, Out: out}
}

func TestErrors(t *testing.T) {
	type body = func(c, xs []*node) ([]*node, []*node)
	same := func(c, xs []*node) ([]*node, []*node) { return nodes(graph.Sin(c[0])), nil }
	scan := func(b body, o transform.ScanOptions, xs ...int) enginetest.BuildFunc {
		return func(g *graph.Graph, in []*node) []*node {
			var stacked []*node
			for _, i := range xs {
				stacked = append(stacked, in[i])
			}
			out, _ := transform.Scan(b, in[:1], stacked, o)
			return out
		}
	}
	custom := func(bwd func(in, out, cts []*node) []*node) enginetest.BuildFunc {
		return func(g *graph.Graph, in []*node) []*node {
			out := transform.CustomVJP("mine", func(v []*node) []*node { return nodes(dot(v[0], v[1])) }, bwd, in[0], in[2])
			return graph.Gradient(total(out[0]), in[0])
		}
	}
	for name, c := range map[string]struct {
		build enginetest.BuildFunc
		want  string
	}{
		"carry of another shape": {scan(func(c, xs []*node) ([]*node, []*node) { return nodes(graph.ReduceSum(c[0], 0)), nil }, transform.ScanOptions{}, 1),
			"transform.Scan: the body returns carry 0 as (Float32)[3], it got (Float32)[2, 3]: shape and dtype must stay the same"},
		"carry of another dtype": {scan(func(c, xs []*node) ([]*node, []*node) { return nodes(graph.ConvertDType(c[0], dtypes.BFloat16)), nil }, transform.ScanOptions{}, 1),
			"transform.Scan: the body returns carry 0 as (BFloat16)[2, 3], it got (Float32)[2, 3]"},
		"number of carries": {scan(func(c, xs []*node) ([]*node, []*node) { return nodes(c[0], c[0]), nil }, transform.ScanOptions{}, 1),
			"transform.Scan: the body returns 2 carries, it got 1"},
		"nil carry": {scan(func(c, xs []*node) ([]*node, []*node) { return nodes(nil), nil }, transform.ScanOptions{}, 1),
			"transform.Scan: returned carry 0 is nil"},
		"nil y": {scan(func(c, xs []*node) ([]*node, []*node) { return c, nodes(c[0], nil) }, transform.ScanOptions{}, 1),
			"transform.Scan: returned y 1 is nil"},
		"xs of different lengths": {scan(same, transform.ScanOptions{}, 1, 2),
			"transform.Scan: x 1 is (Float32)[3, 3]: axis 0 must be 5, the number of steps"},
		"another Length": {scan(same, transform.ScanOptions{Length: 4}, 1),
			"transform.Scan: x 0 is (Float32)[5, 3, 3]: axis 0 must be 4, the number of steps"},
		"no Length": {scan(same, transform.ScanOptions{}),
			"transform.Scan: 0 steps: give xs with at least one slice, or Length"},
		"nothing to scan": {func(g *graph.Graph, in []*node) []*node {
			out, _ := transform.Scan(same, nil, nil, transform.ScanOptions{Length: 1})
			return out
		}, "transform.Scan: neither carry nor xs given"},
		"number of specs": {scan(same, transform.ScanOptions{XsSpecs: []sharding.Spec{nil, nil}}, 1),
			"transform.Scan: 2 XsSpecs for 1 xs"},
		"spec that splits the steps": {scan(same, transform.ScanOptions{XsSpecs: []sharding.Spec{sharding.Split(3, 0, "fsdp")}}, 1),
			"transform.Scan: XsSpecs[0] = [fsdp, -, -] splits axis 0, which is the axis of the steps"},
		"spec of a higher rank": {scan(same, transform.ScanOptions{XsSpecs: []sharding.Spec{sharding.Split(4, 3, "fsdp")}}, 1),
			"transform.Scan: XsSpecs[0] = [-, -, -, fsdp] has 4 dimensions, x 0 is (Float32)[5, 3, 3]"},
		"constraint of a higher rank": {func(g *graph.Graph, in []*node) []*node {
			return nodes(transform.Constrain(in[0], sharding.Split(3, 2, "fsdp")))
		}, "transform.Constrain: sharding [-, -, fsdp] has 3 dimensions, the tensor is (Float32)[2, 3]"},
		"unknown axis": {func(g *graph.Graph, in []*node) []*node {
			return nodes(transform.Constrain(in[0], sharding.Split(2, 1, "tensor")))
		}, `names axis "tensor"`},
		"reduced product of two dtypes": {func(g *graph.Graph, in []*node) []*node {
			return nodes(transform.ReduceScatterDot(in[0], graph.ConvertDType(in[2], dtypes.BFloat16), reduced(nil, nil, nil)))
		}, "transform.ReduceScatterDot: the operands are (Float32)[2, 3] and (BFloat16)[3, 3]: give two of one float dtype"},
		"reduced product over nothing": {func(g *graph.Graph, in []*node) []*node {
			return nodes(transform.ReduceScatterDot(in[0], in[2], transform.ReducedDot{ContractLHS: []int{1}}))
		}, "transform.ReduceScatterDot: dimensions [1] are contracted with []"},
		"reduced product in float16": {func(g *graph.Graph, in []*node) []*node {
			d := reduced(nil, nil, nil)
			d.Reduce = dtypes.Float16
			return nodes(transform.ReduceScatterDot(in[0], in[2], d))
		}, "transform.ReduceScatterDot: sums in Float16: use Float32 or BFloat16"},
		"number of cotangents": {custom(func(in, out, cts []*node) []*node { return nodes(cts[0]) }),
			"transform.CustomVJP mine: the backward rule returns 1 cotangents for 2 inputs"},
		"shape of a cotangent": {custom(func(in, out, cts []*node) []*node { return nodes(cts[0], cts[0]) }),
			"transform.CustomVJP mine: the cotangent of input 1 is (Float32)[2, 3], the input is (Float32)[3, 3]"},
		"no inputs": {func(g *graph.Graph, in []*node) []*node {
			return transform.Checkpoint(func([]*node) []*node { return in })
		}, "transform.Checkpoint: no inputs given"},
		"no outputs": {func(g *graph.Graph, in []*node) []*node {
			return transform.Checkpoint(func([]*node) []*node { return nil }, in[0])
		}, "transform.Checkpoint: the function returns no outputs"},
		"nil input": {func(g *graph.Graph, in []*node) []*node {
			return transform.Checkpoint(func(v []*node) []*node { return v }, in[0], nil)
		}, "transform.Checkpoint: input 1 is nil"},
		"a conditional inside": {scan(func(c, xs []*node) ([]*node, []*node) {
			g := c[0].Graph()
			yes := graph.NewClosure(g, func(*graph.Graph) []*node { return nodes(graph.Sin(c[0])) })
			no := graph.NewClosure(g, func(*graph.Graph) []*node { return nodes(graph.Cos(c[0])) })
			return graph.If(graph.GreaterThan(graph.ReduceAllSum(c[0]), graph.Const(g, float32(0))), yes, no), nil
		}, transform.ScanOptions{}, 1), "cannot stand inside Checkpoint or Scan, since its closures may read any value: use graph.Where"},
		"a rule that closes over the body": {func(g *graph.Graph, in []*node) []*node {
			out, _ := transform.Scan(func(c, xs []*node) ([]*node, []*node) {
				return transform.CustomVJP("closing", func(v []*node) []*node { return v },
					func(_, _, cts []*node) []*node { return nodes(graph.Mul(cts[0], c[0])) }, graph.Sin(c[0])), nil
			}, in[:1], in[1:2], transform.ScanOptions{})
			return graph.Gradient(total(out[0]), in[0])
		}, "transform.Scan: a backward rule in the body closes over the body's value"},
		"call without a gradient": {func(g *graph.Graph, in []*node) []*node {
			f := graph.NewFunction(g, "plain", func(g *graph.Graph) []*node {
				return nodes(graph.Sin(graph.Parameter(g, "p", in[0].Shape())))
			})
			return graph.Gradient(total(f.Call(in[0])[0]), in[0])
		}, `transform: the call of function "plain" has no gradient: build it with transform.CustomVJP`},
	} {
		t.Run(name, func(t *testing.T) { requirePanic(t, c.want, c.build) })
	}
}
