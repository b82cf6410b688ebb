package stablehlo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
)

// DotGeneral contracts, crosses and batches axes. The result's dtype is the inputs' unless OutputDType is set. An
// AccumulatorDType or OutputDType wider than the inputs becomes a dot_general of mixed types, so that bf16 inputs are
// multiplied as bf16 and summed in f32; the inputs are never converted. f32 inputs are multiplied as f32 on every
// platform.
func (f *function) DotGeneral(lhs compute.Value, lhsContractingAxes, lhsBatchAxes []int,
	rhs compute.Value, rhsContractingAxes, rhsBatchAxes []int, config compute.DotGeneralConfig) (compute.Value, error) {
	in, err := f.inputs("DotGeneral", lhs, rhs)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DotGeneral(in[0].shape, lhsContractingAxes, lhsBatchAxes, in[1].shape, rhsContractingAxes, rhsBatchAxes, config)
	if err != nil {
		return nil, failed("DotGeneral", in, err)
	}
	accumulator := shape.DType
	if config.AccumulatorDType != dtypes.InvalidDType {
		accumulator = config.AccumulatorDType
	}
	from := in[0].shape.DType
	for _, dtype := range []dtypes.DType{accumulator, shape.DType} {
		if err := checkShape(withDType(shape, dtype)); err != nil {
			return nil, failed("DotGeneral", in, err)
		}
		if dtype.IsFloat() != from.IsFloat() || dtype == dtypes.Bool {
			return nil, reject("DotGeneral", in, "cannot give %s from %s operands", dtype, from)
		}
	}
	var details string
	if len(lhsBatchAxes) > 0 {
		details = ", batching_dims = " + intList(lhsBatchAxes) + " x " + intList(rhsBatchAxes)
	}
	details += ", contracting_dims = " + intList(lhsContractingAxes) + " x " + intList(rhsContractingAxes)
	if from == dtypes.Float32 {
		// A TPU's default for float32 is one pass of bfloat16 products.
		details += ", precision = [HIGHEST, HIGHEST]"
	}
	o := f.add("DotGeneral", "stablehlo.dot_general", in, withDType(shape, accumulator))
	o.print = printFunctional(details)
	return f.convert(o.results[0], shape.DType), nil
}

// Gather takes slices of operand at startIndices, which are clamped into range.
func (f *function) Gather(operand, startIndices compute.Value, indexVectorAxis int,
	offsetOutputAxes, collapsedSliceAxes, startIndexMap, sliceSizes []int, indicesAreSorted bool) (compute.Value, error) {
	in, err := f.inputs("Gather", operand, startIndices)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Gather(in[0].shape, in[1].shape, indexVectorAxis, offsetOutputAxes, collapsedSliceAxes,
		startIndexMap, sliceSizes, indicesAreSorted)
	if err != nil {
		return nil, failed("Gather", in, err)
	}
	if !in[1].shape.DType.IsInt() {
		return nil, reject("Gather", in, "the indices must be integers")
	}
	o := f.add("Gather", "stablehlo.gather", in, shape)
	o.print = printGeneric(
		dimensionNumbers("dimension_numbers = #stablehlo.gather", indexVectorAxis,
			dimList{"offset_dims", offsetOutputAxes}, dimList{"collapsed_slice_dims", collapsedSliceAxes}, dimList{"start_index_map", startIndexMap}),
		"indices_are_sorted = "+strconv.FormatBool(indicesAreSorted),
		"slice_sizes = "+intArray(sliceSizes))
	return o.results[0], nil
}

// dimList is one list of a dimension-numbers attribute.
type dimList struct {
	name string
	dims []int
}

// dimensionNumbers prints a gather or scatter attribute; MLIR leaves empty lists out.
func dimensionNumbers(head string, indexVectorAxis int, lists ...dimList) string {
	var parts []string
	for _, l := range lists {
		if len(l.dims) > 0 {
			parts = append(parts, l.name+" = "+intList(l.dims))
		}
	}
	parts = append(parts, fmt.Sprintf("index_vector_dim = %d", indexVectorAxis))
	return head + "<" + strings.Join(parts, ", ") + ">"
}

// ScatterSum adds updates at scatterIndices; updates that fall outside are dropped.
func (f *function) ScatterSum(operand, scatterIndices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, indicesAreSorted, uniqueIndices bool) (compute.Value, error) {
	return f.scatter("ScatterSum", sumReduction, operand, scatterIndices, updates, indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes, indicesAreSorted, uniqueIndices)
}

// ScatterMax takes the maximum of the operand and the updates at scatterIndices.
func (f *function) ScatterMax(operand, scatterIndices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, indicesAreSorted, uniqueIndices bool) (compute.Value, error) {
	return f.scatter("ScatterMax", maxReduction, operand, scatterIndices, updates, indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes, indicesAreSorted, uniqueIndices)
}

