package stablehlo_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
	"pgregory.net/rapid"
)

// bits gives the bits of element i.
func (a array) bits(i int) uint64 {
	w := a.shape.DType.Size()
	var b [8]byte
	copy(b[:], a.raw[i*w:(i+1)*w])
	return binary.LittleEndian.Uint64(b[:])
}

func (a array) setBits(i int, bits uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	w := a.shape.DType.Size()
	copy(a.raw[i*w:(i+1)*w], b[:w])
}

// float gives element i of a float array.
func (a array) float(i int) float64 {
	switch bits := a.bits(i); a.shape.DType {
	case dtypes.Float64:
		return math.Float64frombits(bits)
	case dtypes.Float32:
		return float64(math.Float32frombits(uint32(bits)))
	case dtypes.BFloat16:
		return float64(bfloat16.BFloat16(bits).Float32())
	case dtypes.Float16:
		return float64(float16.Float16(bits).Float32())
	default:
		panic(fmt.Sprintf("%s is not a float dtype", a.shape.DType))
	}
}

func (a array) setFloat(i int, v float64) {
	switch a.shape.DType {
	case dtypes.Float64:
		a.setBits(i, math.Float64bits(v))
	case dtypes.Float32:
		a.setBits(i, uint64(math.Float32bits(float32(v))))
	case dtypes.BFloat16:
		a.setBits(i, uint64(bfloat16.FromFloat32(float32(v))))
	case dtypes.Float16:
		a.setBits(i, uint64(float16.FromFloat32(float32(v))))
	default:
		panic(fmt.Sprintf("%s is not a float dtype", a.shape.DType))
	}
}

// int gives element i of an integer array of at most 63 bits.
func (a array) int(i int) int64 {
	shift := 64 - 8*a.shape.DType.Size()
	if a.shape.DType.IsUnsigned() || a.shape.DType == dtypes.Bool {
		return int64(a.bits(i))
	}
	return int64(a.bits(i)<<shift) >> shift
}

// compareArrays gives the first difference beyond the tolerance, which is relative above 1 and absolute below.
func compareArrays(got, want array, tolerance float64) error {
	if !got.shape.Equal(want.shape) {
		return fmt.Errorf("shape %s, want %s", got.shape, want.shape)
	}
	for i := range want.shape.Size() {
		if want.shape.DType.IsFloat() {
			g, w := got.float(i), want.float(i)
			same := g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= tolerance*max(1, math.Abs(w))
			if !same || math.IsInf(w, 0) && g != w {
				return fmt.Errorf("element %d of %s is %v, want %v (tolerance %g)", i, want.shape, g, w, tolerance)
			}
		} else if got.bits(i) != want.bits(i) {
			return fmt.Errorf("element %d of %s is %#x, want %#x", i, want.shape, got.bits(i), want.bits(i))
		}
	}
	return nil
}

// tolerances allow some units in the last place of each dtype, for two libraries' transcendental functions.
var tolerances = map[dtypes.DType]float64{
	dtypes.Float64: 1e-12, dtypes.Float32: 4e-6, dtypes.Float16: 2e-3, dtypes.BFloat16: 1.6e-2,
}

// drawer draws shapes and values from one seed and one bound on the dimensions, which rapid draws.
type drawer struct {
	rng     *rand.Rand
	largest int
}

func newDrawer(t *rapid.T) *drawer {
	seed := rapid.Uint64().Draw(t, "seed")
	return &drawer{rand.New(rand.NewPCG(seed, 1)), rapid.IntRange(1, 5).Draw(t, "largest dimension")}
}

func (d *drawer) between(low, high int) int { return low + d.rng.IntN(high-low+1) }

func (d *drawer) chance() bool { return d.rng.IntN(2) == 0 }

func pickOne[T any](d *drawer, from ...T) T { return from[d.between(0, len(from)-1)] }

// dims draws dimensions of 1 to the largest.
func (d *drawer) dims(lowRank, highRank int) []int {
	dims := make([]int, d.between(lowRank, highRank))
	for i := range dims {
		dims[i] = d.between(1, d.largest)
	}
	return dims
}

func (d *drawer) floatDType() dtypes.DType {
	return pickOne(d, dtypes.Float32, dtypes.Float32, dtypes.BFloat16, dtypes.Float64)
}

func (d *drawer) intDType() dtypes.DType {
	return pickOne(d, dtypes.Int32, dtypes.Int8, dtypes.Int16, dtypes.Int64, dtypes.Uint8, dtypes.Uint16, dtypes.Uint32, dtypes.Uint64)
}

func (d *drawer) signedDType() dtypes.DType {
	return pickOne(d, dtypes.Int32, dtypes.Int8, dtypes.Int16, dtypes.Int64)
}

// fill draws floats between low and high, or integers in that range.
func (d *drawer) fill(dtype dtypes.DType, dims []int, low, high float64) array {
	a := newArray(shapes.Make(dtype, dims...))
	for i := range a.shape.Size() {
		switch {
		case dtype == dtypes.Bool:
			a.setBits(i, d.rng.Uint64()&1)
		case dtype.IsFloat():
			a.setFloat(i, low+d.rng.Float64()*(high-low))
		default:
			if dtype.IsUnsigned() && low < 0 {
				low = 0
			}
			a.setBits(i, uint64(int64(low)+d.rng.Int64N(int64(high-low)+1)))
		}
	}
	return a
}

// scalar is one integer.
func (d *drawer) scalar(dtype dtypes.DType, v int) array {
	a := newArray(shapes.Make(dtype))
	a.setBits(0, uint64(int64(v)))
	return a
}
