package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "weft/engine/internal/hlotest" //nolint:revive // modules are written in its words
)

func TestTrafficOfInstructions(t *testing.T) {
	const stack, layer = 8 * 1024, 1024
	whole, one := F32(8, 256), F32(1, 256)
	params := []Msg{Param(1, 0, whole), Param(2, 1, one), Param(3, 2, S32), Param(4, 3, In(1, whole))}
	fused := func(root ...Msg) Msg {
		return Func(2, "fused", append([]Msg{Param(1, 0, whole), Param(2, 1, one), Param(3, 2, S32)}, root...)...)
	}
	fusion := func(shape Msg) Msg { return Op(9, "f", "fusion", shape, 1, 2, 3).Calls(2) }
	for name, c := range map[string]struct {
		fused       Msg
		in          Msg
		read, write float64
	}{
		"every operand and the result": {nil, Op(9, "y", "add", whole, 1, 1), stack, stack},
		"a dynamic-slice":              {nil, Op(9, "y", "dynamic-slice", one, 1, 3), layer + 4, layer},
		"an update in place":           {nil, Op(9, "y", "dynamic-update-slice", whole, 1, 2, 3), layer + 4, layer},
		"a scatter in place":           {nil, Op(9, "y", "scatter", whole, 1, 3, 2), 2*layer + 4, layer},
		"from the vector memory":       {nil, Op(9, "y", "copy", whole, 4), 0, stack},
		"into the vector memory":       {nil, Op(9, "y", "copy-start", Tuple(In(1, whole), whole, S32), 1), stack, 0},
		"another name":                 {nil, Op(9, "y", "bitcast", F32(2048), 1), 0, 0},
		"a loop itself":                {nil, Op(9, "y", "while", whole, 1), 0, 0},
		"memory that is taken":         {nil, Op(9, "y", "custom-call", whole).Str(28, "AllocateBuffer"), 0, 0},
		"an all-gather":                {nil, Op(9, "y", "all-gather", whole, 2), layer, stack},
		"an all-gather's start":        {nil, Op(9, "y", "all-gather-start", Tuple(one, whole), 2), layer, stack},

		"a fusion that slices":           {fused(Op(4, "s", "dynamic-slice", one, 1, 3), Op(5, "y", "add", one, 4, 2)), fusion(one), 2*layer + 4, layer},
		"a fusion that converts a slice": {fused(Op(4, "c", "convert", Array(16, 8, 256), 1), Op(5, "s", "dynamic-slice", Array(16, 1, 256), 4, 3)), fusion(Array(16, 1, 256)), layer + 4, layer / 2},
		"a fusion that updates":          {fused(Op(4, "y", "dynamic-update-slice", whole, 1, 2, 3)), fusion(whole), layer + 4, layer},
		"a fusion that needs all":        {fused(Op(4, "s", "dynamic-slice", one, 1, 3), Op(5, "n", "negate", whole, 1), Op(6, "y", "tuple", Tuple(one, whole), 4, 5)), fusion(Tuple(one, whole)), stack + 4, layer + stack},
		"a fusion that hands on":         {fused(Op(4, "n", "negate", one, 2), Op(5, "y", "tuple", Tuple(whole, one), 1, 4)), fusion(Tuple(whole, one)), layer, layer},
		"a fusion that pads and slices":  {fused(Op(4, "z", "pad", F32(16, 256), 1, 3), Op(5, "y", "dynamic-slice", F32(2, 256), 4, 3)), fusion(F32(2, 256)), layer + 4, 2 * layer},
	} {
		t.Run(name, func(t *testing.T) {
			functions := []Msg{Func(1, "main", append(params, c.in)...)}
			if c.fused != nil {
				functions = append(functions, c.fused)
			}
			m := parse(t, Program(1, functions...))
			got := trafficOf(m, m.Computations[0], m.Computations[0].Root())
			require.Equal(t, bytes{c.read, c.write}, got)
		})
	}
}

// A fusion in a fusion: what the inner one slices is what the outer one reads.
func TestTrafficThroughNestedFusions(t *testing.T) {
	whole, one := F32(8, 256), F32(1, 256)
	inner := Func(3, "inner", Param(1, 0, whole), Param(2, 1, S32), Op(4, "y", "dynamic-slice", one, 1, 2))
	outer := Func(2, "outer", Param(1, 0, whole), Param(2, 1, S32), Op(4, "f", "fusion", one, 1, 2).Calls(3), Op(5, "y", "negate", one, 4))
	m := parse(t, Program(1, inner, outer, Func(1, "main", Param(1, 0, whole), Param(2, 1, S32), Op(4, "f", "fusion", one, 1, 2).Calls(2))))
	require.Equal(t, bytes{1024 + 4, 1024}, trafficOf(m, m.Computations[2], m.Computations[2].Root()))
}
