package stablehlo

import (
	"fmt"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine/sharding"
)

func init() { RegisterVJPs() }

// RegisterVJPs adds the vector-Jacobian products that GoMLX v0.28 lacks to graph.VJPRegistration: of Rsqrt, Expm1,
// Atan2, Rem, Clamp, Pad, Reverse, Identity and ReduceProduct, and zeros for operations that are constant almost
// everywhere (rounding, Sign, comparisons, integer operations, ArgMinMax). An entry that exists is kept. They hold on
// every GoMLX backend. Importing this package calls it.
var RegisterVJPs = sync.OnceFunc(func() {
	register := func(t graph.NodeType, vjp graph.VJP) {
		if _, ok := graph.VJPRegistration[t]; !ok {
			graph.VJPRegistration[t] = vjp
		}
	}
	register(graph.NodeTypeRsqrt, rsqrtVJP)
	register(graph.NodeTypeExpm1, expm1VJP)
	register(graph.NodeTypeAtan2, atan2VJP)
	register(graph.NodeTypeRem, remVJP)
	register(graph.NodeTypeClamp, clampVJP)
	register(graph.NodeTypePad, padVJP)
	register(graph.NodeTypeReverse, reverseVJP)
	register(graph.NodeTypeIdentity, identityVJP)
	register(graph.NodeTypeReduceProduct, reduceProductVJP)
	for _, t := range []graph.NodeType{
		graph.NodeTypeCeil, graph.NodeTypeFloor, graph.NodeTypeRound, graph.NodeTypeSign, graph.NodeTypeIsFinite, graph.NodeTypeIsNaN,
		graph.NodeTypeEqual, graph.NodeTypeNotEqual, graph.NodeTypeGreaterOrEqual, graph.NodeTypeGreaterThan,
		graph.NodeTypeLessOrEqual, graph.NodeTypeLessThan, graph.NodeTypeEqualTotalOrder, graph.NodeTypeNotEqualTotalOrder,
		graph.NodeTypeGreaterOrEqualTotalOrder, graph.NodeTypeGreaterThanTotalOrder, graph.NodeTypeLessOrEqualTotalOrder,
		graph.NodeTypeLessThanTotalOrder, graph.NodeTypeShiftLeft, graph.NodeTypeShiftRightArithmetic, graph.NodeTypeShiftRightLogical,
		graph.NodeTypeBitCount, graph.NodeTypeClz, graph.NodeTypeBitcast, graph.NodeTypeArgMinMax, graph.NodeTypeIota,
		graph.NodeTypeReduceBitwiseAnd, graph.NodeTypeReduceBitwiseOr, graph.NodeTypeReduceBitwiseXor,
		graph.NodeTypeReduceLogicalAnd, graph.NodeTypeReduceLogicalOr, graph.NodeTypeReduceLogicalXor, graph.NodeTypeRNGBitGenerator,
	} {
		register(t, zeroVJP)
	}
})

// zeroVJP sends nothing back.
func zeroVJP(node *graph.Node, _ []*graph.Node, _ shapes.Shape) []*graph.Node {
	return make([]*graph.Node, len(node.Inputs()))
}