// ScatterMin takes the minimum of the operand and the updates at scatterIndices.
func (f *function) ScatterMin(operand, scatterIndices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, indicesAreSorted, uniqueIndices bool) (compute.Value, error) {
	return f.scatter("ScatterMin", minReduction, operand, scatterIndices, updates, indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes, indicesAreSorted, uniqueIndices)
}

func (f *function) scatter(what string, r reduction, operand, indices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, sorted, unique bool) (compute.Value, error) {
	in, err := f.inputs(what, operand, indices, updates)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Scatter(in[0].shape, in[1].shape, in[2].shape, indexVectorAxis, updateWindowAxes,
		insertedWindowAxes, scatterAxesToOperandAxes)
	if err != nil {
		return nil, failed(what, in, err)
	}
	if !in[1].shape.DType.IsInt() || in[0].shape.DType != in[2].shape.DType {
		return nil, reject(what, in, "the indices must be integers and the updates of the operand's dtype")
	}
	o := f.add(what, "stablehlo.scatter", in, shape)
	o.regions, o.isolated = []*function{f.reducer(what, r, shape.DType)}, true
	o.print = printGeneric(
		"indices_are_sorted = "+strconv.FormatBool(sorted),
		dimensionNumbers("scatter_dimension_numbers = #stablehlo.scatter", indexVectorAxis,
			dimList{"update_window_dims", updateWindowAxes}, dimList{"inserted_window_dims", insertedWindowAxes},
			dimList{"scatter_dims_to_operand_dims", scatterAxesToOperandAxes}),
		"unique_indices = "+strconv.FormatBool(unique))
	return o.results[0], nil
}

// ConvGeneral is the convolution with strides, paddings, dilations and groups.
func (f *function) ConvGeneral(input, kernel compute.Value, axes compute.ConvolveAxesConfig, strides []int, paddings [][2]int,
	inputDilations, kernelDilations []int, channelGroupCount, batchGroupCount int) (compute.Value, error) {
	in, err := f.inputs("ConvGeneral", input, kernel)
	if err != nil {
		return nil, err
	}
	channelGroupCount, batchGroupCount = max(channelGroupCount, 1), max(batchGroupCount, 1)
	shape, err := shapeinference.ConvGeneral(in[0].shape, in[1].shape, axes, strides, paddings, inputDilations, kernelDilations,
		channelGroupCount, batchGroupCount)
	if err != nil {
		return nil, failed("ConvGeneral", in, err)
	}
	if in[0].shape.DType != in[1].shape.DType {
		return nil, reject("ConvGeneral", in, "input and kernel must have one dtype")
	}
	spatial := in[0].shape.Rank() - 2
	window := fmt.Sprintf("window = {stride = %s, pad = %s, lhs_dilate = %s, rhs_dilate = %s}",
		intList(orOnes(strides, spatial)), pairList(orZeroPairs(paddings, spatial)), intList(orOnes(inputDilations, spatial)), intList(orOnes(kernelDilations, spatial)))
	numbers := "dim_numbers = " + convDims(axes.InputBatch, "b", axes.InputChannels, "f", axes.InputSpatial) +
		"x" + convDims(axes.KernelInputChannels, "i", axes.KernelOutputChannels, "o", axes.KernelSpatial) +
		"->" + convDims(axes.OutputBatch, "b", axes.OutputChannels, "f", axes.OutputSpatial)
	o := f.add("ConvGeneral", "stablehlo.convolution", in, shape)
	o.print = func(p *printer, o *op) {
		p.text("stablehlo.convolution(", p.operandList(o, o.operands), ") ", numbers, ", ", window,
			fmt.Sprintf(" {batch_group_count = %d : i64, feature_group_count = %d : i64}", batchGroupCount, channelGroupCount),
			" : (", typeList(o.operands), ") -> ", tensorType(shape))
	}
	return o.results[0], nil
}

// convDims prints [b, 0, 1, f] in the order of the tensor's axes.
func convDims(axisA int, nameA string, axisB int, nameB string, spatial []int) string {
	names := make([]string, 2+len(spatial))
	names[axisA], names[axisB] = nameA, nameB
	for i, axis := range spatial {
		names[axis] = strconv.Itoa(i)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func orOnes(values []int, n int) []int {
	if len(values) == 0 {
		return repeated(1, n)
	}
	return values
}

func orZeroPairs(values [][2]int, n int) [][2]int {
	if len(values) == 0 {
		return make([][2]int, n)
	}
	return values
}

func pairList(pairs [][2]int) string {
	parts := make([]string, len(pairs))
	for i, p := range pairs {
		parts[i] = intList(p[:])
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
