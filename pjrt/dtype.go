package pjrt

import "fmt"

// DType is the element type of a buffer. The numbers are those of PJRT_Buffer_Type.
type DType int32

// The element types that PJRT knows.
const (
	InvalidDType DType = iota
	Bool
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	Float32
	Float64
	BFloat16
	Complex64
	Complex128
	Float8E5M2
	Float8E4M3FN
	Float8E4M3B11FNUZ
	Float8E5M2FNUZ
	Float8E4M3FNUZ
	Int4
	Uint4
	Token
	Int2
	Uint2
	Float8E4M3
	Float8E3M4
	Float8E8M0FNU
	Float4E2M1FN
	Int1
	Uint1
)

// dtypes holds each type's StableHLO name and its size in bytes; 0 where an element is less than a byte or has no data.
var dtypes = [...]struct {
	name string
	size int
}{
	InvalidDType: {"invalid", 0}, Bool: {"i1", 1},
	Int8: {"i8", 1}, Int16: {"i16", 2}, Int32: {"i32", 4}, Int64: {"i64", 8},
	Uint8: {"ui8", 1}, Uint16: {"ui16", 2}, Uint32: {"ui32", 4}, Uint64: {"ui64", 8},
	Float16: {"f16", 2}, Float32: {"f32", 4}, Float64: {"f64", 8}, BFloat16: {"bf16", 2},
	Complex64: {"complex<f32>", 8}, Complex128: {"complex<f64>", 16},
	Float8E5M2: {"f8E5M2", 1}, Float8E4M3FN: {"f8E4M3FN", 1}, Float8E4M3B11FNUZ: {"f8E4M3B11FNUZ", 1},
	Float8E5M2FNUZ: {"f8E5M2FNUZ", 1}, Float8E4M3FNUZ: {"f8E4M3FNUZ", 1},
	Int4: {"i4", 0}, Uint4: {"ui4", 0}, Token: {"token", 0}, Int2: {"i2", 0}, Uint2: {"ui2", 0},
	Float8E4M3: {"f8E4M3", 1}, Float8E3M4: {"f8E3M4", 1}, Float8E8M0FNU: {"f8E8M0FNU", 1},
	Float4E2M1FN: {"f4E2M1FN", 0}, Int1: {"i1 (signed)", 0}, Uint1: {"ui1", 0},
}

// Size is the number of bytes of an element on the host; 0 for types narrower than a byte, tokens and unknown types, which this
// binding does not transfer.
func (d DType) Size() int {
	if d < 0 || int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// String is the type's StableHLO name, such as "f32", "bf16" or "i1" for booleans.
func (d DType) String() string {
	if d < 0 || int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", int32(d))
	}
	return dtypes[d].name
}

// ByteSize is the number of bytes that a dense array of shape dims takes on the host. It is an error for a type without a size in whole
// bytes, a negative dimension, and a product that overflows.
func ByteSize(d DType, dims []int) (int, error) {
	n := d.Size()
	if n == 0 {
		return 0, fmt.Errorf("pjrt: elements of type %s are not transferred; convert them to a type of whole bytes", d)
	}
	for _, dim := range dims {
		if dim < 0 {
			return 0, fmt.Errorf("pjrt: negative dimension in shape %v", dims)
		}
		if dim != 0 && n > (1<<62)/dim {
			return 0, fmt.Errorf("pjrt: shape %v of %s is too large", dims, d)
		}
		n *= dim
	}
	return n, nil
}
