package safetensors

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

func f32Bytes(v ...uint32) []byte {
	b := []byte{}
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func TestF32ToBF16(t *testing.T) {
	for _, c := range []struct {
		name string
		in   uint32
		want uint16
	}{
		{"one", 0x3f800000, 0x3f80},
		{"minus zero", 0x80000000, 0x8000},
		{"tie to even, down", 0x3f808000, 0x3f80},
		{"tie to even, up", 0x3f818000, 0x3f82},
		{"above the tie", 0x3f808001, 0x3f81},
		{"below the tie", 0x3f807fff, 0x3f80},
		{"largest rounds to infinity", 0x7f7fffff, 0x7f80},
		{"infinity", 0xff800000, 0xff80},
		{"subnormal", 0x00018000, 0x0002},
		{"quiet NaN", 0x7fc00000, 0x7fc0},
		{"NaN with low payload only", 0x7f800001, 0x7fc0},
		{"negative NaN, all ones", 0xffffffff, 0xffff},
	} {
		// At both places of the pair loop and in its tail.
		got := make([]byte, 6)
		require.NoError(t, F32ToBF16(got, f32Bytes(c.in, c.in, c.in)))
		for i := range 3 {
			require.Equal(t, c.want, binary.LittleEndian.Uint16(got[2*i:]), c.name)
		}
	}
}

// Rounding to nearest even in float64, where the grid around x is exact.
func TestF32ToBF16AgainstFloat64(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		bits := rapid.Uint32().Draw(t, "bits")
		x := float64(math.Float32frombits(bits))
		if math.IsNaN(x) || bits&0x7f800000 >= 0x7f000000 {
			return
		}
		ulp := math.Ldexp(1, max(int(bits>>23&0xff), 1)-127-7)
		want := math.RoundToEven(x/ulp) * ulp
		got := make([]byte, 2)
		require.NoError(t, F32ToBF16(got, f32Bytes(bits)))
		require.Equal(t, want, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(got))<<16)))
	})
}

// Every 16-bit value must survive the way to float32 and back.
func TestSixteenBitsRoundTrip(t *testing.T) {
	all := make([]byte, 0, 2<<16)
	for i := range 1 << 16 {
		all = binary.LittleEndian.AppendUint16(all, uint16(i))
	}
	for _, c := range []struct {
		name             string
		widen, narrow    func(dst, src []byte) error
		expMask, manMask uint16
	}{
		{"bf16", BF16ToF32, F32ToBF16, 0x7f80, 0x7f},
		{"f16", F16ToF32, F32ToF16, 0x7c00, 0x3ff},
	} {
		wide, back := make([]byte, 4<<16), make([]byte, 2<<16)
		require.NoError(t, c.widen(wide, all))
		require.NoError(t, c.narrow(back, wide))
		for i := range 1 << 16 {
			v, b := uint16(i), binary.LittleEndian.Uint16(back[2*i:])
			nan := v&c.expMask == c.expMask && v&c.manMask != 0
			if nan {
				require.True(t, b&c.expMask == c.expMask && b&c.manMask != 0, "%s NaN %#x became %#x", c.name, v, b)
				require.Equal(t, v>>15, b>>15, "%s sign of NaN %#x", c.name, v)
				continue
			}
			require.Equal(t, v, b, c.name)
		}
	}
}

func TestF16Values(t *testing.T) {
	for _, c := range []struct {
		in   float32
		want uint16
	}{
		{1, 0x3c00}, {-2, 0xc000}, {65504, 0x7bff}, {65519, 0x7bff}, {65520, 0x7c00}, {1e30, 0x7c00},
		{5.9604645e-8, 0x0001}, {2.9802322e-8, 0x0000}, {8.940697e-8, 0x0002}, {6.1035156e-5, 0x0400},
		{1 + 1.0/2048, 0x3c00}, {1 + 3.0/2048, 0x3c02},
	} {
		got := make([]byte, 2)
		require.NoError(t, F32ToF16(got, f32Bytes(math.Float32bits(c.in))))
		require.Equal(t, c.want, binary.LittleEndian.Uint16(got), c.in)
	}
}

func TestConversionLengths(t *testing.T) {
	for _, f := range []func(dst, src []byte) error{BF16ToF32, F16ToF32} {
		require.Error(t, f(make([]byte, 4), make([]byte, 4)))
		require.Error(t, f(make([]byte, 6), make([]byte, 3)))
		require.NoError(t, f(nil, nil))
	}
	for _, f := range []func(dst, src []byte) error{F32ToBF16, F32ToF16} {
		require.Error(t, f(make([]byte, 4), make([]byte, 4)))
		require.NoError(t, f(nil, nil))
	}
}

func BenchmarkConvert(b *testing.B) {
	wide, narrow := make([]byte, 4<<20), make([]byte, 2<<20)
	for i := range 1 << 20 {
		binary.LittleEndian.PutUint32(wide[4*i:], math.Float32bits(float32(i)*0.37-1000))
	}
	for _, c := range []struct {
		name     string
		f        func(dst, src []byte) error
		dst, src []byte
	}{
		{"F32ToBF16", F32ToBF16, narrow, wide}, {"BF16ToF32", BF16ToF32, wide, narrow},
		{"F32ToF16", F32ToF16, narrow, wide}, {"F16ToF32", F16ToF32, wide, narrow},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(4 << 20)
			for range b.N {
				if err := c.f(c.dst, c.src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