func identityVJP(_ *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node { return v[:1] }

// rsqrtVJP: d x^(-1/2) = -1/2 x^(-3/2).
func rsqrtVJP(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
	cube := graph.Mul(graph.Mul(node, node), node)
	return []*graph.Node{graph.Mul(v[0], graph.MulScalar(cube, -0.5))}
}

func expm1VJP(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
	return []*graph.Node{graph.Mul(v[0], graph.Exp(node.Inputs()[0]))}
}

// atan2VJP: for atan2(y, x), d/dy = x/(x²+y²) and d/dx = -y/(x²+y²).
func atan2VJP(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
	y, x := node.Inputs()[0], node.Inputs()[1]
	scaled := graph.Div(v[0], graph.Add(graph.Mul(x, x), graph.Mul(y, y)))
	return []*graph.Node{unbroadcast(graph.Mul(scaled, x), y), unbroadcast(graph.Neg(graph.Mul(scaled, y)), x)}
}

// remVJP: rem(x, y) = x - y trunc(x/y).
func remVJP(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
	x, y := node.Inputs()[0], node.Inputs()[1]
	if !x.DType().IsFloat() {
		return make([]*graph.Node, 2)
	}
	quotient := graph.Div(graph.Sub(x, node), y)
	return []*graph.Node{unbroadcast(v[0], x), unbroadcast(graph.Neg(graph.Mul(v[0], graph.Round(quotient))), y)}
}

// clampVJP lets v through to the operand that the result came from; x where it lies strictly between the bounds.
func clampVJP(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
	low, x, high := node.Inputs()[0], node.Inputs()[1], node.Inputs()[2]
	zeros := graph.ZerosLike(v[0])
	inside := graph.LogicalAnd(graph.GreaterThan(x, low), graph.LessThan(x, high))
	fromHigh := graph.GreaterOrEqual(graph.Max(x, low), high)
	fromLow := graph.LogicalAnd(graph.LessOrEqual(x, low), graph.LogicalNot(fromHigh))
	return []*graph.Node{
		unbroadcast(graph.Where(fromLow, v[0], zeros), low),
		graph.Where(inside, v[0], zeros),
		unbroadcast(graph.Where(fromHigh, v[0], zeros), high),
	}
}

// reverseVJP: reversing is its own transpose.
func reverseVJP(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
	return []*graph.Node{node.CloneWithInputs(v[0])}
}

// padVJP takes the padding off again. What negative padding cut away has no gradient.
func padVJP(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
	x, fill := node.Inputs()[0], node.Inputs()[1]
	config := arguments(node).([]compute.PadAxis)
	back, edges, negative := v[0], make([]compute.PadAxis, len(config)), false
	for i, c := range config {
		edges[i] = compute.PadAxis{Start: max(-c.Start, 0), End: max(-c.End, 0)}
		negative = negative || c.Start < 0 || c.End < 0
	}
	if negative {
		back = graph.Pad(back, graph.Scalar(node.Graph(), back.DType(), 0), edges...)
	}
	axes := make([]graph.SliceAxisSpec, len(config))
	for i, c := range config {
		axes[i] = graph.AxisRange(max(c.Start, 0), back.Shape().Dimensions[i]-max(c.End, 0)).Stride(c.Interior + 1)
	}
	isFill := node.CloneWithInputs(graph.ZerosLike(x), graph.OnesLike(fill))
	return []*graph.Node{graph.Slice(back, axes...), graph.ReduceAllSum(graph.Mul(v[0], isFill))}
}

// reduceProductVJP: the derivative by an element is the product of the others, which is found without dividing by zero.
func reduceProductVJP(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
	x := node.Inputs()[0]
	kept := x.Shape().Clone()
	for _, a := range arguments(node).([]int) {
		kept.Dimensions[a] = 1
	}
	spread := func(n *graph.Node) *graph.Node {
		return graph.BroadcastToDims(graph.Reshape(n, kept.Dimensions...), x.Shape().Dimensions...)
	}
	isZero := graph.Equal(x, graph.ZerosLike(x))
	ones := graph.OnesLike(x)
	nonZero := graph.Where(isZero, ones, x)
	product := spread(node.CloneWithInputs(nonZero))
	// The product of a 2 for each zero is 1 without zeros and 2 with one.
	zeros := spread(node.CloneWithInputs(graph.Where(isZero, graph.AddScalar(ones, 1), ones)))
	noZero, oneZero := graph.Equal(zeros, ones), graph.Equal(zeros, graph.AddScalar(ones, 1))
	none := graph.ZerosLike(x)
	others := graph.Where(noZero, graph.Div(product, nonZero), graph.Where(graph.LogicalAnd(oneZero, isZero), product, none))
	return []*graph.Node{graph.Mul(spread(v[0]), others)}
}

// unbroadcast sums v over the dimensions that an element-wise operation spread input over.
func unbroadcast(v, input *graph.Node) *graph.Node {
	if input.IsScalar() && !v.IsScalar() {
		return graph.ReduceAllSum(v)
	}
	var axes []int
	for i, d := range input.Shape().Dimensions {
		if d == 1 && v.Shape().Dimensions[i] != 1 {
			axes = append(axes, i)
		}
	}
	if len(axes) == 0 {
		return v
	}
	return graph.Reshape(graph.ReduceSum(v, axes...), input.Shape().Dimensions...)
}

// arguments gives the static arguments of a node, which GoMLX keeps private: it builds the node again on a Backend,
// which records them.
func arguments(node *graph.Node) any {
	g := graph.NewGraph(New(sharding.Mesh{}), "arguments")
	inputs := make([]*graph.Node, len(node.Inputs()))
	for i, in := range node.Inputs() {
		inputs[i] = graph.Parameter(g, fmt.Sprintf("input%d", i), shapes.Make(in.DType(), in.Shape().Dimensions...))
	}
	node.CloneWithInputs(inputs...)
	ops := Of(g).builder.main.ops
	return ops[len(ops)-1].arguments
}
