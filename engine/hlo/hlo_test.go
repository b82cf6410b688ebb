package hlo

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// msg is a protobuf message under construction.
type msg []byte

func (m msg) str(num protowire.Number, s string) msg {
	return protowire.AppendString(protowire.AppendTag(slices.Clone(m), num, protowire.BytesType), s)
}

func (m msg) num(num protowire.Number, v int64) msg {
	return protowire.AppendVarint(protowire.AppendTag(slices.Clone(m), num, protowire.VarintType), uint64(v))
}

func (m msg) sub(num protowire.Number, s msg) msg { return m.str(num, string(s)) }

func (m msg) ints(num protowire.Number, values ...int64) msg {
	var packed []byte
	for _, v := range values {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return m.str(num, string(packed))
}

// op is an instruction.
func op(id int64, name, opcode string, shape msg, operands ...int64) msg {
	m := msg{}.str(1, name).str(2, opcode).sub(3, shape).num(35, id)
	if len(operands) > 0 {
		m = m.ints(36, operands...)
	}
	return m
}

// computation has the last instruction as its root.
func computation(id int64, name string, instructions ...msg) msg {
	m := msg{}.str(1, name).num(5, id)
	for _, in := range instructions {
		m = m.sub(2, in)
	}
	return m
}

func module(entry int64, computations ...msg) msg {
	m := msg{}.str(1, "jit").num(6, entry)
	for _, c := range computations {
		m = m.sub(3, c)
	}
	return m
}

func array(dtype int64, dims ...int64) msg { return msg{}.num(2, dtype).ints(3, dims...) }
func f32(dims ...int64) msg                { return array(11, dims...) }

func tupleOf(parts ...msg) msg {
	m := msg{}.num(2, 13)
	for _, p := range parts {
		m = m.sub(4, p)
	}
	return m
}

var s32, pred = msg{}.num(2, 4), msg{}.num(2, 1)

// constant is an s32 scalar.
func constant(id, v int64) msg {
	return op(id, "constant", "constant", s32).sub(8, msg{}.sub(1, s32).ints(4, v))
}

func parse(t testing.TB, m msg) *Module {
	t.Helper()
	parsed, err := Parse("hlo", m)
	require.NoError(t, err)
	return parsed
}

// loopModule is an entry that gathers once and runs a loop 5 times, whose body gathers and reduces.
func loopModule(backendConfig string) msg {
	iota2 := msg{}.sub(2, msg{}.num(1, 2).num(2, 2).ints(3, 2, 2).ints(4, 1, 0))
	gather := op(1, "ag", "all-gather", f32(8, 4), 7).sub(87, iota2)
	add := computation(30, "add", op(9, "add", "add", f32()))
	reduce := op(2, "ar", "all-reduce-start", f32(8, 4), 1).ints(38, 30).sub(49, msg{}.ints(1, 0, 1))
	body := computation(20, "body", gather, reduce, op(3, "ard", "all-reduce-done", f32(8, 4), 2))
	loop := op(4, "w", "while", tupleOf(f32(8, 4), s32)).ints(38, 20).str(43, backendConfig)
	return module(10, add, body, computation(10, "main", gather, loop))
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
	aliases := msg{}.sub(1, msg{}.ints(1, 2).num(2, 5)).sub(1, msg{}.num(2, 1))
	m, err := Parse("hlo_with_config", msg{}.sub(1, loopModule("").sub(8, aliases)).sub(2, msg{}.num(4, 2).num(5, 16)))
	require.NoError(t, err)
	require.Equal(t, "jit", m.Name)
	require.EqualValues(t, 2, m.Replicas)
	require.EqualValues(t, 16, m.Partitions)
	require.Equal(t, []Alias{{Output: []int64{2}, Parameter: 5}, {Parameter: 1}}, m.Aliases)
}

func TestShapes(t *testing.T) {
	layout := msg{}.ints(1, 0, 1).num(8, 1)
	vmem := array(16, 3, 5).sub(5, layout)
	m := parse(t, module(1, computation(1, "main", op(1, "x", "custom-call", tupleOf(vmem, tupleOf(f32(7)), array(21, 3), s32)))))
	s := m.Computations[0].Root().Shape
	require.Equal(t, "(bf16[3,5], (f32[7]), s4[3], s32[])", s.String())
	require.EqualValues(t, 3*5*2+7*4+2+4, s.Bytes())
	require.EqualValues(t, 3*5*2, s.BytesIn(1), "in the chip's vector memory")
	require.EqualValues(t, 7*4+2+4, s.BytesIn(0))
	require.Equal(t, []int64{0, 1}, s.Tuple[0].MinorToMajor)
	require.Len(t, s.Arrays(), 4)
	inner, ok := s.Index([]int64{1, 0})
	require.True(t, ok)
	require.EqualValues(t, 7, inner.Elements())
	_, ok = s.Index([]int64{1, 1})
	require.False(t, ok)
	huge := Shape{DType: "f32", Dims: []int64{math.MaxInt64, 4}}
	require.EqualValues(t, math.MaxInt64/8+1, huge.Bytes(), "saturates")
	require.Zero(t, Shape{DType: "f32", Dims: []int64{-3, -5}}.Bytes())
}

func TestInstructionFields(t *testing.T) {
	window := msg{}.sub(1, msg{}.num(1, 4).num(2, 3).num(3, 3).num(4, -1).num(5, 1).num(6, 4).num(7, 1))
	numbers := msg{}.num(3, 2).num(4, 1).ints(6, 0, 3).num(7, 1).num(8, 3).num(9, 1).num(10, 3).ints(11, 0, 2).ints(12, 0, 2)
	conv := op(1, "conv", "convolution", f32(2)).sub(15, window).sub(16, numbers).num(50, 2).sub(7, msg{}.str(1, "type").str(2, "layer/dot"))
	dot := op(2, "dot", "dot", f32(2)).sub(30, msg{}.ints(1, 2).ints(2, 1).ints(3, 0).ints(4, 0))
	slice := op(3, "slice", "slice", f32(2)).sub(17, msg{}.num(1, 1).num(2, 7).num(3, 2)).sub(68, msg{}.sub(1, msg{}.str(1, "k").str(2, "v")))
	permute := op(4, "permute", "collective-permute", f32(2)).sub(52, msg{}.num(2, 1)).sub(52, msg{}.num(1, 1)).num(26, 7).num(71, 1)
	call := op(5, "call", "custom-call", f32(2)).str(28, "target").sub(74, msg{}.ints(1, 0).num(2, 1).ints(3, 4))
	in := parse(t, module(1, computation(1, "main", conv, dot, slice, permute, call).num(6, 3))).Computations[0]
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
	_, err = Parse("hlo", module(1))
	require.ErrorContains(t, err, "no computations")
	_, err = Parse("hlo", module(1, computation(1, "a"), computation(1, "b")))
	require.ErrorContains(t, err, "a and b have one id")
	_, err = parse(t, loopModule("")).Collectives()
	require.ErrorContains(t, err, "loop w communicates and its trip count is unknown")
	_, err = parse(t, module(7, computation(1, "a"))).Collectives()
	require.ErrorContains(t, err, "no entry computation 7")
	_, err = parse(t, module(1, computation(1, "a", op(1, "c", "call", f32()).ints(38, 2)))).Collectives()
	require.ErrorContains(t, err, "calls computation 2, which is not there")
	_, err = parse(t, module(1, computation(1, "a", op(1, "c", "call", f32()).ints(38, 1)))).Collectives()
	require.ErrorContains(t, err, "called more than")
	deep := f32()
	for range maxDepth + 1 {
		deep = tupleOf(deep)
	}
	_, err = Parse("hlo", module(1, computation(1, "a", op(1, "x", "tuple", deep))))
	require.ErrorContains(t, err, "tuples more than")
}

// Whatever the bytes are, reading and walking them ends, without a panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(loopModule("")))
	f.Add([]byte(loopModule(`{"known_trip_count":{"n":"5"}}`)))
	f.Add([]byte(counted(counter{start: 0, limit: 9, step: 2, direction: "LT"})))
	f.Add([]byte(module(1, computation(1, "a", op(1, "g", "all-gather", f32(4)).sub(93, meshAxes([]int64{4, 2}, nil, axisPart{axis: 0, pre: 2, size: 2}))))))
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
