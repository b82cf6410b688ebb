package stablehlo_test

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// one lifts an operation of one operand.
func one(f func(*graph.Node) *graph.Node) graphFn {
	return func(_ *graph.Graph, xs []*graph.Node) []*graph.Node { return []*graph.Node{f(xs[0])} }
}

// two lifts an operation of two operands.
func two(f func(a, b *graph.Node) *graph.Node) graphFn {
	return func(_ *graph.Graph, xs []*graph.Node) []*graph.Node { return []*graph.Node{f(xs[0], xs[1])} }
}

type unaryCase struct {
	op        compute.OpType
	f         func(*graph.Node) *graph.Node
	low, high float64
	dtypes    func(d *drawer) dtypes.DType
	grad      bool
}

func unaryCases() (cases []opCase) {
	floats, ints, signed := (*drawer).floatDType, (*drawer).intDType, (*drawer).signedDType
	booleans := func(*drawer) dtypes.DType { return dtypes.Bool }
	signedNumbers := func(d *drawer) dtypes.DType {
		if d.chance() {
			return signed(d)
		}
		return floats(d)
	}
	for _, u := range []unaryCase{
		{compute.OpTypeAbs, graph.Abs, -3, 3, floats, true},
		{compute.OpTypeAbs, graph.Abs, -100, 100, ints, false},
		{compute.OpTypeCeil, graph.Ceil, -3, 3, floats, true},
		{compute.OpTypeCos, graph.Cos, -6, 6, floats, true},
		{compute.OpTypeErf, graph.Erf, -3, 3, floats, true},
		{compute.OpTypeExp, graph.Exp, -3, 2, floats, true},
		{compute.OpTypeExpm1, graph.Expm1, -2, 2, floats, true},
		{compute.OpTypeFloor, graph.Floor, -3, 3, floats, true},
		{compute.OpTypeIdentity, graph.Identity, -3, 3, floats, true},
		{compute.OpTypeIsFinite, graph.IsFinite, -3, 3, floats, false},
		{compute.OpTypeIsNaN, graph.IsNaN, -3, 3, floats, false},
		{compute.OpTypeLog, graph.Log, 0.25, 8, floats, true},
		{compute.OpTypeLog1p, graph.Log1p, -0.5, 3, floats, true},
		{compute.OpTypeLogistic, graph.Logistic, -6, 6, floats, true},
		{compute.OpTypeNeg, graph.Neg, -100, 100, signedNumbers, false},
		{compute.OpTypeNeg, graph.Neg, -3, 3, floats, true},
		{compute.OpTypeRound, graph.Round, -4, 4, floats, true},
		{compute.OpTypeRsqrt, graph.Rsqrt, 0.25, 8, floats, true},
		{compute.OpTypeSign, graph.Sign, -2, 2, floats, true},
		{compute.OpTypeSign, graph.Sign, -2, 2, ints, false},
		{compute.OpTypeSin, graph.Sin, -6, 6, floats, true},
		{compute.OpTypeSqrt, graph.Sqrt, 0.25, 8, floats, true},
		{compute.OpTypeTanh, graph.Tanh, -3, 3, floats, true},
		{compute.OpTypeBitCount, graph.BitCount, 0, 127, ints, false},
		{compute.OpTypeBitwiseNot, graph.BitwiseNot, -100, 100, ints, false},
		{compute.OpTypeClz, graph.Clz, 0, 127, ints, false},
		{compute.OpTypeLogicalNot, graph.LogicalNot, 0, 1, booleans, false},
	} {
		cases = append(cases, opCase{u.op.String(), []compute.OpType{u.op}, func(d *drawer) instance {
			in := instance{inputs: []array{d.fill(u.dtypes(d), d.dims(0, 3), u.low, u.high)}, fn: one(u.f)}
			if u.grad {
				in.grad = []int{0}
			}
			return in
		}})
	}
	return cases
}

type binaryCase struct {
	op        compute.OpType
	f         func(a, b *graph.Node) *graph.Node
	low, high float64
	dtypes    func(d *drawer) dtypes.DType
	grad      bool
}

