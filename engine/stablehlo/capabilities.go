package stablehlo

import (
	"maps"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// supported lists what the backend lowers. Everything in it has a case in the tests.
var supported = []compute.OpType{
	compute.OpTypeParameter, compute.OpTypeConstant, compute.OpTypeIdentity, compute.OpTypeIota,
	// Element-wise.
	compute.OpTypeAbs, compute.OpTypeBitCount, compute.OpTypeBitwiseNot, compute.OpTypeCeil, compute.OpTypeClz, compute.OpTypeCos,
	compute.OpTypeErf, compute.OpTypeExp, compute.OpTypeExpm1, compute.OpTypeFloor, compute.OpTypeIsFinite, compute.OpTypeIsNaN,
	compute.OpTypeLog, compute.OpTypeLog1p, compute.OpTypeLogicalNot, compute.OpTypeLogistic, compute.OpTypeNeg, compute.OpTypeRound,
	compute.OpTypeRsqrt, compute.OpTypeSign, compute.OpTypeSin, compute.OpTypeSqrt, compute.OpTypeTanh,
	compute.OpTypeAdd, compute.OpTypeAtan2, compute.OpTypeBitwiseAnd, compute.OpTypeBitwiseOr, compute.OpTypeBitwiseXor, compute.OpTypeDiv,
	compute.OpTypeLogicalAnd, compute.OpTypeLogicalOr, compute.OpTypeLogicalXor, compute.OpTypeMax, compute.OpTypeMin, compute.OpTypeMul,
	compute.OpTypePow, compute.OpTypeRem, compute.OpTypeShiftLeft, compute.OpTypeShiftRightArithmetic, compute.OpTypeShiftRightLogical, compute.OpTypeSub,
	compute.OpTypeEqual, compute.OpTypeNotEqual, compute.OpTypeGreaterOrEqual, compute.OpTypeGreaterThan, compute.OpTypeLessOrEqual, compute.OpTypeLessThan,
	compute.OpTypeEqualTotalOrder, compute.OpTypeNotEqualTotalOrder, compute.OpTypeGreaterOrEqualTotalOrder, compute.OpTypeGreaterThanTotalOrder,
	compute.OpTypeLessOrEqualTotalOrder, compute.OpTypeLessThanTotalOrder,
	compute.OpTypeClamp, compute.OpTypeWhere, compute.OpTypeConvertDType, compute.OpTypeBitcast,
	// Shapes, slices and products.
	compute.OpTypeBroadcastInDim, compute.OpTypeConcatenate, compute.OpTypePad, compute.OpTypeReshape, compute.OpTypeReverse, compute.OpTypeSlice,
	compute.OpTypeTranspose, compute.OpTypeDynamicSlice, compute.OpTypeDynamicUpdateSlice, compute.OpTypeGather,
	compute.OpTypeScatterMax, compute.OpTypeScatterMin, compute.OpTypeScatterSum, compute.OpTypeDotGeneral, compute.OpTypeConvGeneral,
	// Reductions.
	compute.OpTypeReduceBitwiseAnd, compute.OpTypeReduceBitwiseOr, compute.OpTypeReduceBitwiseXor, compute.OpTypeReduceLogicalAnd,
	compute.OpTypeReduceLogicalOr, compute.OpTypeReduceLogicalXor, compute.OpTypeReduceMax, compute.OpTypeReduceMin, compute.OpTypeReduceProduct,
	compute.OpTypeReduceSum, compute.OpTypeReduceWindow, compute.OpTypeArgMinMax, compute.OpTypeSelectAndScatterMax, compute.OpTypeSelectAndScatterMin,
	// Control.
	compute.OpTypeCall, compute.OpTypeIf, compute.OpTypeSort, compute.OpTypeWhile, compute.OpTypeOptimizationBarrier, compute.OpTypeSchedulingBarrier,
	compute.OpTypeRNGBitGenerator,
}

// Capabilities lists the operations and dtypes that programs may use.
func (b *Backend) Capabilities() compute.Capabilities {
	c := compute.Capabilities{Functions: true, Operations: map[compute.OpType]bool{}, DTypes: map[dtypes.DType]bool{}}
	for _, op := range supported {
		c.Operations[op] = true
	}
	for dtype := range maps.Keys(elementTypes) {
		c.DTypes[dtype] = true
	}
	return c
}
