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

// BroadcastInDim maps axis i of x to broadcastAxes[i] of the output.
func (f *function) BroadcastInDim(x compute.Value, outputShape shapes.Shape, broadcastAxes []int) (compute.Value, error) {
	in, err := f.inputs("BroadcastInDim", x)
	if err != nil {
		return nil, err
	}
	shape := withDType(outputShape, in[0].shape.DType)
	if err := shapeinference.BroadcastInDim(in[0].shape, shape, broadcastAxes, nil); err != nil {
		return nil, failed("BroadcastInDim", in, err)
	}
	if in[0].shape.EqualDimensions(shape) && slices.IsSorted(broadcastAxes) {
		return in[0], nil
	}
	return f.broadcastInDim("BroadcastInDim", in[0], shape, broadcastAxes), nil
}

// Reshape keeps the row-major order of the elements.
func (f *function) Reshape(x compute.Value, dimensions ...int) (compute.Value, error) {
	in, err := f.inputs("Reshape", x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Reshape(in[0].shape, dimensions)
	if err != nil {
		return nil, failed("Reshape", in, err)
	}
	return f.reshape(in[0], shape), nil
}

func (f *function) reshape(x *value, shape shapes.Shape) *value {
	if x.shape.EqualDimensions(shape) {
		return x
	}
	o := f.add("Reshape", "stablehlo.reshape", []*value{x}, shape)
	o.print = printFunctional("")
	return o.results[0]
}

// Transpose gives output axis i the input axis permutation[i].
func (f *function) Transpose(x compute.Value, permutation ...int) (compute.Value, error) {
	in, err := f.inputs("Transpose", x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Transpose(in[0].shape, permutation)
	if err != nil {
		return nil, failed("Transpose", in, err)
	}
	if slices.IsSorted(permutation) {
		return in[0], nil
	}
	o := f.add("Transpose", "stablehlo.transpose", in, shape)
	o.print = printFunctional(", dims = " + intList(permutation))
	return o.results[0], nil
}

// Reverse flips the given axes.
func (f *function) Reverse(x compute.Value, axes ...int) (compute.Value, error) {
	in, err := f.inputs("Reverse", x)
	if err != nil {
		return nil, err
	}
	if err := checkAxes(in[0].shape, axes); err != nil {
		return nil, failed("Reverse", in, err)
	}
	if len(axes) == 0 {
		return in[0], nil
	}
	o := f.add("Reverse", "stablehlo.reverse", in, in[0].shape)
	o.print = func(p *printer, o *op) {
		p.text("stablehlo.reverse ", p.operandList(o, o.operands), ", dims = ", intList(axes), " : ", tensorType(o.results[0].shape))
	}
	return o.results[0], nil
}

// checkAxes reports axes out of range or named twice.
func checkAxes(s shapes.Shape, axes []int) error {
	seen := make([]bool, s.Rank())
	for _, a := range axes {
		if a < 0 || a >= s.Rank() {
			return fmt.Errorf("axis %d is out of range for rank %d", a, s.Rank())
		}
		if seen[a] {
			return fmt.Errorf("axis %d is named twice", a)
		}
		seen[a] = true
	}
	return nil
}

// Concatenate joins the operands along an axis.
func (f *function) Concatenate(axis int, operands ...compute.Value) (compute.Value, error) {
	in, err := f.inputs("Concatenate", operands...)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Concatenate(shapesOf(in), axis)
	if err != nil {
		return nil, failed("Concatenate", in, err)
	}
	if len(in) == 1 {
		return in[0], nil
	}
	o := f.add("Concatenate", "stablehlo.concatenate", in, shape)
	o.print = printFunctional(fmt.Sprintf(", dim = %d", axis))
	return o.results[0], nil
}

// Pad adds fillValue before, after and between the elements of each axis; negative amounts cut.
func (f *function) Pad(x, fillValue compute.Value, axesConfig ...compute.PadAxis) (compute.Value, error) {
	in, err := f.inputs("Pad", x, fillValue)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Pad(in[0].shape, axesConfig...)
	if err != nil {
		return nil, failed("Pad", in, err)
	}
	if !in[1].shape.IsScalar() || in[1].shape.DType != in[0].shape.DType {
		return nil, reject("Pad", in, "the fill value must be a scalar of the operand's dtype")
	}
	rank := in[0].shape.Rank()
	low, high, interior := make([]int, rank), make([]int, rank), make([]int, rank)
	for i, c := range axesConfig {
		low[i], high[i], interior[i] = c.Start, c.End, c.Interior
	}
	o := f.add("Pad", "stablehlo.pad", in, shape)
	o.arguments = axesConfig
	o.print = printFunctional(", low = " + intList(low) + ", high = " + intList(high) + ", interior = " + intList(interior))
	return o.results[0], nil
}

// Slice takes starts:limits:strides of each axis; nil strides are 1.
func (f *function) Slice(x compute.Value, starts, limits, strides []int) (compute.Value, error) {
	in, err := f.inputs("Slice", x)
	if err != nil {
		return nil, err
	}
	if strides == nil {
		strides = repeated(1, in[0].shape.Rank())
	}
	shape, err := shapeinference.Slice(in[0].shape, starts, limits, strides)
	if err != nil {
		return nil, failed("Slice", in, err)
	}
	if shape.EqualDimensions(in[0].shape) {
		return in[0], nil
	}
	ranges := make([]string, len(starts))
	for i := range starts {
		ranges[i] = fmt.Sprintf("%d:%d", starts[i], limits[i])
		if strides[i] != 1 {
			ranges[i] += fmt.Sprintf(":%d", strides[i])
		}
	}
	o := f.add("Slice", "stablehlo.slice", in, shape)
	o.print = printFunctional(" [" + strings.Join(ranges, ", ") + "]")
	return o.results[0], nil
}

func repeated(v, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// DynamicSlice takes sliceDims elements from start indices known at run time, which are clamped into range.
func (f *function) DynamicSlice(operand compute.Value, startIndices []compute.Value, sliceDims []int) (compute.Value, error) {
	in, err := f.inputs("DynamicSlice", append([]compute.Value{operand}, startIndices...)...)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DynamicSlice(in[0].shape, sliceDims)
	if err != nil {
		return nil, failed("DynamicSlice", in, err)
	}
	starts, err := f.startIndices(in[0], in[1:])
	if err != nil {
		return nil, failed("DynamicSlice", in, err)
	}
	if in[0].shape.IsScalar() {
		return in[0], nil
	}
	o := f.add("DynamicSlice", "stablehlo.dynamic_slice", append([]*value{in[0]}, starts...), shape)
	o.print = printFunctional(", sizes = " + intList(sliceDims))
	return o.results[0], nil
}

// DynamicUpdateSlice writes update into operand at start indices known at run time, which are clamped into range.
func (f *function) DynamicUpdateSlice(operand, update compute.Value, startIndices []compute.Value) (compute.Value, error) {
	in, err := f.inputs("DynamicUpdateSlice", append([]compute.Value{operand, update}, startIndices...)...)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DynamicUpdateSlice(in[0].shape, in[1].shape)
	if err != nil {
		return nil, failed("DynamicUpdateSlice", in, err)
	}
	for d, n := range in[1].shape.Dimensions {
		if n > shape.Dimensions[d] {
			return nil, reject("DynamicUpdateSlice", in, "the update is larger than the operand on axis %d", d)
		}
	}
	starts, err := f.startIndices(in[0], in[2:])
	if err != nil {
		return nil, failed("DynamicUpdateSlice", in, err)
	}
	if shape.IsScalar() {
		return in[1], nil
	}
	o := f.add("DynamicUpdateSlice", "stablehlo.dynamic_update_slice", append([]*value{in[0], in[1]}, starts...), shape)
	o.print = printFunctional("")
	return o.results[0], nil
}

// startIndices checks one integer scalar per axis and gives them one dtype, as StableHLO asks.
func (f *function) startIndices(operand *value, starts []*value) ([]*value, error) {
	if len(starts) != operand.shape.Rank() {
		return nil, fmt.Errorf("got %d start indices for rank %d", len(starts), operand.shape.Rank())
	}
	mixed := false
	for _, s := range starts {
		if !s.shape.IsScalar() || !s.shape.DType.IsInt() {
			return nil, fmt.Errorf("start indices must be integer scalars, got %s", shapeText(s.shape))
		}
		mixed = mixed || s.shape.DType != starts[0].shape.DType
	}
	if !mixed {
		return starts, nil
	}
	converted := make([]*value, len(starts))
	for i, s := range starts {
		converted[i] = f.convert(s, dtypes.Int64)
	}
	return converted, nil
}

// Iota counts from 0 along an axis.
func (f *function) Iota(shape shapes.Shape, iotaAxis int) (compute.Value, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	if err := checkShape(shape); err != nil {
		return nil, fmt.Errorf("stablehlo: Iota: %w", err)
	}
	if iotaAxis < 0 || iotaAxis >= shape.Rank() || shape.DType == dtypes.Bool {
		return nil, fmt.Errorf("stablehlo: Iota(%s) on axis %d: needs a number dtype and an axis of the shape", shapeText(shape), iotaAxis)
	}
	return f.iota(shape, iotaAxis), nil
}

func (f *function) iota(shape shapes.Shape, axis int) *value {
	o := f.add("Iota", "stablehlo.iota", nil, shape)
	o.print = func(p *printer, o *op) {
		p.text(fmt.Sprintf("stablehlo.iota dim = %d : %s", axis, tensorType(o.results[0].shape)))
	}
	return o.results[0]
}
