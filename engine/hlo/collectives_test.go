package hlo

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "weft/engine/internal/hlotest" //nolint:revive // modules are written in its words
)

// communications lists what a module communicates, by the names of the instructions.
func communications(t *testing.T, m *Module) map[string]*Communication {
	t.Helper()
	out := map[string]*Communication{}
	require.NoError(t, m.Walk(func(s Site) error {
		if x := s.Computation.Communication(s.Instruction); x != nil {
			x.Async = x.Async || s.Async != nil
			out[s.Instruction.Name] = x
		}
		return nil
	}))
	return out
}

func TestCommunicationForms(t *testing.T) {
	p := Op(1, "p", "parameter", F32(4, 8))
	wrapped := Func(40, "wrapped", p, Op(2, "inner", "reduce-scatter", F32(1, 8), 1))
	scattered := Func(41, "scattered", p, Op(2, "summed", "all-reduce", F32(4, 8), 1), Op(3, "b", "bitcast", F32(32), 2),
		Op(4, "slice", "dynamic-slice", F32(8), 3))
	whole := Func(42, "whole", p, Op(2, "needed", "all-reduce", F32(4, 8), 1), Op(3, "slice", "dynamic-slice", F32(8), 2),
		Op(4, "both", "tuple", Tuple(F32(4, 8), F32(8)), 2, 3))
	entry := Func(10, "main", p,
		Op(2, "sync", "all-gather", F32(16, 8), 1).Str(43, `{"collective_algorithm_config":{"emitter":"Ring","strategy":"ND"}}`),
		Op(3, "gather", "all-gather-start", Tuple(F32(4, 8), F32(16, 8)), 1), Op(4, "gather-done", "all-gather-done", F32(16, 8), 3),
		Op(5, "reduce", "all-reduce-start", F32(4, 8), 1), Op(6, "reduce-done", "all-reduce-done", F32(4, 8), 5),
		Op(7, "permute", "collective-permute-start", Tuple(F32(4, 8), F32(4, 8), Array(8), Array(8)), 1),
		Op(8, "begin", "async-start", Tuple(Tuple(F32(4, 8)), F32(1, 8)), 1).Ints(38, 40),
		Op(9, "end", "async-done", F32(1, 8), 8),
		Op(10, "rs", "fusion", F32(8), 1).Ints(38, 41), Op(11, "ar", "fusion", F32(8), 1).Ints(38, 42),
		Op(12, "outside", "all-reduce", F32(4, 8), 1), Op(13, "cut", "dynamic-slice", F32(1, 8), 12),
		Op(14, "several", "all-to-all", Tuple(F32(4, 8), F32(4, 8)), 1, 1))
	got := communications(t, parse(t, Program(10, wrapped, scattered, whole, entry)))
	for name, want := range map[string]struct {
		kind, operand, result string
		async                 bool
	}{
		"sync":    {AllGather, "f32[4,8]", "f32[16,8]", false},
		"gather":  {AllGather, "f32[4,8]", "f32[16,8]", true},
		"reduce":  {AllReduce, "f32[4,8]", "f32[4,8]", true},
		"permute": {Permute, "f32[4,8]", "f32[4,8]", true},
		"inner":   {ReduceScatter, "f32[4,8]", "f32[1,8]", true},
		"summed":  {ReduceScatter, "f32[4,8]", "f32[8]", false},
		"needed":  {AllReduce, "f32[4,8]", "f32[4,8]", false},
		"outside": {AllReduce, "f32[4,8]", "f32[4,8]", false},
		"several": {AllToAll, "(f32[4,8], f32[4,8])", "(f32[4,8], f32[4,8])", false},
	} {
		x := got[name]
		require.NotNil(t, x, name)
		require.Equal(t, want.kind, x.Kind, name)
		require.Equal(t, want.operand, x.Operand.String(), name)
		require.Equal(t, want.result, x.Result.String(), name)
		require.Equal(t, want.async, x.Async, name)
	}
	require.Len(t, got, 9, "the done halves do not count")
	require.Equal(t, "Ring/ND", got["sync"].Algorithm)
}

// A TPU with sparse cores gathers on them: an asynchronous custom call of a computation, whose operands come with an
// update.
func TestCommunicationOnSparseCores(t *testing.T) {
	p := Op(1, "p", "parameter", F32(4, 8))
	inner := Func(42, "called", p, Op(2, "gathered", "all-gather", F32(16, 8), 1))
	wrapped := Func(41, "wrapped", p, Op(2, "call", "custom-call", F32(16, 8), 1).Calls(42))
	region := Func(43, "compare", Op(1, "less", "compare", Pred))
	entry := Func(10, "main", p, Op(2, "start", "async-start", Tuple(Tuple(), Tuple(), S32)).Calls(41),
		Op(3, "update", "async-update", Tuple(Tuple(F32(4, 8)), F32(16, 8), S32), 2, 1), Op(4, "done", "async-done", F32(16, 8), 3),
		Op(5, "top", "custom-call", F32(4), 1).Calls(43))
	m := parse(t, Program(10, inner, wrapped, region, entry))
	got := communications(t, m)
	require.Len(t, got, 1)
	require.Equal(t, AllGather, got["gathered"].Kind)
	require.True(t, got["gathered"].Async)
	visited := map[string]bool{}
	require.NoError(t, m.Walk(func(s Site) error { visited[s.Instruction.Name] = true; return nil }))
	require.False(t, visited["less"], "a function of single elements")
}
