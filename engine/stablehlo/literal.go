package stablehlo

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
)

// maxListed is the largest constant that is written as a list of elements; larger ones are one hex string.
const maxListed = 32

// denseLiteral is the text inside dense<…> for a tensor whose elements lie row-major and little-endian in raw. The
// text gives back exactly these bits.
func denseLiteral(s shapes.Shape, raw []byte) string {
	n, width := s.Size(), s.DType.Size()
	if n == 0 {
		return ""
	}
	if isSplat(raw, width) {
		return element(s.DType, raw[:width])
	}
	if n > maxListed && s.DType != dtypes.Bool {
		return `"0x` + strings.ToUpper(hex.EncodeToString(raw)) + `"`
	}
	var sb strings.Builder
	writeNested(&sb, s.DType, s.Dimensions, raw)
	return sb.String()
}

func isSplat(raw []byte, width int) bool {
	for i := width; i < len(raw); i += width {
		if !bytes.Equal(raw[i:i+width], raw[:width]) {
			return false
		}
	}
	return true
}

func writeNested(sb *strings.Builder, dtype dtypes.DType, dims []int, raw []byte) {
	if len(dims) == 0 {
		sb.WriteString(element(dtype, raw))
		return
	}
	step := len(raw) / dims[0]
	sb.WriteByte('[')
	for i := range dims[0] {
		if i > 0 {
			sb.WriteString(", ")
		}
		writeNested(sb, dtype, dims[1:], raw[i*step:(i+1)*step])
	}
	sb.WriteByte(']')
}

// element prints one element from its little-endian bytes.
func element(dtype dtypes.DType, raw []byte) string {
	var bits uint64
	for i := len(raw) - 1; i >= 0; i-- {
		bits = bits<<8 | uint64(raw[i])
	}
	switch {
	case dtype == dtypes.Bool:
		return strconv.FormatBool(bits != 0)
	case dtype.IsFloat():
		return floatElement(dtype, bits)
	case dtype.IsUnsigned():
		return strconv.FormatUint(bits, 10)
	default:
		shift := 64 - 8*len(raw)
		return strconv.FormatInt(int64(bits<<shift)>>shift, 10)
	}
}

// floatElement prints a float in decimal where MLIR reads the same bits back, else as hex bits.
func floatElement(dtype dtypes.DType, bits uint64) string {
	var v float64
	short := 64
	switch dtype {
	case dtypes.Float64:
		v = math.Float64frombits(bits)
	case dtypes.Float32:
		v, short = float64(math.Float32frombits(uint32(bits))), 32
	case dtypes.BFloat16:
		v = float64(bfloat16.BFloat16(bits).Float32())
	case dtypes.Float16:
		v = float64(float16.Float16(bits).Float32())
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprintf("0x%0*X", dtype.Size()*2, bits)
	}
	text := strconv.FormatFloat(v, 'e', -1, short)
	if short == 32 {
		// MLIR reads a double first and rounds it then: check that this lands on the same float.
		if d, err := strconv.ParseFloat(text, 64); err != nil || float64(float32(d)) != v {
			text = strconv.FormatFloat(v, 'e', -1, 64)
		}
	}
	mantissa, exponent, _ := strings.Cut(text, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if exponent == "+00" {
		return mantissa
	}
	return mantissa + "e" + exponent
}

// zeroText is the literal 0 of a dtype.
func zeroText(dtype dtypes.DType) string { return pick(dtype, "false", "0", "0.0") }

// oneText is the literal 1 of a dtype.
func oneText(dtype dtypes.DType) string { return pick(dtype, "true", "1", "1.0") }

func pick(dtype dtypes.DType, ifBool, ifInt, ifFloat string) string {
	switch {
	case dtype == dtypes.Bool:
		return ifBool
	case dtype.IsFloat():
		return ifFloat
	default:
		return ifInt
	}
}

// allOnesText is the literal with every bit set.
func allOnesText(dtype dtypes.DType) string {
	switch {
	case dtype == dtypes.Bool:
		return "true"
	case dtype.IsUnsigned():
		return highestText(dtype)
	default:
		return "-1"
	}
}

// lowestText is the identity of max: -inf for floats.
func lowestText(dtype dtypes.DType) string {
	switch dtype {
	case dtypes.Bool:
		return "false"
	case dtypes.Float64:
		return "0xFFF0000000000000"
	case dtypes.Float32:
		return "0xFF800000"
	case dtypes.BFloat16:
		return "0xFF80"
	case dtypes.Float16:
		return "0xFC00"
	}
	if dtype.IsUnsigned() {
		return "0"
	}
	return strconv.FormatInt(math.MinInt64>>(64-dtype.Bits()), 10)
}

// highestText is the identity of min: +inf for floats.
func highestText(dtype dtypes.DType) string {
	switch dtype {
	case dtypes.Bool:
		return "true"
	case dtypes.Float64:
		return "0x7FF0000000000000"
	case dtypes.Float32:
		return "0x7F800000"
	case dtypes.BFloat16:
		return "0x7F80"
	case dtypes.Float16:
		return "0x7C00"
	}
	if dtype.IsUnsigned() {
		return strconv.FormatUint(math.MaxUint64>>(64-dtype.Bits()), 10)
	}
	return strconv.FormatInt(math.MaxInt64>>(64-dtype.Bits()), 10)
}
