package stablehlo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// elementTypes are the MLIR names of the dtypes that programs may use.
var elementTypes = map[dtypes.DType]string{
	dtypes.Bool:     "i1",
	dtypes.Int8:     "i8",
	dtypes.Int16:    "i16",
	dtypes.Int32:    "i32",
	dtypes.Int64:    "i64",
	dtypes.Uint8:    "ui8",
	dtypes.Uint16:   "ui16",
	dtypes.Uint32:   "ui32",
	dtypes.Uint64:   "ui64",
	dtypes.Float16:  "f16",
	dtypes.BFloat16: "bf16",
	dtypes.Float32:  "f32",
	dtypes.Float64:  "f64",
}

// tensorType is the MLIR type of a tensor, such as tensor<4x8xbf16>.
func tensorType(s shapes.Shape) string {
	var sb strings.Builder
	sb.WriteString("tensor<")
	for _, d := range s.Dimensions {
		sb.WriteString(strconv.Itoa(d))
		sb.WriteByte('x')
	}
	sb.WriteString(elementTypes[s.DType])
	sb.WriteByte('>')
	return sb.String()
}

// checkShape reports a shape that a program cannot hold.
func checkShape(s shapes.Shape) error {
	if _, ok := elementTypes[s.DType]; !ok {
		return fmt.Errorf("dtype %s is not supported", s.DType)
	}
	if s.IsDynamic() {
		return fmt.Errorf("shape %s is dynamic: every dimension must be known when the graph is built", s)
	}
	return nil
}

// shapeText prints a shape as f32[4,8], for errors.
func shapeText(s shapes.Shape) string {
	name, ok := elementTypes[s.DType]
	if !ok {
		name = s.DType.String()
	}
	return name + "[" + joinInts(s.Dimensions, ",") + "]"
}

// withDType is the shape with another dtype.
func withDType(s shapes.Shape, dtype dtypes.DType) shapes.Shape {
	return shapes.Make(dtype, s.Dimensions...)
}

func joinInts(values []int, sep string) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = strconv.Itoa(v)
	}
	return strings.Join(parts, sep)
}

// intList prints [1, 2, 3].
func intList(values []int) string { return "[" + joinInts(values, ", ") + "]" }

// intArray prints an MLIR dense array attribute of i64.
func intArray(values []int) string {
	if len(values) == 0 {
		return "array<i64>"
	}
	return "array<i64: " + joinInts(values, ", ") + ">"
}

// symbol prints an MLIR symbol reference, quoted where its characters need it.
func symbol(name string) string {
	plain := name != "" && !(name[0] >= '0' && name[0] <= '9')
	for _, r := range name {
		plain = plain && (r == '_' || r == '.' || r == '$' ||
			r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if plain {
		return "@" + name
	}
	return "@" + quote(name)
}

// quote prints an MLIR string literal: bytes that are not plain ASCII become \HH.
func quote(s string) string {
	var sb strings.Builder
	sb.WriteByte('"')
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&sb, "\\%02X", c)
		} else {
			sb.WriteByte(c)
		}
	}
	sb.WriteByte('"')
	return sb.String()
}
