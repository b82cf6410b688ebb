package stablehlo_test

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

type reduceCase struct {
	op     compute.OpType
	f      func(x *graph.Node, axes ...int) *graph.Node
	dtypes func(d *drawer) dtypes.DType
	grad   bool
}

func reduceCases() (cases []opCase) {
	floats, ints := (*drawer).floatDType, (*drawer).intDType
	booleans := func(*drawer) dtypes.DType { return dtypes.Bool }
	for _, r := range []reduceCase{
		{compute.OpTypeReduceSum, graph.ReduceSum, floats, true},
		{compute.OpTypeReduceSum, graph.ReduceSum, ints, false},
		{compute.OpTypeReduceProduct, graph.ReduceMultiply, floats, true},
		{compute.OpTypeReduceProduct, graph.ReduceMultiply, ints, false},
		{compute.OpTypeReduceMax, graph.ReduceMax, floats, true},
		{compute.OpTypeReduceMax, graph.ReduceMax, ints, false},
		{compute.OpTypeReduceMin, graph.ReduceMin, floats, true},
		{compute.OpTypeReduceMin, graph.ReduceMin, ints, false},
		{compute.OpTypeReduceBitwiseAnd, graph.ReduceBitwiseAnd, ints, false},
		{compute.OpTypeReduceBitwiseOr, graph.ReduceBitwiseOr, ints, false},
		{compute.OpTypeReduceBitwiseXor, graph.ReduceBitwiseXor, ints, false},
		{compute.OpTypeReduceLogicalAnd, graph.ReduceLogicalAnd, booleans, false},
		{compute.OpTypeReduceLogicalOr, graph.ReduceLogicalOr, booleans, false},
		{compute.OpTypeReduceLogicalXor, graph.ReduceLogicalXor, booleans, false},
	} {
		cases = append(cases, opCase{r.op.String(), []compute.OpType{r.op}, func(d *drawer) instance {
			dims := d.dims(1, 3)
			axes := d.someAxes(len(dims))
			dtype := r.dtypes(d)
			low, high := -2.0, 2.0
			if r.op == compute.OpTypeReduceBitwiseAnd {
				low, high = 100, 127
			}
			in := instance{inputs: []array{d.fill(dtype, dims, low, high)}, loose: 8,
				fn: one(func(x *graph.Node) *graph.Node { return r.f(x, axes...) })}
			if r.grad {
				in.grad = []int{0}
			}
			return in
		}})
	}
	return append(cases,
		opCase{"ArgMinMax", []compute.OpType{compute.OpTypeArgMinMax}, drawArg},
		opCase{"ReduceWindow", []compute.OpType{compute.OpTypeReduceWindow}, drawReduceWindow},
		opCase{"ReduceWindow sum", []compute.OpType{compute.OpTypeReduceWindow}, func(d *drawer) instance {
			return drawPool(d, compute.ReduceOpSum, nil)
		}},
		opCase{"SelectAndScatterMax", []compute.OpType{compute.OpTypeSelectAndScatterMax}, func(d *drawer) instance {
			return drawPool(d, compute.ReduceOpMax, func(a, b float64) bool { return a > b })
		}},
		opCase{"SelectAndScatterMin", []compute.OpType{compute.OpTypeSelectAndScatterMin}, func(d *drawer) instance {
			return drawPool(d, compute.ReduceOpMin, func(a, b float64) bool { return a < b })
		}},
	)
}

// drawArg draws from few values, so that there are ties.
func drawArg(d *drawer) instance {
	dims := d.dims(1, 3)
	axis, out := d.between(0, len(dims)-1), pickOne(d, dtypes.Int32, dtypes.Int64, dtypes.Uint8)
	f := graph.ArgMax
	if d.chance() {
		f = graph.ArgMin
	}
	x := d.fill(dtypes.Int8, dims, -2, 2)
	dtype := pickOne(d, dtypes.Float32, dtypes.Int32, dtypes.BFloat16)
	return instance{inputs: []array{x}, fn: one(func(x *graph.Node) *graph.Node { return f(graph.ConvertDType(x, dtype), axis, out) })}
}

func drawReduceWindow(d *drawer) instance {
	kind := pickOne(d, compute.ReduceOpSum, compute.ReduceOpProduct, compute.ReduceOpMax, compute.ReduceOpMin)
	var dims, window, strides, inputDilations, windowDilations []int
	var paddings [][2]int
	for range d.between(1, 2) {
		dims, window = append(dims, d.between(4, 6)), append(window, d.between(1, 2))
		strides = append(strides, d.between(1, 3))
		inputDilations, windowDilations = append(inputDilations, d.between(1, 2)), append(windowDilations, d.between(1, 2))
		paddings = append(paddings, [2]int{d.between(0, 1), d.between(0, 1)})
	}
	if d.chance() {
		strides = nil
	}
	return instance{inputs: []array{d.fill(pickOne(d, dtypes.Float32, dtypes.Int32), dims, -3, 3)}, loose: 4,
		fn: one(func(x *graph.Node) *graph.Node {
			return graph.BackendReduceWindow(x, kind, window, strides, inputDilations, windowDilations, paddings)
		})}
}

// drawPool differentiates a pooling of overlapping windows by plain loops, because GoMLX's own gradients need what the
// oracle lacks. Each window's weight goes to its best element, to all of them for a sum (better is nil).
func drawPool(d *drawer, kind compute.ReduceOpType, better func(a, b float64) bool) instance {
	const rows = 2
	cols, window, stride, pad := d.between(4, 7), d.between(2, 3), d.between(1, 2), d.between(0, 1)
	windows := (cols+pad-window)/stride + 1
	return instance{inputs: []array{d.fill(dtypes.Float32, []int{rows, cols}, -3, 3)}, grad: []int{0}, loose: 2,
		fn: one(func(x *graph.Node) *graph.Node {
			return graph.BackendReduceWindow(x, kind, []int{1, window}, []int{1, stride}, nil, nil, [][2]int{{0, 0}, {pad, 0}})
		}),
		want: func(in, w []array) []array {
			x := in[0]
			out, grad := newArray(shapes.Make(dtypes.Float32, rows, windows)), newArray(x.shape)
			for o := range rows * windows {
				chosen, sum := []int{}, 0.0
				for k := range window {
					c := o%windows*stride + k - pad
					i := o/windows*cols + c
					if c < 0 || better != nil && len(chosen) > 0 && !better(x.float(i), x.float(chosen[0])) {
						continue
					}
					if better != nil {
						chosen, sum = nil, 0
					}
					chosen, sum = append(chosen, i), sum+x.float(i)
				}
				out.setFloat(o, sum)
				for _, i := range chosen {
					grad.setFloat(i, grad.float(i)+w[0].float(o))
				}
			}
			return []array{out, grad}
		}}
}
