package transform_test

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"weft/engine/internal/enginetest"
	"weft/engine/sharding"
	"weft/engine/transform"
	"weft/internal/property"
	"weft/pjrt"
)

type node = graph.Node

var oneDevice sharding.Mesh

// Each drawing compiles two programs.
func init() { property.Checks(15) }

// combinators are those of the package, or what they mean.
type combinators struct {
	checkpoint func(f func(in []*node) []*node, inputs ...*node) []*node
	scan       func(body func(carry, xs []*node) ([]*node, []*node), carry, xs []*node, o transform.ScanOptions) ([]*node, []*node)
	custom     func(name string, fwd func(in []*node) []*node, bwd func(in, out, cts []*node) []*node, inputs ...*node) []*node
	constrain  func(x *node, spec sharding.Spec) *node
}

var ours = combinators{transform.Checkpoint, transform.Scan, transform.CustomVJP, transform.Constrain}

// plain is the oracle: functions are called, loops are unrolled, GoMLX differentiates.
var plain = combinators{
	checkpoint: func(f func(in []*node) []*node, inputs ...*node) []*node { return f(inputs) },
	scan:       unrolled,
	custom: func(_ string, fwd func(in []*node) []*node, _ func(in, out, cts []*node) []*node, inputs ...*node) []*node {
		return fwd(inputs)
	},
	constrain: func(x *node, _ sharding.Spec) *node { return x },
}

func unrolled(body func(carry, xs []*node) ([]*node, []*node), carry, xs []*node, o transform.ScanOptions) ([]*node, []*node) {
	n := o.Length
	if len(xs) > 0 {
		n = xs[0].Shape().Dimensions[0]
	}
	perStep := make([][]*node, n)
	for step := range n {
		i := step
		if o.Reverse {
			i = n - 1 - step
		}
		slices := make([]*node, len(xs))
		for k, x := range xs {
			slices[k] = at(x, i)
		}
		carry, perStep[i] = body(carry, slices)
	}
	ys := make([]*node, len(perStep[0]))
	for k := range ys {
		column := make([]*node, n)
		for i := range n {
			column[i] = perStep[i][k]
		}
		ys[k] = graph.Stack(column, 0)
	}
	return carry, ys
}

// at is x[i].
func at(x *node, i int) *node {
	return graph.Reshape(graph.Slice(x, graph.AxisElem(i)), x.Shape().Dimensions[1:]...)
}

// dot is a product without a float32 accumulator type, which GoMLX's gradients would take for float32 operands.
func dot(a, b *node) *node {
	return graph.Dot(a, b).WithAccumulatorDType(dtypes.InvalidDType).Product()
}

// row broadcasts a vector over the rows of like.
func row(b, like *node) *node {
	return graph.BroadcastToDims(graph.Reshape(b, 1, b.Shape().Dimensions[0]), like.Shape().Dimensions...)
}

// total is a float32 scalar that every element of the nodes moves, each by another amount.
func total(nodes ...*node) *node {
	var sum *node
	for i, n := range nodes {
		x := graph.ConvertDType(n, dtypes.Float32)
		part := graph.ReduceAllSum(graph.Mul(graph.Sin(graph.AddScalar(x, float64(i))), x))
		if sum == nil {
			sum = part
		} else {
			sum = graph.Add(sum, part)
		}
	}
	return sum
}

// program builds outputs from parameters with the given combinators.
type program func(c combinators, xs []*node) []*node

// withGradients returns the outputs and, of the sum of the float ones, the gradients of all float parameters.
func withGradients(c combinators, p program) enginetest.BuildFunc {
	return func(g *graph.Graph, xs []*node) []*node {
		outs := p(c, xs)
		var floats, wrt []*node
		for _, o := range outs {
			if o.DType().IsFloat() {
				floats = append(floats, o)
			}
		}
		for _, x := range xs {
			if x.DType().IsFloat() {
				wrt = append(wrt, x)
			}
		}
		loss := total(floats...)
		return append(append([]*node{loss}, outs...), graph.Gradient(loss, wrt...)...)
	}
}

// agree runs a program plain and with the combinators, on the CPU plugin.
func agree(t enginetest.T, client *pjrt.Client, p program, tolerance float64, what string, inputs ...*tensors.Tensor) {
	t.Helper()
	want := enginetest.Run(t, client, oneDevice, withGradients(plain, p), inputs...)
	got := enginetest.Run(t, client, oneDevice, withGradients(ours, p), inputs...)
	enginetest.Close(t, want, got, tolerance, what)
}