// broadcastPair draws two dims that broadcast: equal, one a scalar, or some dimensions 1.
func (d *drawer) broadcastPair() (lhs, rhs []int) {
	lhs = d.dims(0, 3)
	rhs = append([]int{}, lhs...)
	switch d.between(0, 3) {
	case 0:
		rhs = nil
	case 1:
		lhs = nil
	case 2:
		for i := range lhs {
			switch d.between(0, 2) {
			case 0:
				lhs[i] = 1
			case 1:
				rhs[i] = 1
			}
		}
	}
	return lhs, rhs
}

func binaryCases() (cases []opCase) {
	floats, ints := (*drawer).floatDType, (*drawer).intDType
	booleans := func(*drawer) dtypes.DType { return dtypes.Bool }
	numbers := func(d *drawer) dtypes.DType {
		if d.chance() {
			return ints(d)
		}
		return floats(d)
	}
	for _, b := range []binaryCase{
		{compute.OpTypeAdd, graph.Add, -3, 3, floats, true},
		{compute.OpTypeAdd, graph.Add, -100, 100, ints, false},
		{compute.OpTypeSub, graph.Sub, -3, 3, floats, true},
		{compute.OpTypeSub, graph.Sub, -100, 100, ints, false},
		{compute.OpTypeMul, graph.Mul, -3, 3, floats, true},
		{compute.OpTypeMul, graph.Mul, -11, 11, ints, false},
		{compute.OpTypeDiv, graph.Div, 0.5, 3, floats, true},
		{compute.OpTypeDiv, graph.Div, 1, 100, ints, false},
		{compute.OpTypePow, graph.Pow, 0.5, 2, floats, true},
		{compute.OpTypeRem, graph.Rem, 0.75, 4, floats, true},
		{compute.OpTypeRem, graph.Rem, 1, 100, ints, false},
		{compute.OpTypeMax, graph.Max, -3, 3, floats, true},
		{compute.OpTypeMax, graph.Max, -100, 100, ints, false},
		{compute.OpTypeMin, graph.Min, -3, 3, floats, true},
		{compute.OpTypeMin, graph.Min, -100, 100, ints, false},
		{compute.OpTypeBitwiseAnd, graph.BitwiseAnd, -100, 100, ints, false},
		{compute.OpTypeBitwiseOr, graph.BitwiseOr, -100, 100, ints, false},
		{compute.OpTypeBitwiseXor, graph.BitwiseXor, -100, 100, ints, false},
		{compute.OpTypeLogicalAnd, graph.LogicalAnd, 0, 1, booleans, false},
		{compute.OpTypeLogicalOr, graph.LogicalOr, 0, 1, booleans, false},
		{compute.OpTypeLogicalXor, graph.LogicalXor, 0, 1, booleans, false},
		{compute.OpTypeShiftLeft, graph.BitwiseShiftLeft, 0, 7, ints, false},
		{compute.OpTypeShiftRightArithmetic, graph.BitwiseShiftRightArithmetic, 0, 7, ints, false},
		{compute.OpTypeShiftRightLogical, graph.BitwiseShiftRightLogical, 0, 7, ints, false},
		{compute.OpTypeEqual, graph.Equal, -2, 2, numbers, false},
		{compute.OpTypeNotEqual, graph.NotEqual, -2, 2, numbers, false},
		{compute.OpTypeGreaterOrEqual, graph.GreaterOrEqual, -2, 2, numbers, false},
		{compute.OpTypeGreaterThan, graph.GreaterThan, -2, 2, numbers, false},
		{compute.OpTypeLessOrEqual, graph.LessOrEqual, -2, 2, numbers, false},
		{compute.OpTypeLessThan, graph.LessThan, -2, 2, numbers, false},
	} {
		cases = append(cases, opCase{b.op.String(), []compute.OpType{b.op}, func(d *drawer) instance {
			dtype := b.dtypes(d)
			lhs, rhs := d.broadcastPair()
			in := instance{inputs: []array{d.fill(dtype, lhs, b.low, b.high), d.fill(dtype, rhs, b.low, b.high)}, fn: two(b.f)}
			if b.grad {
				in.grad = []int{0, 1}
				if !slices.Equal(lhs, rhs) {
					in.loose = 8 // the gradient of what was broadcast is a sum, as in reduceCases
				}
			}
			return in
		}})
	}
	return cases
}

