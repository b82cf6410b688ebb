package job

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"
)

// A value is counted when it is NaN or infinite, whatever its sign and payload; the largest and the smallest are not.
func TestCountNonFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	largest, denormal := float32(math.MaxFloat32), float32(math.SmallestNonzeroFloat32)
	halves := func(values ...uint16) (b []byte) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		return b
	}
	for _, c := range []struct {
		name   string
		dtype  dtypes.DType
		values []byte
		want   int
	}{
		{"float32", dtypes.Float32, f32s(1, nan, largest, -inf, denormal, 0, -largest, inf), 3},
		{"float32, none", dtypes.Float32, f32s(1, largest, denormal), 0},
		{"bfloat16", dtypes.BFloat16, halves(0x3f80, 0x7f80, 0xff80, 0x7fc1, 0x7f7f, 0xff7f, 1), 3},
		{"float16", dtypes.Float16, halves(0x3c00, 0x7c00, 0xfc00, 0x7e01, 0x7bff, 0xfbff, 1), 3},
		{"nothing", dtypes.Float32, nil, 0},
	} {
		require.Equal(t, c.want, countNonFinite(c.dtype, c.values), c.name)
	}
}
