package transform

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"

	"weft/engine/stablehlo"
)

// ReducedDot says what ReduceScatterDot contracts and how it sums over devices.
type ReducedDot = stablehlo.ReducedDot

// ReduceScatterDot returns the float32 product of l and r, operands of one float dtype, contracted over d.ContractLHS
// of l and d.ContractRHS of r: the dimensions of l that remain, then those of r that remain. The operands lie split by
// d.LHS and d.RHS, the contracted dimensions alike, as the rows of a global batch do; the result lies split by d.Out, as
// a master weight does.
//
// Each device multiplies what it has. The products are then summed in d.Reduce (Float32 when not set; BFloat16 halves
// what goes over the wire and rounds the partial sums) by one reduce-scatter for each axis of the contraction that
// splits the result, and by an all-reduce over those that do not. That is the gradient of a weight under FSDP. The
// collectives are written in the program as they are, in loops of Scan too: the compiler does not choose them.
//
// All dimensions that are split must divide evenly. With one device, and on other backends than engine/stablehlo, it is
// the plain product. Its gradient is that of the plain product, in float32.
func ReduceScatterDot(l, r *graph.Node, d ReducedDot) *graph.Node {
	const what = "transform.ReduceScatterDot"
	checkInputs(what, []*graph.Node{l, r})
	if d.Reduce == dtypes.InvalidDType {
		d.Reduce = dtypes.Float32
	}
	switch {
	case l.DType() != r.DType() || !isFloat(l):
		exceptions.Panicf("%s: the operands are %s and %s: give two of one float dtype", what, l.Shape(), r.Shape())
	case len(d.ContractLHS) == 0 || len(d.ContractLHS) != len(d.ContractRHS):
		exceptions.Panicf("%s: dimensions %v are contracted with %v: give as many for both operands", what, d.ContractLHS, d.ContractRHS)
	case d.Reduce != dtypes.Float32 && d.Reduce != dtypes.BFloat16:
		exceptions.Panicf("%s: sums in %s: use Float32 or BFloat16", what, d.Reduce)
	}
	return reducedDot(l, r, d).Call(l, r)[0]
}

// reducedDot is the function that the backend lowers to a reduced product, one for each pair of shapes and description.
func reducedDot(l, r *graph.Node, d ReducedDot) *graph.Function {
	g := l.Graph()
	s := stateOf(g)
	key := fmt.Sprint(l.Shape(), r.Shape(), d.FunctionName(""))
	if f := s.reducedDots[key]; f != nil {
		return f
	}
	name := d.FunctionName(g.UniqueName("reduced_dot"))
	f := graph.NewFunction(g, name, func(g *graph.Graph) []*graph.Node {
		p := parameters(g, []*graph.Node{l, r})
		return []*graph.Node{plainDot(p[0], p[1], d)}
	})
	s.reducedDots[key] = f
	s.rules[name] = &rule{in: 2, what: "transform.ReduceScatterDot", backward: func(in, _, _, cotangents []*graph.Node) []*graph.Node {
		wide := plainDot(graph.ConvertDType(in[0], dtypes.Float32), graph.ConvertDType(in[1], dtypes.Float32), d)
		return pullback([]*graph.Node{wide}, cotangents, in)
	}}
	return f
}

// plainDot is the product of whole operands, with a float32 result.
func plainDot(l, r *graph.Node, d ReducedDot) *graph.Node {
	b := graph.Dot(l, r).WithAccumulatorDType(dtypes.InvalidDType)
	if l.DType() != dtypes.Float32 {
		b = b.WithOutputDType(dtypes.Float32)
	}
	return b.General(d.ContractLHS, nil, d.ContractRHS, nil)
}