func elementwiseCases() []opCase {
	cases := []opCase{
		{"Atan2", []compute.OpType{compute.OpTypeAtan2}, drawAtan2},
		{"Clamp", []compute.OpType{compute.OpTypeClamp}, drawClamp},
		{"Where", []compute.OpType{compute.OpTypeWhere}, drawWhere},
		{"ConvertDType", []compute.OpType{compute.OpTypeConvertDType}, drawConvert},
		{"ConvertDType gradient", []compute.OpType{compute.OpTypeConvertDType}, func(d *drawer) instance {
			to := d.floatDType()
			return instance{inputs: []array{d.fill(d.floatDType(), d.dims(0, 2), -3, 3)}, grad: []int{0},
				fn: one(func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, to) })}
		}},
		{"Bitcast", []compute.OpType{compute.OpTypeBitcast}, drawBitcast},
		{"Constant", []compute.OpType{compute.OpTypeConstant}, func(d *drawer) instance {
			dtype := pickOne(d, d.intDType(), d.floatDType(), dtypes.Float16, dtypes.Bool)
			dims := d.dims(0, 3)
			if d.chance() {
				dims = append(dims, 16) // beyond what is written as a list
			}
			value := d.fill(dtype, dims, -100, 100)
			return instance{fn: func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
				return []*graph.Node{graph.ConstTensor(g, value.tensor())}
			}}
		}},
		{"Iota", []compute.OpType{compute.OpTypeIota}, func(d *drawer) instance {
			shape := shapes.Make(pickOne(d, d.intDType(), d.floatDType()), d.dims(1, 3)...)
			axis := d.between(0, shape.Rank()-1)
			return instance{fn: func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
				return []*graph.Node{graph.Iota(g, shape, axis)}
			}}
		}},
	}
	for _, c := range []struct {
		op   compute.OpType
		f    func(a, b *graph.Node) *graph.Node
		want func(a, b int64) bool
	}{
		{compute.OpTypeEqualTotalOrder, graph.EqualTotalOrder, func(a, b int64) bool { return a == b }},
		{compute.OpTypeNotEqualTotalOrder, graph.NotEqualTotalOrder, func(a, b int64) bool { return a != b }},
		{compute.OpTypeGreaterOrEqualTotalOrder, graph.GreaterOrEqualTotalOrder, func(a, b int64) bool { return a >= b }},
		{compute.OpTypeGreaterThanTotalOrder, graph.GreaterThanTotalOrder, func(a, b int64) bool { return a > b }},
		{compute.OpTypeLessOrEqualTotalOrder, graph.LessOrEqualTotalOrder, func(a, b int64) bool { return a <= b }},
		{compute.OpTypeLessThanTotalOrder, graph.LessThanTotalOrder, func(a, b int64) bool { return a < b }},
	} {
		cases = append(cases, opCase{c.op.String(), []compute.OpType{c.op}, func(d *drawer) instance {
			return totalOrderInstance(d, c.f, c.want)
		}})
	}
	return cases
}

// totalOrderInstance compares special floats by their place in -NaN < -Inf < … < -0 < +0 < … < +Inf < +NaN.
func totalOrderInstance(d *drawer, f func(a, b *graph.Node) *graph.Node, want func(a, b int64) bool) instance {
	special := []float64{math.NaN(), math.Copysign(math.NaN(), -1), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1, 2.5}
	draw := func() array {
		a := newArray(shapes.Make(dtypes.Float32, 12))
		for i := range 12 {
			a.setBits(i, uint64(math.Float32bits(float32(special[d.rng.IntN(len(special))]))))
		}
		return a
	}
	place := func(bits uint64) int64 {
		v := int64(int32(bits))
		if v < 0 {
			return math.MinInt32 - v - 1
		}
		return v
	}
	return instance{inputs: []array{draw(), draw()}, fn: two(f), want: func(in, _ []array) []array {
		out := newArray(shapes.Make(dtypes.Bool, 12))
		for i := range 12 {
			if want(place(in[0].bits(i)), place(in[1].bits(i))) {
				out.setBits(i, 1)
			}
		}
		return []array{out}
	}}
}

