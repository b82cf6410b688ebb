package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"
)

// The conversions work on little-endian bytes as files and devices have them.
// They fail, and write nothing, unless the two slices hold the same number
// of elements.

// CanConvert tells whether Convert knows the way from one dtype to another.
func CanConvert(to, from DType) bool {
	float := func(d DType) bool { return d == F32 || d == BF16 || d == F16 }
	return to == from || float(to) && float(from)
}

// Convert writes the elements of src in another dtype to dst: a copy where the two are the same, else between F32, BF16
// and F16 through float32, rounding to nearest with ties to even.
func Convert(dst []byte, to DType, src []byte, from DType) error {
	if to == from {
		if len(dst) != len(src) {
			return fmt.Errorf("copying %d bytes of %s to %d: the lengths differ", len(src), from, len(dst))
		}
		copy(dst, src)
		return nil
	}
	if !CanConvert(to, from) {
		return fmt.Errorf("dtype %s cannot be made from %s", to, from)
	}
	if from == F32 {
		return fromF32(dst, to, src)
	}
	widen := BF16ToF32
	if from == F16 {
		widen = F16ToF32
	}
	if to == F32 {
		return widen(dst, src)
	}
	wide := make([]byte, 2*len(src))
	if err := widen(wide, src); err != nil {
		return err
	}
	return fromF32(dst, to, wide)
}

func fromF32(dst []byte, to DType, src []byte) error {
	if to == BF16 {
		return F32ToBF16(dst, src)
	}
	return F32ToF16(dst, src)
}

// BF16ToF32 widens bfloat16 to float32, exactly: dst has 2·len(src) bytes.
func BF16ToF32(dst, src []byte) error {
	n, err := elements(len(dst), 4, len(src), 2)
	if err != nil {
		return err
	}
	dst, src = dst[:4*n], src[:2*n]
	for len(src) >= 8 {
		v := binary.LittleEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst[:16], v<<16&0xffff0000|v>>16&0xffff<<48)
		binary.LittleEndian.PutUint64(dst[8:16], v>>16&0xffff0000|v>>48<<48)
		src, dst = src[8:], dst[16:]
	}
	for i := 0; i < len(src); i += 2 {
		binary.LittleEndian.PutUint32(dst[2*i:], uint32(binary.LittleEndian.Uint16(src[i:]))<<16)
	}
	return nil
}

// F32ToBF16 rounds float32 to bfloat16, to nearest with ties to even; NaN
// stays NaN (quiet, sign and upper payload kept). dst has len(src)/2 bytes.
func F32ToBF16(dst, src []byte) error {
	n, err := elements(len(dst), 2, len(src), 4)
	if err != nil {
		return err
	}
	dst, src = dst[:2*n], src[:4*n]
	for len(src) >= 8 {
		v := binary.LittleEndian.Uint64(src)
		lo, hi := bf16Bits(uint32(v)), bf16Bits(uint32(v>>32))
		binary.LittleEndian.PutUint32(dst, lo|hi<<16)
		src, dst = src[8:], dst[4:]
	}
	if len(src) > 0 {
		binary.LittleEndian.PutUint16(dst, uint16(bf16Bits(binary.LittleEndian.Uint32(src))))
	}
	return nil
}

// bf16Bits rounds the bits of a float32 to those of a bfloat16.
func bf16Bits(b uint32) uint32 {
	if b&0x7fffffff > 0x7f800000 {
		return b>>16 | 0x40
	}
	return (b + 0x7fff + b>>16&1) >> 16
}

// F16ToF32 widens IEEE binary16 to float32, exactly: dst has 2·len(src) bytes.
func F16ToF32(dst, src []byte) error {
	n, err := elements(len(dst), 4, len(src), 2)
	if err != nil {
		return err
	}
	for i := range n {
		f := float16.Frombits(binary.LittleEndian.Uint16(src[2*i:])).Float32()
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(f))
	}
	return nil
}

// F32ToF16 rounds float32 to IEEE binary16, to nearest with ties to even;
// values too large become infinite, NaN stays NaN. dst has len(src)/2 bytes.
func F32ToF16(dst, src []byte) error {
	n, err := elements(len(dst), 2, len(src), 4)
	if err != nil {
		return err
	}
	for i := range n {
		f := math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		binary.LittleEndian.PutUint16(dst[2*i:], float16.Fromfloat32(f).Bits())
	}
	return nil
}

func elements(dst, dstElem, src, srcElem int) (int, error) {
	if dst%dstElem != 0 || src%srcElem != 0 || dst/dstElem != src/srcElem {
		return 0, fmt.Errorf("converting %d bytes of %d-byte elements to %d bytes of %d-byte elements: the numbers of elements differ", src, srcElem, dst, dstElem)
	}
	return dst / dstElem, nil
}
