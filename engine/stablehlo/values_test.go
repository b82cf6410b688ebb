package stablehlo_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

var (
	nan, inf = float32(math.NaN()), float32(math.Inf(1))
	negZero  = float32(math.Copysign(0, -1))
	special  = []float32{nan, inf, -inf, 0, negZero, 1, -1, 2.5, -2.5, 0.5, 1.5, 3e38} // no subnormals: XLA's CPU backend flushes them
)

// TestSpecialValues runs operations on NaN, infinities, signed zeros and halves.
func TestSpecialValues(t *testing.T) {
	c := cpuClient(t)
	for _, tc := range []struct {
		name string
		fn   func(x *graph.Node) *graph.Node
		want func(x float64) float64
	}{
		{"Abs", graph.Abs, math.Abs},
		{"Ceil", graph.Ceil, math.Ceil},
		{"Floor", graph.Floor, math.Floor},
		{"Round", graph.Round, math.RoundToEven},
		{"Neg", graph.Neg, func(x float64) float64 { return -x }},
		{"Sign", graph.Sign, func(x float64) float64 {
			if x != x || x == 0 {
				return x
			}
			return math.Copysign(1, x)
		}},
		{"Sqrt", func(x *graph.Node) *graph.Node { return graph.Sqrt(graph.Round(x)) }, func(x float64) float64 { return math.Sqrt(math.RoundToEven(x)) }},
		{"IsNaN", isFloat(graph.IsNaN), func(x float64) float64 { return truth(x != x) }},
		{"IsFinite", isFloat(graph.IsFinite), func(x float64) float64 { return truth(x-x == 0) }},
		{"Max with 1", func(x *graph.Node) *graph.Node { return graph.MaxScalar(x, 1) }, func(x float64) float64 { return math.Max(x, 1) }},
		{"Min with 1", func(x *graph.Node) *graph.Node { return graph.MinScalar(x, 1) }, func(x float64) float64 { return math.Min(x, 1) }},
		{"Less than 1", isFloat(func(x *graph.Node) *graph.Node { return graph.LessThan(x, graph.OnesLike(x)) }), func(x float64) float64 { return truth(x < 1) }},
		{"Not equal 1", isFloat(func(x *graph.Node) *graph.Node { return graph.NotEqual(x, graph.OnesLike(x)) }), func(x float64) float64 { return truth(x != 1) }},
		{"Exp", graph.Exp, math.Exp},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := runXLA(t, c, one(tc.fn), fromSlice(special, len(special)))[0]
			want := newArray(got.shape)
			for i, x := range special {
				want.setFloat(i, tc.want(float64(x)))
			}
			require.NoError(t, compareArrays(got, want, 4e-6))
			if tc.name == "Neg" || tc.name == "Abs" || tc.name == "Round" {
				for i := range special {
					require.Equal(t, math.Signbit(want.float(i)), math.Signbit(got.float(i)), "sign of element %d, from %v", i, special[i])
				}
			}
		})
	}
}

func isFloat(f func(x *graph.Node) *graph.Node) func(x *graph.Node) *graph.Node {
	return func(x *graph.Node) *graph.Node { return graph.ConvertDType(f(x), dtypes.Float32) }
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// TestArgOfNaN takes the first NaN.
func TestArgOfNaN(t *testing.T) {
	x := fromSlice([]float32{1, nan, 5, nan, -inf, -inf, inf, inf, 3, 2, 3, 1, nan, nan, nan, nan}, 4, 4)
	got := runXLA(t, cpuClient(t), func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
		return []*graph.Node{graph.ArgMax(xs[0], 1), graph.ArgMin(xs[0], 1)}
	}, x)
	require.Equal(t, []int32{1, 2, 0, 0}, got[0].tensor().Value())
	require.Equal(t, []int32{1, 0, 3, 0}, got[1].tensor().Value())
}

// TestReduceProductGradientAtZero: the derivative by an element is the product of the others, zeros or not.
func TestReduceProductGradientAtZero(t *testing.T) {
	got := runXLA(t, cpuClient(t), func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
		return graph.Gradient(graph.ReduceAllSum(graph.ReduceMultiply(xs[0], 1)), xs[0])
	}, fromSlice([]float32{2, 3, 4, 2, 0, 4, 0, 3, 0}, 3, 3))
	require.Equal(t, [][]float32{{12, 8, 6}, {0, 8, 0}, {0, 0, 0}}, got[0].tensor().Value())
}

