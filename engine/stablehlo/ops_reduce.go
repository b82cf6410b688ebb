package stablehlo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
)

// reduction is an associative operation and its identity element.
type reduction struct {
	mnemonic string
	identity func(dtypes.DType) string
	takes    func(dtypes.DType) bool
}

func isNumber(d dtypes.DType) bool { return d != dtypes.Bool }

func isBool(d dtypes.DType) bool { return d == dtypes.Bool }

var (
	sumReduction        = reduction{"stablehlo.add", zeroText, isNumber}
	productReduction    = reduction{"stablehlo.multiply", oneText, isNumber}
	maxReduction        = reduction{"stablehlo.maximum", lowestText, isNumber}
	minReduction        = reduction{"stablehlo.minimum", highestText, isNumber}
	bitwiseAndReduction = reduction{"stablehlo.and", allOnesText, dtypes.DType.IsInt}
	bitwiseOrReduction  = reduction{"stablehlo.or", zeroText, dtypes.DType.IsInt}
	bitwiseXorReduction = reduction{"stablehlo.xor", zeroText, dtypes.DType.IsInt}
	logicalAndReduction = reduction{"stablehlo.and", allOnesText, isBool}
	logicalOrReduction  = reduction{"stablehlo.or", zeroText, isBool}
	logicalXorReduction = reduction{"stablehlo.xor", zeroText, isBool}
)

func (f *function) ReduceSum(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceSum", sumReduction, x, axes)
}

func (f *function) ReduceProduct(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceProduct", productReduction, x, axes)
}

func (f *function) ReduceMax(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceMax", maxReduction, x, axes)
}

func (f *function) ReduceMin(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceMin", minReduction, x, axes)
}

func (f *function) ReduceBitwiseAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceBitwiseAnd", bitwiseAndReduction, x, axes)
}

func (f *function) ReduceBitwiseOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceBitwiseOr", bitwiseOrReduction, x, axes)
}

func (f *function) ReduceBitwiseXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceBitwiseXor", bitwiseXorReduction, x, axes)
}

func (f *function) ReduceLogicalAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceLogicalAnd", logicalAndReduction, x, axes)
}

func (f *function) ReduceLogicalOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceLogicalOr", logicalOrReduction, x, axes)
}

func (f *function) ReduceLogicalXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce("ReduceLogicalXor", logicalXorReduction, x, axes)
}

// reduce folds the axes, all of them when none is given.
func (f *function) reduce(what string, r reduction, x compute.Value, axes []int) (compute.Value, error) {
	in, err := f.inputs(what, x)
	if err != nil {
		return nil, err
	}
	dtype := in[0].shape.DType
	if !r.takes(dtype) {
		return nil, reject(what, in, "does not take %s", dtype)
	}
	if err := checkAxes(in[0].shape, axes); err != nil {
		return nil, failed(what, in, err)
	}
	if in[0].shape.IsScalar() {
		return in[0], nil
	}
	axes = slices.Clone(axes)
	if len(axes) == 0 {
		for a := range in[0].shape.Rank() {
			axes = append(axes, a)
		}
	}
	slices.Sort(axes)
	shape, err := shapeinference.Reduce(in[0].shape, axes)
	if err != nil {
		return nil, failed(what, in, err)
	}
	o := f.add(what, "stablehlo.reduce", []*value{in[0], f.scalar(dtype, r.identity(dtype))}, shape)
	o.arguments = axes
	o.print = func(p *printer, o *op) {
		p.text("stablehlo.reduce(", p.operandList(o, o.operands[:1]), " init: ", p.operandList(o, o.operands[1:]), ") applies ", r.mnemonic,
			" across dimensions = ", intList(axes), " : (", typeList(o.operands), ") -> ", tensorType(o.results[0].shape))
	}
	return o.results[0], nil
}

