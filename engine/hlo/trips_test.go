package hlo

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "weft/engine/internal/hlotest" //nolint:revive // modules are written in its words
)

// counter is a loop as a TPU's compiler leaves it: without an annotation.
type counter struct {
	start, limit, step int64
	direction          string
	// fused puts the comparison and the step in fusions, mirrored the constant on the comparison's left, subtract
	// subtracts the step's opposite.
	fused, mirrored, subtract bool
}

// counted is a module whose entry runs the loop; the counter is element 1 of the carry.
func counted(c counter) Msg {
	carry := Tuple(F32(2), S32)
	element := func(id, of, index int64) Msg { return Op(id, "gte", "get-tuple-element", S32, of).Num(13, index) }
	compare := Op(4, "compare", "compare", Pred, 2, 3).Str(63, c.direction)
	if c.mirrored {
		compare = Op(4, "compare", "compare", Pred, 3, 2).Str(63, c.direction)
	}
	condition := Func(20, "condition", Op(1, "p", "parameter", carry), element(2, 1, 1), Constant(3, c.limit), compare)
	next := Op(14, "next", "add", S32, 12, 13)
	by := Constant(13, c.step)
	if c.subtract {
		next, by = Op(14, "next", "subtract", S32, 12, 13), Constant(13, -c.step)
	}
	body := Func(21, "body", Op(11, "p", "parameter", carry), element(12, 11, 1), by, next,
		Op(15, "x", "get-tuple-element", F32(2), 11), Op(16, "out", "tuple", carry, 15, 14))
	var more []Msg
	if c.fused {
		whole := Op(1, "p", "parameter", S32)
		more = append(more,
			Func(30, "fused_compare", whole, Constant(3, c.limit), Op(4, "compare", "compare", Pred, 1, 3).Str(63, c.direction)),
			Func(31, "fused_add", whole, Constant(3, c.step), Op(4, "sum", "add", S32, 1, 3)))
		condition = Func(20, "condition", Op(1, "p", "parameter", carry), element(2, 1, 1), Op(4, "f", "fusion", Pred, 2).Ints(38, 30))
		body = Func(21, "body", Op(11, "p", "parameter", carry), element(12, 11, 1), Op(14, "f", "fusion", S32, 12).Ints(38, 31),
			Op(17, "copy", "copy", S32, 14), Op(15, "x", "get-tuple-element", F32(2), 11), Op(16, "out", "tuple", carry, 15, 17))
	}
	entry := Func(10, "main", Constant(1, c.start), Op(2, "copy", "copy", S32, 1), Op(3, "x", "parameter", F32(2)),
		Op(4, "init", "tuple", carry, 3, 2), Op(5, "loop", "while", carry, 4).Ints(38, 21, 20))
	return Program(10, append(more, condition, body, entry)...)
}

func TestTripCount(t *testing.T) {
	for name, c := range map[string]struct {
		counter
		want  int64
		known bool
	}{
		"up":                    {counter{start: 0, limit: 7, step: 1, direction: "LT"}, 7, true},
		"up by two":             {counter{start: 1, limit: 8, step: 2, direction: "LT"}, 4, true},
		"up, limit included":    {counter{start: 0, limit: 7, step: 1, direction: "LE"}, 8, true},
		"constant on the left":  {counter{start: 0, limit: 7, step: 1, direction: "GT", mirrored: true}, 7, true},
		"down":                  {counter{start: 7, limit: 0, step: -1, direction: "GT"}, 7, true},
		"down, limit included":  {counter{start: 7, limit: 0, step: -3, direction: "GE"}, 3, true},
		"down by a subtraction": {counter{start: 7, limit: 0, step: -1, direction: "GT", subtract: true}, 7, true},
		"until equal":           {counter{start: 0, limit: 6, step: 2, direction: "NE"}, 3, true},
		"past its equal":        {counter{start: 0, limit: 7, step: 2, direction: "NE"}, 0, false},
		"not at all":            {counter{start: 9, limit: 7, step: 1, direction: "LT"}, 0, true},
		"for ever":              {counter{start: 0, limit: 7, step: 0, direction: "LT"}, 0, false},
		"away from its limit":   {counter{start: 0, limit: 7, step: -1, direction: "LT"}, 0, false},
		"in fusions":            {counter{start: 0, limit: 35, step: 1, direction: "LT", fused: true}, 35, true},
		"overflow":              {counter{start: -1 << 62, limit: 1 << 62, step: 1, direction: "LT"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := parse(t, counted(c.counter))
			entry, err := m.Entry()
			require.NoError(t, err)
			n, known := m.TripCount(entry, entry.Root())
			require.Equal(t, c.known, known)
			require.Equal(t, c.want, n)
		})
	}
}

func TestWalkCountsBodyAndCondition(t *testing.T) {
	m := parse(t, counted(counter{start: 0, limit: 5, step: 1, direction: "LT"}))
	times := map[string]int64{}
	require.NoError(t, m.Walk(func(s Site) error {
		times[s.Computation.Name+"/"+s.Instruction.Name] += s.Times
		require.Nil(t, s.Unknown)
		return nil
	}))
	require.EqualValues(t, 1, times["main/loop"])
	require.EqualValues(t, 5, times["body/next"])
	require.EqualValues(t, 6, times["condition/compare"])
}

// A value that is added to itself many times over is not followed without end.
func TestTripCountOfDamagedLoopEnds(t *testing.T) {
	instructions := []Msg{Op(1, "p", "parameter", Tuple(S32)), Constant(2, 1)}
	for id := range int64(200) {
		instructions = append(instructions, Op(3+id, "sum", "add", S32, 2+id, 2+id))
	}
	condition := Func(20, "condition", append(instructions, Op(900, "compare", "compare", Pred, 202, 2).Str(63, "LT"))...)
	body := Func(21, "body", Op(1, "p", "parameter", Tuple(S32)))
	m := parse(t, Program(10, condition, body, Func(10, "main", Op(1, "loop", "while", Tuple(S32)).Ints(38, 21, 20))))
	entry, err := m.Entry()
	require.NoError(t, err)
	_, known := m.TripCount(entry, entry.Root())
	require.False(t, known)
}
