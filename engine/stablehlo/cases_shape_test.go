package stablehlo_test

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

func shapeCases() []opCase {
	return []opCase{
		{"BroadcastInDim", []compute.OpType{compute.OpTypeBroadcastInDim}, drawBroadcast},
		{"Concatenate", []compute.OpType{compute.OpTypeConcatenate}, drawConcatenate},
		{"Pad", []compute.OpType{compute.OpTypePad}, drawPad},
		{"Pad negative", []compute.OpType{compute.OpTypePad}, func(d *drawer) instance {
			n := d.between(3, 6)
			start, end := d.between(0, 1), d.between(0, 1)
			return instance{inputs: []array{d.fill(dtypes.Float32, []int{n}, -3, 3), d.fill(dtypes.Float32, nil, 0, 0)}, grad: []int{0},
				fn: two(func(x, fill *graph.Node) *graph.Node {
					return graph.Pad(x, fill, compute.PadAxis{Start: -start, End: -end})
				}),
				ref: one(func(x *graph.Node) *graph.Node { return graph.Slice(x, graph.AxisRange(start, n-end)) })}
		}},
		{"Reshape", []compute.OpType{compute.OpTypeReshape}, func(d *drawer) instance {
			dims := d.dims(1, 3)
			to := slices.Clone(dims)
			slices.Reverse(to)
			return instance{inputs: []array{d.fill(d.floatDType(), dims, -3, 3)}, grad: []int{0},
				fn: one(func(x *graph.Node) *graph.Node { return graph.Reshape(x, append(to, 1)...) })}
		}},
		{"Reverse", []compute.OpType{compute.OpTypeReverse}, func(d *drawer) instance {
			dims := d.dims(1, 3)
			axes := d.someAxes(len(dims))
			return instance{inputs: []array{d.fill(d.floatDType(), dims, -3, 3)}, grad: []int{0},
				fn: one(func(x *graph.Node) *graph.Node { return graph.Reverse(x, axes...) })}
		}},
		{"Transpose", []compute.OpType{compute.OpTypeTranspose}, func(d *drawer) instance {
			dims := d.dims(1, 4)
			permutation := d.rng.Perm(len(dims))
			return instance{inputs: []array{d.fill(d.floatDType(), dims, -3, 3)}, grad: []int{0},
				fn: one(func(x *graph.Node) *graph.Node { return graph.TransposeAllAxes(x, permutation...) })}
		}},
		{"Slice", []compute.OpType{compute.OpTypeSlice}, drawSlice},
		{"DynamicSlice", []compute.OpType{compute.OpTypeDynamicSlice}, drawDynamicSlice},
		{"DynamicUpdateSlice", []compute.OpType{compute.OpTypeDynamicUpdateSlice}, drawDynamicUpdateSlice},
		{"Gather", []compute.OpType{compute.OpTypeGather}, drawGather},
		{"Gather slices", []compute.OpType{compute.OpTypeGather}, drawGatherSlices},
		{"ScatterSum", []compute.OpType{compute.OpTypeScatterSum}, func(d *drawer) instance { return drawScatter(d, graph.ScatterSum) }},
		{"ScatterMax", []compute.OpType{compute.OpTypeScatterMax}, func(d *drawer) instance { return drawScatter(d, graph.ScatterMax) }},
		{"ScatterMin", []compute.OpType{compute.OpTypeScatterMin}, func(d *drawer) instance { return drawScatter(d, graph.ScatterMin) }},
	}
}

// someAxes draws at least one axis, in increasing order.
func (d *drawer) someAxes(rank int) (axes []int) {
	for a := range rank {
		if d.chance() {
			axes = append(axes, a)
		}
	}
	if len(axes) == 0 {
		axes = append(axes, d.between(0, rank-1))
	}
	return axes
}

