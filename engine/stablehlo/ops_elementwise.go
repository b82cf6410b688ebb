package stablehlo

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
)

// unary adds an element-wise operation of one operand.
func (f *function) unary(opType compute.OpType, mnemonic string, x compute.Value) (compute.Value, error) {
	in, err := f.inputs(opType.String(), x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.UnaryOp(opType, in[0].shape)
	if err != nil {
		return nil, failed(opType.String(), in, err)
	}
	return f.sameType(opType.String(), mnemonic, shape, in...), nil
}

// sameType adds an operation whose operands and result all have one type.
func (f *function) sameType(what, mnemonic string, shape shapes.Shape, operands ...*value) *value {
	o := f.add(what, mnemonic, operands, shape)
	o.print = printSameType
	return o.results[0]
}

// binary adds an element-wise operation, after broadcasting its operands as shapeinference says: scalars to any
// shape, dimensions of 1 to any size.
func (f *function) binary(opType compute.OpType, mnemonic string, lhs, rhs compute.Value) (compute.Value, error) {
	what := opType.String()
	in, err := f.inputs(what, lhs, rhs)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.BinaryOp(opType, in[0].shape, in[1].shape)
	if err != nil {
		return nil, failed(what, in, err)
	}
	return f.sameType(what, mnemonic, shape, f.broadcast(in[0], shape), f.broadcast(in[1], shape)), nil
}

// compare adds a comparison, which gives booleans.
func (f *function) compare(opType compute.OpType, direction string, totalOrder bool, lhs, rhs compute.Value) (compute.Value, error) {
	what := opType.String()
	in, err := f.inputs(what, lhs, rhs)
	if err != nil {
		return nil, err
	}
	shape, err := f.compareShape(opType, in[0].shape, in[1].shape)
	if err != nil {
		return nil, failed(what, in, err)
	}
	a, b := f.broadcast(in[0], shape), f.broadcast(in[1], shape)
	return f.compareValues(what, direction, totalOrder, a, b), nil
}

// compareShape is the broadcast shape. NotEqualTotalOrder is missing from shapeinference's set of comparisons.
func (f *function) compareShape(opType compute.OpType, lhs, rhs shapes.Shape) (shapes.Shape, error) {
	if opType == compute.OpTypeNotEqualTotalOrder {
		opType = compute.OpTypeEqualTotalOrder
	}
	return shapeinference.ComparisonOp(opType, lhs, rhs)
}

func (f *function) compareValues(what, direction string, totalOrder bool, a, b *value) *value {
	o := f.add(what, "stablehlo.compare", []*value{a, b}, withDType(a.shape, dtypes.Bool))
	kind := comparisonKind(a.shape.DType, totalOrder)
	o.print = func(p *printer, o *op) {
		p.text("stablehlo.compare ", direction, ", ", p.operandList(o, o.operands), ", ", kind,
			" : (", typeList(o.operands), ") -> ", tensorType(o.results[0].shape))
	}
	return o.results[0]
}

func comparisonKind(dtype dtypes.DType, totalOrder bool) string {
	switch {
	case dtype.IsFloat() && totalOrder:
		return "TOTALORDER"
	case dtype.IsFloat():
		return "FLOAT"
	case dtype.IsUnsigned() || dtype == dtypes.Bool:
		return "UNSIGNED"
	default:
		return "SIGNED"
	}
}

// broadcast spreads x to the dimensions of shape: a scalar everywhere, else dimensions of 1. It keeps x's dtype.
func (f *function) broadcast(x *value, shape shapes.Shape) *value {
	if x.shape.EqualDimensions(shape) {
		return x
	}
	axes := make([]int, x.shape.Rank())
	for i := range axes {
		axes[i] = i
	}
	return f.broadcastInDim("Broadcast", x, withDType(shape, x.shape.DType), axes)
}

func (f *function) broadcastInDim(what string, x *value, shape shapes.Shape, axes []int) *value {
	o := f.add(what, "stablehlo.broadcast_in_dim", []*value{x}, shape)
	o.print = printFunctional(", dims = " + intList(axes))
	return o.results[0]
}

// Where selects element-wise; each operand may be a scalar.
func (f *function) Where(condition, onTrue, onFalse compute.Value) (compute.Value, error) {
	in, err := f.inputs("Where", condition, onTrue, onFalse)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Where(in[0].shape, in[1].shape, in[2].shape)
	if err != nil {
		return nil, failed("Where", in, err)
	}
	pred := in[0]
	if !pred.shape.IsScalar() {
		pred = f.broadcast(pred, shape)
	}
	return f.selectValues("Where", pred, f.broadcast(in[1], shape), f.broadcast(in[2], shape)), nil
}

func (f *function) selectValues(what string, pred, onTrue, onFalse *value) *value {
	o := f.add(what, "stablehlo.select", []*value{pred, onTrue, onFalse}, onTrue.shape)
	o.print = func(p *printer, o *op) {
		p.text("stablehlo.select ", p.operandList(o, o.operands), " : ", tensorType(pred.shape), ", ", tensorType(onTrue.shape))
	}
	return o.results[0]
}

// Clamp limits x element-wise; min and max are scalars or have x's shape.
func (f *function) Clamp(minimum, x, maximum compute.Value) (compute.Value, error) {
	in, err := f.inputs("Clamp", minimum, x, maximum)
	if err != nil {
		return nil, err
	}
	shape := in[1].shape
	for _, bound := range []*value{in[0], in[2]} {
		if bound.shape.DType != shape.DType || !bound.shape.IsScalar() && !bound.shape.EqualDimensions(shape) {
			return nil, reject("Clamp", in, "the bounds must be scalars or of the operand's shape, and of its dtype")
		}
	}
	o := f.add("Clamp", "stablehlo.clamp", in, shape)
	o.print = printFunctional("")
	return o.results[0], nil
}

// ConvertDType converts values; to Bool it tests for not zero.
func (f *function) ConvertDType(x compute.Value, dtype dtypes.DType) (compute.Value, error) {
	in, err := f.inputs("ConvertDType", x)
	if err != nil {
		return nil, err
	}
	shape := withDType(in[0].shape, dtype)
	if err := checkShape(shape); err != nil {
		return nil, failed("ConvertDType", in, err)
	}
	return f.convert(in[0], dtype), nil
}

func (f *function) convert(x *value, dtype dtypes.DType) *value {
	if x.shape.DType == dtype {
		return x
	}
	o := f.add("ConvertDType", "stablehlo.convert", []*value{x}, withDType(x.shape, dtype))
	o.print = printFunctional("")
	return o.results[0]
}

// Bitcast reinterprets bits; between sizes, the last dimension is split or joined.
func (f *function) Bitcast(x compute.Value, dtype dtypes.DType) (compute.Value, error) {
	in, err := f.inputs("Bitcast", x)
	if err != nil {
		return nil, err
	}
	if _, ok := elementTypes[dtype]; !ok || (dtype == dtypes.Bool) != (in[0].shape.DType == dtypes.Bool) {
		return nil, reject("Bitcast", in, "cannot be reinterpreted as %s", dtype)
	}
	if in[0].shape.DType.Bits() < dtype.Bits() && in[0].shape.IsScalar() {
		return nil, reject("Bitcast", in, "a scalar has no dimension to join into %s", dtype)
	}
	shape, err := shapeinference.Bitcast(in[0].shape, dtype)
	if err != nil {
		return nil, failed("Bitcast", in, err)
	}
	if shape.DType == in[0].shape.DType {
		return in[0], nil
	}
	return f.bitcast(in[0], shape), nil
}

func (f *function) bitcast(x *value, shape shapes.Shape) *value {
	o := f.add("Bitcast", "stablehlo.bitcast_convert", []*value{x}, shape)
	o.print = printFunctional("")
	return o.results[0]
}

// IsFinite tests floats for neither infinity nor NaN.
func (f *function) IsFinite(x compute.Value) (compute.Value, error) {
	in, err := f.inputs("IsFinite", x)
	if err != nil {
		return nil, err
	}
	if !in[0].shape.DType.IsFloat() {
		return nil, reject("IsFinite", in, "takes floats")
	}
	o := f.add("IsFinite", "stablehlo.is_finite", in, withDType(in[0].shape, dtypes.Bool))
	o.print = printFunctional("")
	return o.results[0], nil
}

// IsNaN tests floats: only NaN differs from itself.
func (f *function) IsNaN(x compute.Value) (compute.Value, error) {
	in, err := f.inputs("IsNaN", x)
	if err != nil {
		return nil, err
	}
	if !in[0].shape.DType.IsFloat() {
		return nil, reject("IsNaN", in, "takes floats")
	}
	return f.compareValues("IsNaN", "NE", false, in[0], in[0]), nil
}

// Identity returns x itself.
func (f *function) Identity(x compute.Value) (compute.Value, error) {
	in, err := f.inputs("Identity", x)
	if err != nil {
		return nil, err
	}
	return in[0], nil
}

// Erf is the error function.
func (f *function) Erf(x compute.Value) (compute.Value, error) {
	in, err := f.inputs("Erf", x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.UnaryOp(compute.OpTypeErf, in[0].shape)
	if err != nil {
		return nil, failed("Erf", in, err)
	}
	o := f.add("Erf", "chlo.erf", in, shape)
	o.print = func(p *printer, o *op) {
		p.text("chlo.erf ", p.operandList(o, o.operands), " : ", tensorType(shape), " -> ", tensorType(shape))
	}
	return o.results[0], nil
}

// Abs of an unsigned integer is itself, which StableHLO does not spell.
func (f *function) Abs(x compute.Value) (compute.Value, error) {
	if v, ok := x.(*value); ok && v != nil && v.shape.DType.IsUnsigned() {
		return f.Identity(x)
	}
	return f.unary(compute.OpTypeAbs, "stablehlo.abs", x)
}

// Sign of an unsigned integer is 0 or 1: StableHLO's sign takes signed numbers only.
func (f *function) Sign(x compute.Value) (compute.Value, error) {
	if v, ok := x.(*value); ok && v != nil && v.shape.DType.IsUnsigned() {
		in, err := f.inputs("Sign", x)
		if err != nil {
			return nil, err
		}
		return f.sameType("Sign", "stablehlo.minimum", v.shape, in[0], f.filled(v.shape, oneText(v.shape.DType))), nil
	}
	return f.unary(compute.OpTypeSign, "stablehlo.sign", x)
}

// filled is a tensor of one literal.
func (f *function) filled(shape shapes.Shape, literal string) *value {
	return f.broadcast(f.scalar(shape.DType, literal), shape)
}
