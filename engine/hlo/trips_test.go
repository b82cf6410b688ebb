package hlo

import (
	"testing"

	"github.com/stretchr/testify/require"
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
func counted(c counter) msg {
	carry := tupleOf(f32(2), s32)
	element := func(id, of, index int64) msg { return op(id, "gte", "get-tuple-element", s32, of).num(13, index) }
	compare := op(4, "compare", "compare", pred, 2, 3).str(63, c.direction)
	if c.mirrored {
		compare = op(4, "compare", "compare", pred, 3, 2).str(63, c.direction)
	}
	condition := computation(20, "condition", op(1, "p", "parameter", carry), element(2, 1, 1), constant(3, c.limit), compare)
	next := op(14, "next", "add", s32, 12, 13)
	by := constant(13, c.step)
	if c.subtract {
		next, by = op(14, "next", "subtract", s32, 12, 13), constant(13, -c.step)
	}
	body := computation(21, "body", op(11, "p", "parameter", carry), element(12, 11, 1), by, next,
		op(15, "x", "get-tuple-element", f32(2), 11), op(16, "out", "tuple", carry, 15, 14))
	var more []msg
	if c.fused {
		whole := op(1, "p", "parameter", s32)
		more = append(more,
			computation(30, "fused_compare", whole, constant(3, c.limit), op(4, "compare", "compare", pred, 1, 3).str(63, c.direction)),
			computation(31, "fused_add", whole, constant(3, c.step), op(4, "sum", "add", s32, 1, 3)))
		condition = computation(20, "condition", op(1, "p", "parameter", carry), element(2, 1, 1), op(4, "f", "fusion", pred, 2).ints(38, 30))
		body = computation(21, "body", op(11, "p", "parameter", carry), element(12, 11, 1), op(14, "f", "fusion", s32, 12).ints(38, 31),
			op(17, "copy", "copy", s32, 14), op(15, "x", "get-tuple-element", f32(2), 11), op(16, "out", "tuple", carry, 15, 17))
	}
	entry := computation(10, "main", constant(1, c.start), op(2, "copy", "copy", s32, 1), op(3, "x", "parameter", f32(2)),
		op(4, "init", "tuple", carry, 3, 2), op(5, "loop", "while", carry, 4).ints(38, 21, 20))
	return module(10, append(more, condition, body, entry)...)
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
	instructions := []msg{op(1, "p", "parameter", tupleOf(s32)), constant(2, 1)}
	for id := range int64(200) {
		instructions = append(instructions, op(3+id, "sum", "add", s32, 2+id, 2+id))
	}
	condition := computation(20, "condition", append(instructions, op(900, "compare", "compare", pred, 202, 2).str(63, "LT"))...)
	body := computation(21, "body", op(1, "p", "parameter", tupleOf(s32)))
	m := parse(t, module(10, condition, body, computation(10, "main", op(1, "loop", "while", tupleOf(s32)).ints(38, 21, 20))))
	entry, err := m.Entry()
	require.NoError(t, err)
	_, known := m.TripCount(entry, entry.Root())
	require.False(t, known)
}