func drawBroadcast(d *drawer) instance {
	dims := d.dims(0, 2)
	to := slices.Clone(dims)
	var newAxes []int
	for i := range to {
		if d.chance() {
			dims[i], to[i] = 1, d.between(1, 4)
		}
	}
	if d.chance() {
		newAxes, to = []int{0}, append([]int{d.between(1, 4)}, to...)
	}
	return instance{inputs: []array{d.fill(d.floatDType(), dims, -3, 3)}, grad: []int{0},
		fn: one(func(x *graph.Node) *graph.Node {
			if newAxes == nil {
				return graph.BroadcastToDims(x, to...)
			}
			return graph.ExpandAndBroadcast(x, to, newAxes)
		})}
}

func drawConcatenate(d *drawer) instance {
	dims, dtype := d.dims(1, 3), d.floatDType()
	axis := d.between(0, len(dims)-1)
	var in instance
	for i := range d.between(1, 3) {
		part := slices.Clone(dims)
		part[axis] = d.between(1, 4)
		in.inputs = append(in.inputs, d.fill(dtype, part, -3, 3))
		in.grad = append(in.grad, i)
	}
	in.fn = func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
		return []*graph.Node{graph.Concatenate(xs, axis)}
	}
	return in
}

func drawPad(d *drawer) instance {
	dims, dtype := d.dims(1, 3), d.floatDType()
	config := make([]compute.PadAxis, d.between(1, len(dims)))
	kept, all := 1, 1
	for i, n := range dims {
		padded := n
		if i < len(config) {
			c := compute.PadAxis{Start: d.between(0, 2), End: d.between(0, 2), Interior: d.between(0, 2)}
			config[i], padded = c, c.Start+n+(n-1)*c.Interior+c.End
		}
		kept, all = kept*n, all*padded
	}
	in := instance{inputs: []array{d.fill(dtype, dims, -3, 3), d.fill(dtype, nil, -3, 3)}, grad: []int{0, 1}, loose: 4,
		fn: two(func(x, fill *graph.Node) *graph.Node { return graph.Pad(x, fill, config...) })}
	// The gradient of fill is a sum of what was filled, up to thousands: the plugin rounds a bfloat16 sum after each term, the
	// oracle once, so that they agree on few. The wider types have all of them.
	if dtype == dtypes.BFloat16 && all-kept > 16 {
		in.grad = []int{0}
	}
	return in
}

func drawSlice(d *drawer) instance {
	dims := d.dims(1, 3)
	specs := make([]graph.SliceAxisSpec, len(dims))
	for i, n := range dims {
		start := d.between(0, n-1)
		specs[i] = graph.AxisRange(start, d.between(start+1, n)).Stride(d.between(1, 2))
	}
	return instance{inputs: []array{d.fill(d.floatDType(), dims, -3, 3)}, grad: []int{0},
		fn: one(func(x *graph.Node) *graph.Node { return graph.Slice(x, specs...) })}
}

// window draws sizes within dims and starts around them, out of range too; clamped are where they take effect.
func (d *drawer) window(dims []int) (sizes, starts, clamped []int) {
	for _, n := range dims {
		size, start := d.between(1, n), d.between(-1, n)
		sizes, starts = append(sizes, size), append(starts, start)
		clamped = append(clamped, min(max(start, 0), n-size))
	}
	return sizes, starts, clamped
}

// startScalars makes int32 starts, or a mix of integer dtypes.
func (d *drawer) startScalars(starts []int) (scalars []array) {
	mixed := d.chance()
	for i, s := range starts {
		dtype := dtypes.Int32
		if mixed && i%2 == 1 {
			dtype = dtypes.Int64
		}
		scalars = append(scalars, d.scalar(dtype, s))
	}
	return scalars
}

func drawDynamicSlice(d *drawer) instance {
	dims := d.dims(1, 3)
	sizes, starts, clamped := d.window(dims)
	specs := make([]graph.SliceAxisSpec, len(dims))
	for i := range dims {
		specs[i] = graph.AxisRange(clamped[i], clamped[i]+sizes[i])
	}
	return instance{
		inputs: append([]array{d.fill(d.floatDType(), dims, -3, 3)}, d.startScalars(starts)...), grad: []int{0},
		fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
			return []*graph.Node{graph.DynamicSlice(xs[0], xs[1:], sizes)}
		},
		ref: one(func(x *graph.Node) *graph.Node { return graph.Slice(x, specs...) }),
	}
}