// reducer is the region `(a, b) -> a ∘ b` on scalars.
func (f *function) reducer(what string, r reduction, dtype dtypes.DType) *function {
	c := f.newClosure()
	scalar := shapes.Make(dtype)
	a, b := c.addParam("a", scalar), c.addParam("b", scalar)
	c.finish(c.sameType(what, r.mnemonic, scalar, a, b))
	return c
}

// ArgMinMax gives the index of the smallest or largest element along an axis: the first of equals, or the first NaN.
func (f *function) ArgMinMax(x compute.Value, axis int, outputDType dtypes.DType, isMin bool) (compute.Value, error) {
	in, err := f.inputs("ArgMinMax", x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ArgMinMax(in[0].shape, axis, outputDType)
	if err != nil {
		return nil, failed("ArgMinMax", in, err)
	}
	if err := checkShape(shape); err != nil {
		return nil, failed("ArgMinMax", in, err)
	}
	if in[0].shape.Dimensions[axis] == 0 {
		return nil, reject("ArgMinMax", in, "axis %d is empty", axis)
	}
	dtype, indexDType := in[0].shape.DType, dtypes.Int32
	if outputDType.Bits() == 64 {
		indexDType = dtypes.Int64 // Narrow outputs count in 32 bits first: their iota would wrap.
	}
	start := lowestText(dtype)
	if isMin {
		start = highestText(dtype)
	}
	operands := []*value{in[0], f.iota(withDType(in[0].shape, indexDType), axis), f.scalar(dtype, start), f.scalar(indexDType, "0")}
	o := f.add("ArgMinMax", "stablehlo.reduce", operands, withDType(shape, dtype), withDType(shape, indexDType))
	o.regions, o.isolated = []*function{f.argReducer(dtype, indexDType, isMin)}, true
	o.print = printGeneric("dimensions = " + intArray([]int{axis}))
	return f.convert(o.results[1], outputDType), nil
}

// argReducer is the region that keeps the better of two (value, index) pairs.
func (f *function) argReducer(dtype, indexDType dtypes.DType, isMin bool) *function {
	const what = "ArgMinMax"
	c := f.newClosure()
	x, xi := c.addParam("x", shapes.Make(dtype)), c.addParam("xi", shapes.Make(indexDType))
	y, yi := c.addParam("y", shapes.Make(dtype)), c.addParam("yi", shapes.Make(indexDType))
	direction := "GT"
	if isMin {
		direction = "LT"
	}
	boolean := shapes.Make(dtypes.Bool)
	better := c.compareValues(what, direction, false, x, y)
	equal := c.compareValues(what, "EQ", false, x, y)
	if dtype.IsFloat() {
		xNaN, yNaN := c.compareValues(what, "NE", false, x, x), c.compareValues(what, "NE", false, y, y)
		yIsNumber := c.sameType(what, "stablehlo.not", boolean, yNaN)
		better = c.sameType(what, "stablehlo.or", boolean, better, c.sameType(what, "stablehlo.and", boolean, xNaN, yIsNumber))
		equal = c.sameType(what, "stablehlo.or", boolean, equal, c.sameType(what, "stablehlo.and", boolean, xNaN, yNaN))
	}
	earlier := c.compareValues(what, "LT", false, xi, yi)
	keep := c.sameType(what, "stablehlo.or", boolean, better, c.sameType(what, "stablehlo.and", boolean, equal, earlier))
	c.finish(c.selectValues(what, keep, x, y), c.selectValues(what, keep, xi, yi))
	return c
}

// ReduceWindow folds sliding windows; nil strides are the window's dimensions.
func (f *function) ReduceWindow(input compute.Value, reductionType compute.ReduceOpType,
	windowDimensions, strides, inputDilations, windowDilations []int, paddings [][2]int) (compute.Value, error) {
	in, err := f.inputs("ReduceWindow", input)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ReduceWindow(in[0].shape, windowDimensions, strides, inputDilations, windowDilations, paddings)
	if err != nil {
		return nil, failed("ReduceWindow", in, err)
	}
	var r reduction
	switch reductionType {
	case compute.ReduceOpSum:
		r = sumReduction
	case compute.ReduceOpProduct:
		r = productReduction
	case compute.ReduceOpMax:
		r = maxReduction
	case compute.ReduceOpMin:
		r = minReduction
	default:
		return nil, reject("ReduceWindow", in, "reduction %s is not supported", reductionType)
	}
	dtype, rank := shape.DType, shape.Rank()
	if !r.takes(dtype) {
		return nil, reject("ReduceWindow", in, "does not take %s", dtype)
	}
	if rank == 0 {
		return in[0], nil
	}
	window := orOnes(windowDimensions, rank)
	if len(strides) == 0 {
		strides = window
	}
	o := f.add("ReduceWindow", "stablehlo.reduce_window", []*value{in[0], f.scalar(dtype, r.identity(dtype))}, shape)
	o.regions, o.isolated = []*function{f.reducer("ReduceWindow", r, dtype)}, true
	o.print = printGeneric(
		"base_dilations = "+intArray(orOnes(inputDilations, rank)),
		"padding = "+paddingText(orZeroPairs(paddings, rank)),
		"window_dilations = "+intArray(orOnes(windowDilations, rank)),
		"window_dimensions = "+intArray(window),
		"window_strides = "+intArray(strides))
	return o.results[0], nil
}

// paddingText prints an Nx2 tensor attribute.
func paddingText(paddings [][2]int) string {
	parts := make([]string, len(paddings))
	for i, p := range paddings {
		parts[i] = intList(p[:])
	}
	return fmt.Sprintf("dense<[%s]> : tensor<%dx2xi64>", strings.Join(parts, ", "), len(paddings))
}

// SelectAndScatterMax adds each element of source to the largest element of its window of operand.
func (f *function) SelectAndScatterMax(operand, source compute.Value, windowDimensions, windowStrides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter("SelectAndScatterMax", "GE", operand, source, windowDimensions, windowStrides, paddings)
}

// SelectAndScatterMin adds each element of source to the smallest element of its window of operand.
func (f *function) SelectAndScatterMin(operand, source compute.Value, windowDimensions, windowStrides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter("SelectAndScatterMin", "LE", operand, source, windowDimensions, windowStrides, paddings)
}

func (f *function) selectAndScatter(what, direction string, operand, source compute.Value, window, strides []int, paddings [][2]int) (compute.Value, error) {
	in, err := f.inputs(what, operand, source)
	if err != nil {
		return nil, err
	}
	windows, err := shapeinference.ReduceWindow(in[0].shape, window, strides, nil, nil, paddings)
	if err != nil {
		return nil, failed(what, in, err)
	}
	dtype, rank := in[0].shape.DType, in[0].shape.Rank()
	if dtype != in[1].shape.DType || !windows.EqualDimensions(in[1].shape) || rank == 0 || dtype == dtypes.Bool {
		return nil, reject(what, in, "the source must be %s, one number for each window", shapeText(windows))
	}
	chosen := f.newClosure()
	a, b := chosen.addParam("a", shapes.Make(dtype)), chosen.addParam("b", shapes.Make(dtype))
	chosen.finish(chosen.compareValues(what, direction, false, a, b))
	window = orOnes(window, rank)
	if len(strides) == 0 {
		strides = window
	}
	o := f.add(what, "stablehlo.select_and_scatter", []*value{in[0], in[1], f.scalar(dtype, zeroText(dtype))}, in[0].shape)
	o.regions, o.isolated = []*function{chosen, f.reducer(what, sumReduction, dtype)}, true
	o.print = printGeneric(
		"padding = "+paddingText(orZeroPairs(paddings, rank)),
		"window_dimensions = "+intArray(window),
		"window_strides = "+intArray(strides))
	return o.results[0], nil
}
