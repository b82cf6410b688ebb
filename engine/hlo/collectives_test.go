package hlo

import (
	"testing"

	"github.com/stretchr/testify/require"
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
	p := op(1, "p", "parameter", f32(4, 8))
	wrapped := computation(40, "wrapped", p, op(2, "inner", "reduce-scatter", f32(1, 8), 1))
	scattered := computation(41, "scattered", p, op(2, "summed", "all-reduce", f32(4, 8), 1), op(3, "b", "bitcast", f32(32), 2),
		op(4, "slice", "dynamic-slice", f32(8), 3))
	whole := computation(42, "whole", p, op(2, "needed", "all-reduce", f32(4, 8), 1), op(3, "slice", "dynamic-slice", f32(8), 2),
		op(4, "both", "tuple", tupleOf(f32(4, 8), f32(8)), 2, 3))
	entry := computation(10, "main", p,
		op(2, "sync", "all-gather", f32(16, 8), 1).str(43, `{"collective_algorithm_config":{"emitter":"Ring","strategy":"ND"}}`),
		op(3, "gather", "all-gather-start", tupleOf(f32(4, 8), f32(16, 8)), 1), op(4, "gather-done", "all-gather-done", f32(16, 8), 3),
		op(5, "reduce", "all-reduce-start", f32(4, 8), 1), op(6, "reduce-done", "all-reduce-done", f32(4, 8), 5),
		op(7, "permute", "collective-permute-start", tupleOf(f32(4, 8), f32(4, 8), array(8), array(8)), 1),
		op(8, "begin", "async-start", tupleOf(tupleOf(f32(4, 8)), f32(1, 8)), 1).ints(38, 40),
		op(9, "end", "async-done", f32(1, 8), 8),
		op(10, "rs", "fusion", f32(8), 1).ints(38, 41), op(11, "ar", "fusion", f32(8), 1).ints(38, 42),
		op(12, "outside", "all-reduce", f32(4, 8), 1), op(13, "cut", "dynamic-slice", f32(1, 8), 12),
		op(14, "several", "all-to-all", tupleOf(f32(4, 8), f32(4, 8)), 1, 1))
	got := communications(t, parse(t, module(10, wrapped, scattered, whole, entry)))
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