func drawDynamicUpdateSlice(d *drawer) instance {
	dims, dtype := d.dims(1, 3), d.floatDType()
	sizes, starts, clamped := d.window(dims)
	edges := make([]compute.PadAxis, len(dims))
	for i := range dims {
		edges[i] = compute.PadAxis{Start: clamped[i], End: dims[i] - clamped[i] - sizes[i]}
	}
	return instance{
		inputs: append([]array{d.fill(dtype, dims, -3, 3), d.fill(dtype, sizes, -3, 3)}, d.startScalars(starts)...), grad: []int{0, 1},
		fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
			return []*graph.Node{graph.DynamicUpdateSlice(xs[0], xs[1], xs[2:])}
		},
		ref: func(g *graph.Graph, xs []*graph.Node) []*graph.Node {
			zero := graph.Scalar(g, dtype, 0)
			inside := graph.Pad(graph.OnesLike(xs[1]), zero, edges...)
			return []*graph.Node{graph.Where(graph.GreaterThan(inside, graph.ZerosLike(inside)), graph.Pad(xs[1], zero, edges...), xs[0])}
		},
	}
}

// indices draws index vectors into the first n dimensions.
func (d *drawer) indices(dims []int, n int, prefix ...int) array {
	a := newArray(shapes.Make(pickOne(d, dtypes.Int32, dtypes.Int64, dtypes.Uint32), append(prefix, n)...))
	for i := range a.shape.Size() {
		a.setBits(i, uint64(d.rng.IntN(dims[i%n])))
	}
	return a
}

func drawGather(d *drawer) instance {
	dims := d.dims(1, 3)
	return instance{
		inputs: []array{d.fill(d.floatDType(), dims, -3, 3), d.indices(dims, d.between(1, len(dims)), d.dims(0, 2)...)},
		grad:   []int{0}, loose: 2,
		fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node { return []*graph.Node{graph.Gather(xs[0], xs[1])} },
	}
}

// drawGatherSlices takes overlapping slices of one axis. Its values and gradient are plain loops: the oracle adds up
// overlapping windows wrongly.
func drawGatherSlices(d *drawer) instance {
	rows, cols := d.between(1, 3), d.between(2, 5)
	size, n := d.between(1, cols-1), d.between(1, 3)
	starts := newArray(shapes.Make(dtypes.Int32, n, 1))
	for i := range n {
		starts.setBits(i, uint64(d.rng.IntN(cols-size+1)))
	}
	return instance{
		inputs: []array{d.fill(dtypes.Float32, []int{rows, cols}, -3, 3), starts}, grad: []int{0}, loose: 2,
		fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
			return []*graph.Node{graph.GatherSlices(xs[0], []int{1}, xs[1], []int{size}, false)}
		},
		want: func(in, w []array) []array {
			out, grad := newArray(shapes.Make(dtypes.Float32, n, rows, size)), newArray(in[0].shape)
			for i := range out.shape.Size() {
				from := i/size%rows*cols + int(in[1].int(i/(size*rows))) + i%size
				out.setFloat(i, in[0].float(from))
				grad.setFloat(from, grad.float(from)+w[0].float(i))
			}
			return []array{out, grad}
		},
	}
}

func drawScatter(d *drawer, scatter func(operand, indices, updates *graph.Node, sorted, unique bool) *graph.Node) instance {
	dims, dtype := d.dims(1, 3), d.floatDType()
	n, prefix := d.between(1, len(dims)), d.dims(0, 2)
	updates := append(slices.Clone(prefix), dims[n:]...)
	return instance{
		inputs: []array{d.fill(dtype, dims, -3, 3), d.indices(dims, n, prefix...), d.fill(dtype, updates, -3, 3)}, grad: []int{0, 2}, loose: 2,
		fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
			return []*graph.Node{scatter(xs[0], xs[1], xs[2], false, false)}
		},
	}
}
