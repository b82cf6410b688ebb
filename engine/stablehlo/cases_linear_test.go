package stablehlo_test

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

func linearCases() []opCase {
	return []opCase{
		{"DotGeneral", []compute.OpType{compute.OpTypeDotGeneral}, drawDot},
		{"ConvGeneral", []compute.OpType{compute.OpTypeConvGeneral}, drawConv},
	}
}

// drawDot draws batch, contracting and cross axes in any order, and the dtypes of the sum and the result.
func drawDot(d *drawer) instance {
	dtype := pickOne(d, dtypes.Float32, dtypes.BFloat16, dtypes.BFloat16, dtypes.Float64)
	batch, contract := d.dims(0, 1), d.dims(1, 2)
	lhsCross, rhsCross := d.dims(0, 2), d.dims(0, 2)
	lhsDims, lhsBatch, lhsContract := d.arrange(batch, contract, lhsCross)
	rhsDims, rhsBatch, rhsContract := d.arrange(batch, contract, rhsCross)
	mode := d.between(0, 2)
	grad := []int{0, 1}
	if !slices.IsSorted(lhsContract) || !slices.IsSorted(rhsContract) {
		grad = nil // GoMLX's gradient takes contracting axes in increasing order only.
	}
	return instance{
		inputs: []array{d.fill(dtype, lhsDims, -1, 1), d.fill(dtype, rhsDims, -1, 1)}, grad: grad, loose: 8,
		fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
			dot := graph.Dot(xs[0], xs[1])
			if dtype == dtypes.BFloat16 {
				switch mode {
				case 0:
					dot = dot.WithAccumulatorDType(dtypes.InvalidDType)
				case 1:
					dot = dot.WithOutputDType(dtypes.Float32)
				}
			}
			return []*graph.Node{dot.General(lhsContract, lhsBatch, rhsContract, rhsBatch)}
		},
	}
}

// arrange puts the three kinds of axes in a random order and tells where the batch and contracting ones went.
func (d *drawer) arrange(batch, contract, cross []int) (dims, batchAxes, contractAxes []int) {
	all := append(append(append([]int{}, batch...), contract...), cross...)
	place := d.rng.Perm(len(all))
	dims = make([]int, len(all))
	for i, n := range all {
		dims[place[i]] = n
	}
	return dims, place[:len(batch)], place[len(batch) : len(batch)+len(contract)]
}

func drawConv(d *drawer) instance {
	groups := pickOne(d, 1, 1, 2)
	spatial, padded := d.between(1, 2), d.between(0, 1)
	batch, in, out := d.between(1, 2), d.between(1, 2), groups*d.between(1, 2)
	axes := compute.ConvolveAxesConfig{InputBatch: 0, InputChannels: spatial + 1, KernelInputChannels: spatial, KernelOutputChannels: spatial + 1,
		OutputBatch: 0, OutputChannels: spatial + 1}
	inputDims, kernelDims := []int{batch}, []int{}
	var strides []int
	var paddings [][2]int
	for i := range spatial {
		axes.InputSpatial, axes.OutputSpatial = append(axes.InputSpatial, i+1), append(axes.OutputSpatial, i+1)
		axes.KernelSpatial = append(axes.KernelSpatial, i)
		kernel, stride := d.between(1, 3), d.between(1, 2)
		padding := [2]int{padded * d.between(0, 1), padded * d.between(0, 1)}
		// GoMLX's gradient wants no paddings, and strides that end at the edge.
		inputDims = append(inputDims, kernel+stride*d.between(1, 3)-padding[0]-padding[1])
		kernelDims, strides, paddings = append(kernelDims, kernel), append(strides, stride), append(paddings, padding)
	}
	inputDims, kernelDims = append(inputDims, in*groups), append(kernelDims, in, out)
	inst := instance{
		inputs: []array{d.fill(dtypes.Float32, inputDims, -1, 1), d.fill(dtypes.Float32, kernelDims, -1, 1)}, loose: 8,
		fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
			return []*graph.Node{graph.ConvGeneral(xs[0], xs[1], axes, strides, paddings, nil, nil, groups, 1)}
		},
	}
	if groups == 1 && padded == 0 {
		inst.grad = []int{0, 1}
	}
	return inst
}