// TestConstantsKeepTheirBits: every pattern of the 16-bit floats, random ones of the others, as scalars, lists and hex.
func TestConstantsKeepTheirBits(t *testing.T) {
	c := cpuClient(t)
	rng := rand.New(rand.NewPCG(3, 4))
	unsigned := map[dtypes.DType]dtypes.DType{dtypes.Float16: dtypes.Uint16, dtypes.BFloat16: dtypes.Uint16, dtypes.Float32: dtypes.Uint32, dtypes.Float64: dtypes.Uint64}
	var constants []array
	add := func(dtype dtypes.DType, n int, bits func(i int) uint64) {
		a := newArray(shapes.Make(dtype, n))
		if n == 1 {
			a = newArray(shapes.Make(dtype))
		}
		for i := range n {
			a.setBits(i, bits(i))
		}
		constants = append(constants, a)
	}
	anyBits := func(int) uint64 { return rng.Uint64() }
	for _, dtype := range slices.Sorted(maps.Keys(pjrtTypes)) { // the bits are drawn in one order
		if dtype == dtypes.Bool {
			add(dtype, 100, func(int) uint64 { return rng.Uint64() & 1 })
			add(dtype, 1, func(int) uint64 { return 1 })
			continue
		}
		for range 8 {
			add(dtype, 1, anyBits)
			add(dtype, 32, anyBits)
		}
		add(dtype, 100, anyBits)
		add(dtype, 4, func(i int) uint64 { return []uint64{0, 1, 1 << (dtype.Bits() - 1), math.MaxUint64}[i] })
		add(dtype, 3, func(int) uint64 { return math.MaxUint64 >> (64 - dtype.Bits() + 1) })
		if dtype.Bits() == 16 {
			add(dtype, 1<<16, func(i int) uint64 { return uint64(i) })
		}
	}
	// The decimal form: round numbers and random magnitudes.
	for _, v := range []float32{0, negZero, 1, 0.1, -3.25, 1e30, 1e-45, 3.4028235e38, 16777217, inf, -inf} {
		add(dtypes.Float32, 1, func(int) uint64 { return uint64(math.Float32bits(v)) })
	}
	got := runXLA(t, c, func(g *graph.Graph, _ []*graph.Node) (out []*graph.Node) {
		for _, a := range constants {
			n := graph.ConstTensor(g, a.tensor())
			if u, ok := unsigned[a.shape.DType]; ok {
				n = graph.Bitcast(n, u) // NaNs travel as integers.
			}
			out = append(out, n)
		}
		return out
	})
	for i, a := range constants {
		require.Equal(t, a.raw, got[i].raw, "constant %d of shape %s", i, a.shape)
	}
}

// TestEmptyTensors keeps dimensions of zero.
func TestEmptyTensors(t *testing.T) {
	got := runXLA(t, cpuClient(t), func(g *graph.Graph, xs []*graph.Node) []*graph.Node {
		x := xs[0]
		return []*graph.Node{
			graph.Exp(x), graph.ReduceSum(x, 0), graph.ReduceMax(x, 0), graph.Concatenate([]*graph.Node{x, x}, 1),
			graph.Pad(x, graph.Scalar(g, dtypes.Float32, 7), graph.PadAxis{Start: 1}), graph.Dot(graph.Transpose(x, 0, 1), x).Product(),
		}
	}, newArray(shapes.Make(dtypes.Float32, 0, 2)))
	require.Equal(t, []int{0, 2}, got[0].shape.Dimensions)
	require.Equal(t, []float32{0, 0}, got[1].tensor().Value())
	require.Equal(t, []float32{-inf, -inf}, got[2].tensor().Value())
	require.Equal(t, []int{0, 4}, got[3].shape.Dimensions)
	require.Equal(t, [][]float32{{7, 7}}, got[4].tensor().Value())
	require.Equal(t, [][]float32{{0, 0}, {0, 0}}, got[5].tensor().Value())
}

// TestRandom: the same state gives the same numbers, the next one others, and they look uniform.
func TestRandom(t *testing.T) {
	c := cpuClient(t)
	state := fromSlice([]uint64{0x0123456789abcdef, 42, 7}, 3)
	draw := func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
		next, uniform := graph.RandomUniform(xs[0], shapes.Make(dtypes.Float32, 1000))
		last, ints := graph.RandomIntN(next, 1000, shapes.Make(dtypes.Int32, 1000))
		return []*graph.Node{next, uniform, last, ints}
	}
	first, again := runXLA(t, c, draw, state), runXLA(t, c, draw, state)
	for i := range first {
		require.Equal(t, first[i].raw, again[i].raw, "same state, other bits")
	}
	require.NotEqual(t, state.raw, first[0].raw, "the state moves on")
	require.NotEqual(t, first[0].raw, first[2].raw, "the state moves on")
	var mean, square float64
	for i := range 1000 {
		v := first[1].float(i)
		require.True(t, v >= 0 && v < 1)
		mean, square = mean+v/1000, square+v*v/1000
		n := first[3].int(i)
		require.True(t, n >= 0 && n < 1000)
	}
	require.InDelta(t, 0.5, mean, 0.03)
	require.InDelta(t, 1.0/12, square-mean*mean, 0.01)
}

// TestRandomBits compares bits with Philox 4x32-10 (Salmon et al., 2011): the state is the key and a 128-bit counter, and
// each count gives four words.
func TestRandomBits(t *testing.T) {
	state := []uint64{0x0123456789abcdef, math.MaxUint64, 7}
	got := runXLA(t, cpuClient(t), func(_ *graph.Graph, xs []*graph.Node) []*graph.Node {
		_, bits := graph.RNGStateSplit(xs[0])
		return []*graph.Node{bits}
	}, fromSlice(state, 3))
	var want []uint64
	for i := range 2 {
		low := state[1] + uint64(i)
		high := state[2]
		if low < state[1] {
			high++
		}
		w := philox([4]uint32{uint32(low), uint32(low >> 32), uint32(high), uint32(high >> 32)}, [2]uint32{uint32(state[0]), uint32(state[0] >> 32)})
		want = append(want, uint64(w[0])|uint64(w[1])<<32, uint64(w[2])|uint64(w[3])<<32)
	}
	require.Equal(t, want[:3], got[0].tensor().Value())
}

func philox(c [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		a, b := uint64(c[0])*0xD2511F53, uint64(c[2])*0xCD9E8D57
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ key[0], uint32(b), uint32(a>>32) ^ c[3] ^ key[1], uint32(a)}
		key[0], key[1] = key[0]+0x9E3779B9, key[1]+0xBB67AE85
	}
	return c
}
