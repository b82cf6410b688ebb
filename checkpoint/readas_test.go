package checkpoint

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
	"weft/internal/property"
)

// Moments saved in float32 from one grid read as bfloat16 in another: each is the bfloat16 nearest to it, and those that are
// bfloat16 already keep their value.
func TestReadMomentsInAnotherDType(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 7), 0, 3).Draw(t, "shape")
		n, err := region.Volume(shape)
		require.NoError(t, err)
		wide, narrow := make([]byte, 4*n), make([]byte, 2*n)
		for i := range n {
			v := rapid.Float32().Draw(t, "v")
			if rapid.Bool().Draw(t, "exact") {
				v = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
			}
			binary.LittleEndian.PutUint32(wide[4*i:], math.Float32bits(v))
			binary.LittleEndian.PutUint16(narrow[2*i:], nearestBF16(v))
		}
		_, a := openAsync(t, newMemFS(), AsyncOptions{})
		s := &Snapshot{Step: 1, State: []Tensor{cutTensor("m", safetensors.F32, shape, wide, drawGrid(t, shape, "save"))}}
		require.NoError(t, a.Save(t.Context(), s))
		require.NoError(t, a.Close(t.Context()))
		e, ok, err := a.m.Latest()
		require.NoError(t, err)
		require.True(t, ok)
		r, err := a.m.OpenState(e)
		require.NoError(t, err)
		defer r.Close()
		zero := make([]int, len(shape))
		for _, c := range drawGrid(t, shape, "load") {
			count, _ := region.Volume(c[1])
			got, want := make([]byte, 2*count), make([]byte, 2*count)
			region.Copy(want, narrow, zero, shape, c[0], c[1], c[0], c[1], 2)
			require.NoError(t, r.ReadRegionAs("m", safetensors.BF16, c[0], c[1], got))
			require.Equal(t, want, got)
			same, exact := make([]byte, 4*count), make([]byte, 4*count)
			region.Copy(exact, wide, zero, shape, c[0], c[1], c[0], c[1], 4)
			require.NoError(t, r.ReadRegionAs("m", safetensors.F32, c[0], c[1], same))
			require.Equal(t, exact, same)
		}
		require.ErrorContains(t, r.ReadRegionAs("m", safetensors.I32, zero, shape, wide), "cannot be read as")
		require.Error(t, r.ReadRegionAs("m", safetensors.BF16, zero, shape, wide), "the buffer is too long")
		require.ErrorContains(t, r.ReadRegionAs("v", safetensors.BF16, zero, shape, narrow), "no tensor")
	})
}

// nearestBF16 looks at both neighbours of v among the bfloat16 numbers; of two as near it takes the even one.
func nearestBF16(v float32) uint16 {
	down := uint16(math.Float32bits(v) >> 16)
	value := func(b uint16) float64 {
		f := float64(math.Float32frombits(uint32(b) << 16))
		if math.IsInf(f, 0) {
			return math.Copysign(math.Ldexp(1, 128), f) // where the next number would be
		}
		return f
	}
	below, above := math.Abs(float64(v)-value(down)), math.Abs(value(down+1)-float64(v))
	if below < above || below == above && down%2 == 0 {
		return down
	}
	return down + 1
}
