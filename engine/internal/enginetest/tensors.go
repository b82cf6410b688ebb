package enginetest

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"weft/engine/sharding"
	"weft/engine/stablehlo"
)

func shapeOf(o stablehlo.IO) shapes.Shape { return shapes.Make(o.DType, o.Dims...) }

// bytesOf copies a tensor's row-major bytes.
func bytesOf(t T, x *tensors.Tensor) (raw []byte) {
	t.Helper()
	require.NoError(t, x.ConstBytes(func(b []byte) { raw = append(raw, b...) }))
	return raw
}

// cut takes a region of a row-major tensor.
func cut(whole []byte, dims []int, width int, r sharding.Region) []byte {
	out := make([]byte, 0, r.Elements()*width)
	eachElement(dims, width, r, func(offset int) { out = append(out, whole[offset:offset+width]...) })
	return out
}

func paste(whole, part []byte, dims []int, width int, r sharding.Region) {
	eachElement(dims, width, r, func(offset int) { copy(whole[offset:offset+width], part); part = part[width:] })
}

func eachElement(dims []int, width int, r sharding.Region, visit func(offset int)) {
	var walk func(dim, offset int)
	walk = func(dim, offset int) {
		if dim == len(dims) {
			visit(offset * width)
			return
		}
		for i := range r.Size[dim] {
			walk(dim+1, offset*dims[dim]+r.Start[dim]+i)
		}
	}
	walk(0, 0)
}

// Random is a float32 tensor whose elements are spread over about [-1, 1], given by the seed.
func Random(seed int, dims ...int) *tensors.Tensor {
	values := make([]float32, sharding.Region{Size: dims}.Elements())
	state := uint64(seed)*0x9E3779B97F4A7C15 + 1
	for i := range values {
		state = state*6364136223846793005 + 1442695040888963407
		values[i] = float32(int64(state)>>40) / (1 << 23)
	}
	return tensors.FromFlatDataAndDimensions(values, dims...)
}

// Floats are the elements of a tensor, as float64.
func Floats(t T, x *tensors.Tensor) (out []float64) {
	t.Helper()
	x.MustConstFlatData(func(flat any) {
		switch values := flat.(type) {
		case []float32:
			out = convert(values)
		case []float64:
			out = convert(values)
		case []int32:
			out = convert(values)
		case []int64:
			out = convert(values)
		case []bfloat16.BFloat16:
			for _, v := range values {
				out = append(out, float64(v.Float32()))
			}
		case []float16.Float16:
			for _, v := range values {
				out = append(out, float64(v.Float32()))
			}
		case []bool:
			for _, v := range values {
				out = append(out, map[bool]float64{true: 1}[v])
			}
		default:
			require.Fail(t, "dtype", "Floats of %T", flat)
		}
	})
	return out
}

func convert[N float32 | float64 | int32 | int64](values []N) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// Close requires that tensors agree in shape and dtype, and in value to within tolerance times the largest magnitude
// of the wanted tensor (at least 1e-3).
func Close(t T, want, got []*tensors.Tensor, tolerance float64, what ...any) {
	t.Helper()
	require.Len(t, got, len(want), what...)
	for i := range want {
		require.True(t, want[i].Shape().Equal(got[i].Shape()), "%v: output %d: want %s, got %s", what, i, want[i].Shape(), got[i].Shape())
		w, g := Floats(t, want[i]), Floats(t, got[i])
		scale := 1e-3
		for _, v := range w {
			scale = math.Max(scale, math.Abs(v))
		}
		for k := range w {
			if !(math.Abs(w[k]-g[k]) <= tolerance*scale) {
				require.Fail(t, "values differ", "%s: output %d (%s), element %d: want %g, got %g, scale %g, tolerance %g", fmt.Sprint(what...), i, want[i].Shape(), k, w[k], g[k], scale, tolerance)
			}
		}
	}
}
