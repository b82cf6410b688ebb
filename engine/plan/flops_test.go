package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/engine/hlo"
	. "weft/engine/internal/hlotest" //nolint:revive // modules are written in its words
	"weft/internal/property"
)

func parse(t require.TestingT, m Msg) *hlo.Module {
	parsed, err := hlo.Parse("hlo", m)
	require.NoError(t, err)
	return parsed
}

// rootFLOPs counts the arithmetic of the last of a computation's instructions.
func rootFLOPs(t *testing.T, instructions ...Msg) flops {
	t.Helper()
	c := parse(t, Program(1, Func(1, "main", instructions...))).Computations[0]
	f, err := flopsOf(c, c.Root())
	require.NoError(t, err)
	return f
}

func window(size, stride, low, high, dilation, base int64) Msg {
	return Msg{}.Num(1, size).Num(2, stride).Num(3, low).Num(4, high).Num(5, dilation).Num(6, base)
}

func TestDotFLOPs(t *testing.T) {
	l, r := Param(1, 0, F32(3, 5, 7)), Param(2, 1, F32(3, 7, 11))
	dot := Op(3, "dot", "dot", F32(3, 5, 11), 1, 2).Sub(30, Msg{}.Ints(1, 2).Ints(2, 1).Ints(3, 0).Ints(4, 0))
	require.Equal(t, flops{products: 2 * 3 * 5 * 7 * 11, passes: 2 * 3 * 5 * 7 * 11}, rootFLOPs(t, l, r, dot))
	require.InDelta(t, 6*2*3*5*7*11, rootFLOPs(t, l, r, dot.Sub(51, Msg{}.Ints(1, 2, 2))).passes, 0, "float32 at HIGHEST")
	narrow := []Msg{Param(1, 0, Array(16, 3, 5, 7)), Param(2, 1, Array(16, 3, 7, 11)), dot.Sub(51, Msg{}.Ints(1, 2, 2))}
	require.InDelta(t, 2*3*5*7*11, rootFLOPs(t, narrow...).passes, 0, "bfloat16 has one precision")

	c := parse(t, Program(1, Func(1, "main", l, Op(3, "dot", "dot", F32(3), 1, 2).Sub(30, Msg{}.Ints(1, 9))))).Computations[0]
	_, err := flopsOf(c, c.Root())
	require.ErrorContains(t, err, "dot dot names dimension 9 of f32[3,5,7]")
	c = parse(t, Program(1, Func(1, "main", Op(3, "mm", "custom-call", F32(3)).Str(28, "__onednn$matmul")))).Computations[0]
	_, err = flopsOf(c, c.Root())
	require.ErrorContains(t, err, "__onednn$matmul")
}

// A TPU's compiler writes dots as convolutions.
func TestConvolutionFLOPs(t *testing.T) {
	for name, c := range map[string]struct {
		input, kernel, output Msg
		numbers               Msg
		windows               []Msg
		want                  float64
	}{
		"an image": { // [batch, y, feature] by [y, in, out]
			F32(2, 8, 3), F32(3, 3, 5), F32(2, 6, 5),
			Msg{}.Num(3, 1).Num(4, 2).Ints(6, 0).Num(8, 2).Num(10, 2).Ints(11, 1).Ints(12, 1),
			[]Msg{window(3, 1, 0, 0, 1, 1)}, 2 * 2 * 6 * 3 * 3 * 5,
		},
		"padding is not counted": {
			F32(1, 4, 1), F32(3, 1, 1), F32(1, 4, 1),
			Msg{}.Num(3, 1).Num(4, 2).Ints(6, 0).Num(8, 2).Num(10, 2).Ints(11, 1).Ints(12, 1),
			[]Msg{window(3, 1, 1, 1, 1, 1)}, 2 * (2 + 3 + 3 + 2),
		},
		"a batch as a spatial dimension": { // 4 products of [16, 8] and [8, 32]
			F32(4, 16, 8), F32(4, 8, 32), F32(4, 16, 32),
			Msg{}.Num(3, 1).Num(4, 2).Ints(6, 0).Num(7, 1).Num(8, 2).Num(9, 1).Num(10, 2).Ints(11, 0).Ints(12, 0),
			[]Msg{window(4, 3, 0, 0, 1, 4)}, 2 * 4 * 16 * 8 * 32,
		},
	} {
		t.Run(name, func(t *testing.T) {
			windows := Msg{}
			for _, w := range c.windows {
				windows = windows.Sub(1, w)
			}
			conv := Op(3, "conv", "convolution", c.output, 1, 2).Sub(15, windows).Sub(16, c.numbers)
			require.InDelta(t, c.want, rootFLOPs(t, Param(1, 0, c.input), Param(2, 1, c.kernel), conv).products, 0)
		})
	}
}

func TestMeetingsCountsOneByOne(t *testing.T) {
	property.Check(t, func(r *rapid.T) {
		draw := func(name string, low, high int64) int64 { return rapid.Int64Range(low, high).Draw(r, name) }
		input, kernel, output := draw("input", 0, 9), draw("kernel", 0, 6), draw("output", 0, 12)
		w := hlo.WindowDimension{
			Stride: draw("stride", 1, 5), PadLow: draw("pad", -4, 6), WindowDilation: draw("dilation", 1, 4), BaseDilation: draw("base", 1, 6),
		}
		var want float64
		for o := range output {
			for k := range kernel {
				at := o*w.Stride + k*w.WindowDilation - w.PadLow
				if input > 0 && at >= 0 && at <= (input-1)*w.BaseDilation && at%w.BaseDilation == 0 {
					want++
				}
			}
		}
		require.InDelta(r, want, meetings(input, kernel, output, w), 0)
	})
}

func TestElementwiseFLOPs(t *testing.T) {
	x := Param(1, 0, F32(4, 6))
	require.InDelta(t, 24, rootFLOPs(t, x, Op(2, "y", "multiply", F32(4, 6), 1, 1)).elementwise, 0)
	require.InDelta(t, 24, rootFLOPs(t, x, Op(2, "y", "reduce", F32(4), 1)).elementwise, 0)
	require.Zero(t, rootFLOPs(t, x, Op(2, "y", "transpose", F32(6, 4), 1)))
}
