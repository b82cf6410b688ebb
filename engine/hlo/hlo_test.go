package hlo

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	. "weft/engine/internal/hlotest" //nolint:revive // modules are written in its words
)

func parse(t testing.TB, m Msg) *Module {
	t.Helper()
	parsed, err := Parse("hlo", m)
	require.NoError(t, err)
	return parsed
}

// loopModule is an entry that gathers once and runs a loop 5 times, whose body gathers and reduces.
func loopModule(backendConfig string) Msg {
	iota2 := Msg{}.Sub(2, Msg{}.Num(1, 2).Num(2, 2).Ints(3, 2, 2).Ints(4, 1, 0))
	gather := Op(1, "ag", "all-gather", F32(8, 4), 7).Sub(87, iota2)
	add := Func(30, "add", Op(9, "add", "add", F32()))
	reduce := Op(2, "ar", "all-reduce-start", F32(8, 4), 1).Ints(38, 30).Sub(49, Msg{}.Ints(1, 0, 1))
	body := Func(20, "body", gather, reduce, Op(3, "ard", "all-reduce-done", F32(8, 4), 2))
	loop := Op(4, "w", "while", Tuple(F32(8, 4), S32)).Ints(38, 20).Str(43, backendConfig)
	return Program(10, add, body, Func(10, "main", gather, loop))
}

func TestCollectivesCountLoops(t *testing.T) {
	m := parse(t, loopModule(`{"known_trip_count":{"n":"5"}}`))
	list, err := m.Collectives()
	require.NoError(t, err)
	require.Equal(t, "6 × all-gather f32[8,4]\n5 × all-reduce f32[8,4]\n", FormatCollectives(list))
	require.Equal(t, [][]int64{{0, 2}, {1, 3}}, m.Computations[2].Instructions[0].Groups)
	loop := m.Computations[2].Instructions[1]
	require.Equal(t, "(f32[8,4], s32[])", loop.Shape.String())
	require.EqualValues(t, 8*4*4+4, loop.Shape.Bytes())
}

func TestEnvelopeAndAliases(t *testing.T) {
	aliases := Msg{}.Sub(1, Msg{}.Ints(1, 2).Num(2, 5)).Sub(1, Msg{}.Num(2, 1))
	m, err := Parse("hlo_with_config", Msg{}.Sub(1, loopModule("").Sub(8, aliases)).Sub(2, Msg{}.Num(4, 2).Num(5, 16)))
	require.NoError(t, err)
	require.Equal(t, "jit", m.Name)
	require.EqualValues(t, 2, m.Replicas)
	require.EqualValues(t, 16, m.Partitions)
	require.Equal(t, []Alias{{Output: []int64{2}, Parameter: 5}, {Parameter: 1}}, m.Aliases)
}

func TestShapes(t *testing.T) {
	layout := Msg{}.Ints(1, 0, 1).Num(8, 1)
	vmem := Array(16, 3, 5).Sub(5, layout)
	m := parse(t, Program(1, Func(1, "main", Op(1, "x", "custom-call", Tuple(vmem, Tuple(F32(7)), Array(21, 3), S32)))))
	s := m.Computations[0].Root().Shape
	require.Equal(t, "(bf16[3,5], (f32[7]), s4[3], s32[])", s.String())
	require.EqualValues(t, 3*5*2+7*4+2+4, s.Bytes())
	require.EqualValues(t, 3*5*2, s.BytesIn(1), "in the chip's vector memory")
	require.EqualValues(t, 7*4+2+4, s.BytesIn(0))
	require.Equal(t, []int64{0, 1}, s.Tuple[0].MinorToMajor)
	require.Len(t, s.Arrays(), 4)
	huge := Shape{DType: "f32", Dims: []int64{math.MaxInt64, 4}}
	require.EqualValues(t, math.MaxInt64/8+1, huge.Bytes(), "saturates")
	require.Zero(t, Shape{DType: "f32", Dims: []int64{-3, -5}}.Bytes())
}

