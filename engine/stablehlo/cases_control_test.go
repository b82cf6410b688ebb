package stablehlo_test

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

func controlCases() []opCase {
	return []opCase{
		{"Call", []compute.OpType{compute.OpTypeCall}, drawCall},
		{"If", []compute.OpType{compute.OpTypeIf}, drawIf},
		{"Sort", []compute.OpType{compute.OpTypeSort}, drawSort},
		{"While", []compute.OpType{compute.OpTypeWhile}, drawWhile},
		{"While in While", []compute.OpType{compute.OpTypeWhile}, drawNestedWhile},
		{"OptimizationBarrier", []compute.OpType{compute.OpTypeOptimizationBarrier}, func(d *drawer) instance {
			return instance{inputs: []array{d.fill(d.floatDType(), d.dims(0, 2), -3, 3), d.fill(d.floatDType(), d.dims(0, 2), -3, 3)}, grad: []int{0, 1},
				fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node { return graph.OptimizationBarriers(xs...) }}
		}},
		{"SchedulingBarrier", []compute.OpType{compute.OpTypeSchedulingBarrier}, func(d *drawer) instance {
			return instance{inputs: []array{d.fill(d.floatDType(), d.dims(0, 2), -3, 3), d.fill(d.floatDType(), d.dims(0, 2), -3, 3)}, grad: []int{0},
				fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
					return []*graph.Node{graph.SchedulingBarrier(xs[0], xs[1])}
				}}
		}},
	}
}

// drawCall calls one function of two outputs twice.
func drawCall(d *drawer) instance {
	dims := d.dims(0, 2)
	return instance{inputs: []array{d.fill(dtypes.Float32, dims, -2, 2), d.fill(dtypes.Float32, dims, -2, 2)},
		fn: func(g *graph.Graph, xs []*graph.Node) []*graph.Node {
			f := graph.NewFunction(g, g.UniqueName("sum and \"product\""), func(g *graph.Graph) []*graph.Node {
				a := graph.Parameter(g, "a", shapes.Make(dtypes.Float32, dims...))
				b := graph.Parameter(g, "b", shapes.Make(dtypes.Float32, dims...))
				return []*graph.Node{graph.Add(a, b), graph.Mul(a, b)}
			})
			first := f.Call(xs[0], xs[1])
			return f.Call(first[0], first[1])
		}}
}

func drawIf(d *drawer) instance {
	dims := d.dims(0, 2)
	return instance{inputs: []array{d.fill(dtypes.Bool, nil, 0, 1), d.fill(dtypes.Float32, dims, -2, 2), d.fill(dtypes.Float32, dims, -2, 2)},
		fn: func(g *graph.Graph, xs []*graph.Node) []*graph.Node {
			yes := graph.NewClosure(g, func(*graph.Graph) []*graph.Node { return []*graph.Node{graph.Add(xs[1], xs[2]), graph.Neg(xs[1])} })
			no := graph.NewClosure(g, func(*graph.Graph) []*graph.Node { return []*graph.Node{graph.Sub(xs[1], xs[2]), xs[2]} })
			return graph.If(xs[0], yes, no)
		}}
}

// drawSort sorts keys with ties and their positions, stably, by a comparator that reads a constant from outside.
func drawSort(d *drawer) instance {
	dims := d.dims(1, 3)
	axis, descending := d.between(0, len(dims)-1), d.chance()
	return instance{inputs: []array{d.fill(dtypes.Int32, dims, -2, 2), d.fill(d.floatDType(), dims, -2, 2)},
		fn: func(g *graph.Graph, xs []*graph.Node) []*graph.Node {
			zero := graph.Scalar(g, dtypes.Int32, 0)
			less := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
				a, b := graph.Parameter(g, "a", shapes.Make(dtypes.Int32)), graph.Parameter(g, "b", shapes.Make(dtypes.Int32))
				graph.Parameter(g, "va", shapes.Make(xs[1].DType()))
				graph.Parameter(g, "vb", shapes.Make(xs[1].DType()))
				if descending {
					a, b = b, a
				}
				return []*graph.Node{graph.LessThan(graph.Sub(a, b), zero)}
			})
			return graph.SortFunc(less, axis, true, xs[0], xs[1])
		}}
}

// loop runs body on the values a number of times, with a counter as the first of the loop's state.
func loop(g *graph.Graph, times int, body func(g *graph.Graph, values []*graph.Node) []*graph.Node, values ...*graph.Node) []*graph.Node {
	state := append([]*graph.Node{graph.Const(g, int32(0))}, values...)
	declare := func(g *graph.Graph) (nodes []*graph.Node) {
		for i, s := range state {
			nodes = append(nodes, graph.Parameter(g, paramName(i), s.Shape()))
		}
		return nodes
	}
	cond := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.LessThan(declare(g)[0], graph.Const(g, int32(times)))}
	})
	step := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		in := declare(g)
		return append([]*graph.Node{graph.Add(in[0], graph.Const(g, int32(1)))}, body(g, in[1:])...)
	})
	return graph.While(cond, step, state...)[1:]
}

// drawWhile loops over two values and reads a third from outside.
func drawWhile(d *drawer) instance {
	n, times := d.between(1, 4), d.between(0, 4)
	return instance{inputs: []array{d.fill(dtypes.Float32, []int{n}, -1, 1), d.fill(dtypes.Float32, []int{n}, -1, 1), d.fill(dtypes.Float32, []int{n, n}, -1, 1)}, loose: 8,
		fn: func(g *graph.Graph, xs []*graph.Node) []*graph.Node {
			w := graph.Tanh(xs[2])
			return loop(g, times, func(_ *graph.Graph, v []*graph.Node) []*graph.Node {
				return []*graph.Node{graph.Sin(graph.Dot(v[0], w).Product()), graph.Add(v[0], v[1])}
			}, xs[0], xs[1])
		}}
}

// drawNestedWhile reads values of main and of the outer body in the inner one; the oracle, which has no nested
// closures, unrolls it.
func drawNestedWhile(d *drawer) instance {
	n, outer, inner := d.between(1, 4), d.between(1, 3), d.between(1, 3)
	step := func(x, fromOuter, fromMain *graph.Node) *graph.Node {
		return graph.Sin(graph.Add(graph.Mul(x, fromOuter), fromMain))
	}
	return instance{inputs: []array{d.fill(dtypes.Float32, []int{n}, -1, 1), d.fill(dtypes.Float32, []int{n}, -1, 1)}, loose: 8,
		fn: func(g *graph.Graph, xs []*graph.Node) []*graph.Node {
			fromMain := graph.Cos(xs[1])
			return loop(g, outer, func(g *graph.Graph, v []*graph.Node) []*graph.Node {
				fromOuter := graph.Tanh(v[0])
				return loop(g, inner, func(_ *graph.Graph, v []*graph.Node) []*graph.Node {
					return []*graph.Node{step(v[0], fromOuter, fromMain)}
				}, v[0])
			}, xs[0])
		},
		ref: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
			x, fromMain := xs[0], graph.Cos(xs[1])
			for range outer {
				fromOuter := graph.Tanh(x)
				for range inner {
					x = step(x, fromOuter, fromMain)
				}
			}
			return []*graph.Node{x}
		}}
}
