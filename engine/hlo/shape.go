package hlo

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Shape is an array of a dtype (XLA's lower-case name) and dimensions, or a tuple of shapes.
type Shape struct {
	DType string
	Dims  []int64
	// MinorToMajor lists the dimensions from the fastest varying one on; empty where the program has no layout.
	MinorToMajor []int64
	// MemorySpace is where the array lies: 0 is the device's main memory (HBM), on a TPU 1 is the vector memory on the
	// chip, others are the backend's own.
	MemorySpace int64
	Tuple       []Shape
}

// Elements is the number of elements of an array, 0 for a tuple. It saturates instead of overflowing.
func (s Shape) Elements() int64 {
	if s.DType == "tuple" || len(s.Tuple) > 0 {
		return 0
	}
	n := int64(1)
	for _, d := range s.Dims {
		n = saturatingMul(n, d)
	}
	return n
}

// Bytes is the size of the shape's elements, a tuple's being the sum of its parts. It is without the padding of a
// layout's tiles. It saturates instead of overflowing.
func (s Shape) Bytes() int64 { return s.bytes(func(Shape) bool { return true }) }

// BytesIn is what of Bytes lies in a memory space.
func (s Shape) BytesIn(space int64) int64 {
	return s.bytes(func(a Shape) bool { return a.MemorySpace == space })
}

func (s Shape) bytes(count func(Shape) bool) int64 {
	if len(s.Tuple) > 0 {
		var n int64
		for _, t := range s.Tuple {
			n = saturatingAdd(n, t.bytes(count))
		}
		return n
	}
	if !count(s) {
		return 0
	}
	n := saturatingMul(s.Elements(), dtypeBits[s.DType])
	return n/8 + min(n%8, 1)
}

// Arrays returns the arrays of the shape: itself, or those of a tuple in order, at any depth.
func (s Shape) Arrays() []Shape {
	if s.DType != "tuple" && len(s.Tuple) == 0 {
		return []Shape{s}
	}
	var out []Shape
	for _, t := range s.Tuple {
		out = append(out, t.Arrays()...)
	}
	return out
}

// String prints the shape as XLA does, without layouts: bf16[4,128], or (f32[], f32[8]).
func (s Shape) String() string {
	var parts []string
	if s.DType == "tuple" || len(s.Tuple) > 0 {
		for _, t := range s.Tuple {
			parts = append(parts, t.String())
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	for _, d := range s.Dims {
		parts = append(parts, strconv.FormatInt(d, 10))
	}
	return s.DType + "[" + strings.Join(parts, ",") + "]"
}

// dtypeNames are XLA's PrimitiveType numbers.
var dtypeNames = map[uint64]string{
	1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
	12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn",
	21: "s4", 22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3",
	29: "f8e3m4", 30: "s1", 31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu", 34: "buffer",
}

var dtypeBits = map[string]int64{
	"pred": 8, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "f16": 16, "bf16": 16, "s32": 32, "u32": 32, "f32": 32,
	"s64": 64, "u64": 64, "f64": 64, "c64": 64, "c128": 128, "s4": 4, "u4": 4, "s2": 2, "u2": 2, "s1": 1, "u1": 1,
	"f8e5m2": 8, "f8e4m3fn": 8, "f8e4m3b11fnuz": 8, "f8e5m2fnuz": 8, "f8e4m3fnuz": 8, "f8e4m3": 8, "f8e3m4": 8,
	"f4e2m1fn": 4, "f8e8m0fnu": 8,
}

// saturatingMul multiplies; what is negative in a damaged file counts as 0.
func saturatingMul(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// saturatingAdd adds numbers that are not negative.
func saturatingAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