// drawAtan2 has no oracle: values and gradients are those of the formula.
func drawAtan2(d *drawer) instance {
	dims := d.dims(0, 2)
	y, x := d.fill(dtypes.Float32, dims, -3, 3), d.fill(dtypes.Float32, dims, -3, 3)
	return instance{inputs: []array{y, x}, fn: two(graph.Atan2), grad: []int{0, 1}, loose: 8, want: func(in, w []array) []array {
		out, dy, dx := newArray(y.shape), newArray(y.shape), newArray(y.shape)
		for i := range y.shape.Size() {
			a, b := in[0].float(i), in[1].float(i)
			out.setFloat(i, math.Atan2(a, b))
			dy.setFloat(i, w[0].float(i)*b/(a*a+b*b))
			dx.setFloat(i, -w[0].float(i)*a/(a*a+b*b))
		}
		return []array{out, dy, dx}
	}}
}

func drawClamp(d *drawer) instance {
	dtype, dims := d.floatDType(), d.dims(0, 2)
	boundDims := pickOne(d, dims, nil)
	ref := func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
		return []*graph.Node{graph.Min(graph.Max(xs[0], xs[1]), xs[2])}
	}
	return instance{
		inputs: []array{d.fill(dtype, boundDims, -2, -0.5), d.fill(dtype, dims, -3, 3), d.fill(dtype, boundDims, 0.5, 2)},
		fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
			return []*graph.Node{graph.Clamp(xs[0], xs[1], xs[2])}
		},
		ref: ref, grad: []int{0, 1, 2},
	}
}

func drawWhere(d *drawer) instance {
	dtype, dims := d.floatDType(), d.dims(0, 3)
	condition, onTrue, onFalse := pickOne(d, dims, nil), dims, dims
	switch d.between(0, 2) {
	case 0:
		onTrue = nil
	case 1:
		onFalse = nil
	}
	return instance{
		inputs: []array{d.fill(dtypes.Bool, condition, 0, 1), d.fill(dtype, onTrue, -3, 3), d.fill(dtype, onFalse, -3, 3)},
		fn: func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
			return []*graph.Node{graph.Where(xs[0], xs[1], xs[2])}
		},
		grad: []int{1, 2},
	}
}

// drawConvert stays within every dtype's range, where conversions agree.
func drawConvert(d *drawer) instance {
	all := []dtypes.DType{dtypes.Bool, dtypes.Int8, dtypes.Int16, dtypes.Int32, dtypes.Int64, dtypes.Uint8, dtypes.Uint16, dtypes.Uint32,
		dtypes.Uint64, dtypes.BFloat16, dtypes.Float16, dtypes.Float32, dtypes.Float64}
	to := pickOne(d, all...)
	return instance{inputs: []array{d.fill(pickOne(d, all...), d.dims(0, 2), 0, 100)},
		fn: one(func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, to) })}
}

func drawBitcast(d *drawer) instance {
	pair := pickOne(d, [2]dtypes.DType{dtypes.Float32, dtypes.Uint32}, [2]dtypes.DType{dtypes.Int64, dtypes.Float64},
		[2]dtypes.DType{dtypes.Uint32, dtypes.Uint16}, [2]dtypes.DType{dtypes.BFloat16, dtypes.Int16}, [2]dtypes.DType{dtypes.Int8, dtypes.Uint8})
	if d.chance() {
		pair[0], pair[1] = pair[1], pair[0]
	}
	dims := d.dims(1, 2)
	if pair[0].Bits() < pair[1].Bits() {
		dims = append(dims, pair[1].Bits()/pair[0].Bits())
	}
	return instance{inputs: []array{d.fill(pair[0], dims, 1, 100)},
		fn: one(func(x *graph.Node) *graph.Node { return graph.Bitcast(x, pair[1]) })}
}