func TestInstructionFields(t *testing.T) {
	window := Msg{}.Sub(1, Msg{}.Num(1, 4).Num(2, 3).Num(3, 3).Num(4, -1).Num(5, 1).Num(6, 4).Num(7, 1))
	numbers := Msg{}.Num(3, 2).Num(4, 1).Ints(6, 0, 3).Num(7, 1).Num(8, 3).Num(9, 1).Num(10, 3).Ints(11, 0, 2).Ints(12, 0, 2)
	conv := Op(1, "conv", "convolution", F32(2)).Sub(15, window).Sub(16, numbers).Num(50, 2).Sub(7, Msg{}.Str(1, "type").Str(2, "layer/dot"))
	dot := Op(2, "dot", "dot", F32(2)).Sub(30, Msg{}.Ints(1, 2).Ints(2, 1).Ints(3, 0).Ints(4, 0))
	slice := Op(3, "slice", "slice", F32(2)).Sub(17, Msg{}.Num(1, 1).Num(2, 7).Num(3, 2)).Sub(68, Msg{}.Sub(1, Msg{}.Str(1, "k").Str(2, "v")))
	permute := Op(4, "permute", "collective-permute", F32(2)).Sub(52, Msg{}.Num(2, 1)).Sub(52, Msg{}.Num(1, 1)).Num(26, 7).Num(71, 1)
	call := Op(5, "call", "custom-call", F32(2)).Str(28, "target").Sub(74, Msg{}.Ints(1, 0).Num(2, 1).Ints(3, 4))
	in := parse(t, Program(1, Func(1, "main", conv, dot, slice, permute, call).Num(6, 3))).Computations[0]
	require.Equal(t, "slice", in.Root().Name)
	require.Equal(t, []WindowDimension{{Size: 4, Stride: 3, PadLow: 3, PadHigh: -1, WindowDilation: 1, BaseDilation: 4, Reversal: true}}, in.Instructions[0].Window)
	require.Equal(t, &ConvolutionDimensions{
		InputBatch: 1, InputFeature: 3, InputSpatial: []int64{0, 2}, KernelInputFeature: 2, KernelOutputFeature: 1, KernelSpatial: []int64{0, 3},
		OutputBatch: 1, OutputFeature: 3, OutputSpatial: []int64{0, 2},
	}, in.Instructions[0].Convolution)
	require.EqualValues(t, 2, in.Instructions[0].FeatureGroupCount)
	require.EqualValues(t, 1, in.Instructions[0].BatchGroupCount)
	require.Equal(t, "layer/dot", in.Instructions[0].OpName)
	require.Equal(t, &DotDimensions{LHSContracting: []int64{2}, RHSContracting: []int64{1}, LHSBatch: []int64{0}, RHSBatch: []int64{0}}, in.Instructions[1].Dot)
	require.Equal(t, []Slice{{1, 7, 2}}, in.Instructions[2].Slices)
	require.Equal(t, map[string]string{"k": "v"}, in.Instructions[2].Attributes)
	require.Equal(t, [][2]int64{{0, 1}, {1, 0}}, in.Instructions[3].Pairs)
	require.True(t, in.Instructions[3].GlobalIDs)
	require.EqualValues(t, 7, in.Instructions[3].ChannelID)
	require.Equal(t, "target", in.Instructions[4].Target)
	require.Equal(t, []Reuse{{Output: []int64{0}, Operand: 1, OperandIndex: []int64{4}}}, in.Instructions[4].Reused)
}

func TestFaultsAreNamed(t *testing.T) {
	_, err := Parse("mlir", nil)
	require.ErrorContains(t, err, `"mlir"`)
	_, err = Parse("hlo", []byte{0x0a, 0x80})
	require.Error(t, err)
	_, err = Parse("hlo", Program(1))
	require.ErrorContains(t, err, "no computations")
	_, err = Parse("hlo", Program(1, Func(1, "a"), Func(1, "b")))
	require.ErrorContains(t, err, "a and b have one id")
	_, err = parse(t, loopModule("")).Collectives()
	require.ErrorContains(t, err, "loop w communicates and its trip count is unknown")
	_, err = parse(t, Program(7, Func(1, "a"))).Collectives()
	require.ErrorContains(t, err, "no entry computation 7")
	_, err = parse(t, Program(1, Func(1, "a", Op(1, "c", "call", F32()).Ints(38, 2)))).Collectives()
	require.ErrorContains(t, err, "calls computation 2, which is not there")
	_, err = parse(t, Program(1, Func(1, "a", Op(1, "c", "call", F32()).Ints(38, 1)))).Collectives()
	require.ErrorContains(t, err, "called more than")
	deep := F32()
	for range maxDepth + 1 {
		deep = Tuple(deep)
	}
	_, err = Parse("hlo", Program(1, Func(1, "a", Op(1, "x", "tuple", deep))))
	require.ErrorContains(t, err, "tuples more than")
}

// Whatever the bytes are, reading and walking them ends, without a panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(loopModule("")))
	f.Add([]byte(loopModule(`{"known_trip_count":{"n":"5"}}`)))
	f.Add([]byte(counted(counter{start: 0, limit: 9, step: 2, direction: "LT"})))
	f.Add([]byte(Program(1, Func(1, "a", Op(1, "g", "all-gather", F32(4)).Sub(93, meshAxes([]int64{4, 2}, nil, axisPart{axis: 0, pre: 2, size: 2}))))))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse("hlo", data)
		if err != nil {
			return
		}
		require.NotEmpty(t, m.Computations)
		visits := 0
		_ = m.Walk(func(s Site) error {
			if visits++; visits > 10_000 {
				return errEnough
			}
			s.Computation.Communication(s.Instruction)
			require.GreaterOrEqual(t, s.Instruction.Shape.Bytes(), int64(0))
			return nil
		})
		_, _ = m.Collectives()
	})
}

func TestScheduleAndPrecision(t *testing.T) {
	a, b := Op(1, "a", "parameter", F32(2)), Op(2, "b", "add", F32(2), 1, 1).Sub(51, Msg{}.Ints(1, 0, 2))
	c := Op(3, "c", "copy", F32(2), 1).Sub(51, Msg{}.Ints(1, 1))
	sequence := func(ids ...int64) Msg { return Msg{}.Sub(1, Msg{}.Num(1, 7).Sub(2, Msg{}.Ints(1, ids...))) }
	m := parse(t, Program(7, Func(7, "main", a, b, c).Num(6, 2)).Sub(7, sequence(1, 3, 2)))
	entry, err := m.Entry()
	require.NoError(t, err)
	require.True(t, entry.Scheduled)
	require.Equal(t, []string{"a", "c", "b"}, []string{entry.Instructions[0].Name, entry.Instructions[1].Name, entry.Instructions[2].Name})
	require.Equal(t, "b", entry.Root().Name)
	require.Equal(t, []int64{1, 3, 6}, []int64{entry.Instructions[0].Passes, entry.Instructions[1].Passes, entry.Instructions[2].Passes})
	require.Len(t, entry.Users(entry.Instructions[0]), 2, "b uses it twice and counts once")
	_, err = Parse("hlo", Program(7, Func(7, "main", a, b, c)).Sub(7, sequence(1, 3)))
	require.ErrorContains(t, err, "the schedule of computation main has 2 instructions of 3")
}
