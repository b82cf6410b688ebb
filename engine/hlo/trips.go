package hlo

import (
	"regexp"
	"strconv"
)

var tripCount = regexp.MustCompile(`"known_trip_count":\{"n":"(\d+)"`)

// TripCount returns how often a while instruction of computation c runs its body. The compiler's annotation says it; a
// TPU's program has none, and it is then worked out from the loop itself: a counter in the carry that begins at a
// constant, grows by a constant each time and is compared with a constant. ok is false when it is none of that.
func (m *Module) TripCount(c *Computation, loop *Instruction) (n int64, ok bool) {
	if found := tripCount.FindStringSubmatch(loop.BackendConfig); found != nil {
		n, err := strconv.ParseInt(found[1], 10, 64)
		return n, err == nil
	}
	body, condition := m.loopParts(loop)
	if body == nil || condition == nil {
		return 0, false
	}
	e := &evaluator{module: m, steps: maxSteps}
	test, ok := e.comparison(condition)
	if !ok {
		return 0, false
	}
	start, ok1 := e.evaluate(&frame{c: c}, c.Operand(loop, 0), []int64{test.counter})
	next, ok2 := e.evaluate(&frame{c: body}, body.Root(), []int64{test.counter})
	if !ok1 || !ok2 || start.carried || !next.carried || next.index != test.counter {
		return 0, false
	}
	return trips(start.add, test.limit, next.add, test.direction)
}

// loopParts finds the body and the condition of a loop: the condition is the one that gives a truth value.
func (m *Module) loopParts(loop *Instruction) (body, condition *Computation) {
	for _, id := range loop.Calls {
		callee := m.byID[id]
		if callee == nil || callee.Root() == nil {
			continue
		}
		if s := callee.Root().Shape; s.DType == "pred" && len(s.Dims) == 0 {
			condition = callee
		} else {
			body = callee
		}
	}
	return body, condition
}

// trips counts i = start, start+step, … while `i direction limit` holds; ok is false when that is for ever.
func trips(start, limit, step int64, direction string) (n int64, ok bool) {
	const wide = 1 << 40 // beyond any loop, and far from overflow
	if max(start, -start, limit, -limit, step, -step) > wide {
		return 0, false
	}
	switch direction {
	case "GT", "GE":
		start, limit, step = -start, -limit, -step
	}
	distance := limit - start
	switch direction {
	case "LE", "GE":
		distance++
	case "NE":
		if step == 0 || distance%step != 0 || distance/step < 0 {
			return 0, distance == 0
		}
		return distance / step, true
	case "LT", "GT":
	default:
		return 0, false
	}
	switch {
	case distance <= 0:
		return 0, true
	case step <= 0:
		return 0, false
	}
	return (distance + step - 1) / step, true
}

// loopTest is a loop's condition: element counter of the carry is compared with a constant.
type loopTest struct {
	counter, limit int64
	direction      string
}

var mirrored = map[string]string{"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}

// evaluator follows values through a program. steps bounds its work, should the program be damaged.
type evaluator struct {
	module *Module
	steps  int
}

// maxSteps is more than any sound loop takes.
const maxSteps = 1 << 14

// comparison reads a condition, which may stand in a fusion.
func (e *evaluator) comparison(condition *Computation) (loopTest, bool) {
	f := &frame{c: condition}
	in := condition.Root()
	for ; e.steps > 0; e.steps-- {
		if in == nil {
			return loopTest{}, false
		}
		switch in.Opcode {
		case "fusion", "call":
			callee := e.module.callee(in)
			if callee == nil {
				return loopTest{}, false
			}
			f, in = &frame{c: callee, call: in, up: f}, callee.Root()
		case "copy", "bitcast", "convert":
			in = f.c.Operand(in, 0)
		case "compare":
			l, ok1 := e.evaluate(f, f.c.Operand(in, 0), nil)
			r, ok2 := e.evaluate(f, f.c.Operand(in, 1), nil)
			direction := in.Direction
			if r.carried {
				l, r, direction = r, l, mirrored[direction]
			}
			// i + a < b is i < b - a.
			return loopTest{l.index, r.add - l.add, direction}, ok1 && ok2 && l.carried && !r.carried
		default:
			return loopTest{}, false
		}
	}
	return loopTest{}, false
}

// frame is a computation that is being evaluated, and the instruction that called it.
type frame struct {
	c    *Computation
	call *Instruction
	up   *frame
}

// term is add, or when carried an element of the carry plus add.
type term struct {
	carried    bool
	index, add int64
}

func (m *Module) callee(in *Instruction) *Computation {
	if len(in.Calls) != 1 {
		return nil
	}
	return m.byID[in.Calls[0]]
}

// evaluate follows the value of an instruction, of the element at index when it is a tuple, back to a constant or to
// the carry of the loop.
func (e *evaluator) evaluate(f *frame, in *Instruction, index []int64) (term, bool) {
	for ; e.steps > 0; e.steps-- {
		if in == nil {
			return term{}, false
		}
		switch in.Opcode {
		case "constant":
			if in.Constant == nil || len(index) > 0 {
				return term{}, false
			}
			return term{add: *in.Constant}, true
		case "parameter":
			if f.call == nil {
				return term{carried: true, index: first(index)}, len(index) == 1
			}
			f, in = f.up, f.up.c.Operand(f.call, int(in.ParameterNumber))
		case "get-tuple-element":
			index = append([]int64{in.TupleIndex}, index...)
			in = f.c.Operand(in, 0)
		case "tuple":
			if len(index) == 0 {
				return term{}, false
			}
			in, index = f.c.Operand(in, int(index[0])), index[1:]
		case "fusion", "call":
			callee := e.module.callee(in)
			if callee == nil {
				return term{}, false
			}
			f, in = &frame{c: callee, call: in, up: f}, callee.Root()
		case "copy", "bitcast", "convert", "reshape", "opt-barrier", "copy-done":
			in = f.c.Operand(in, 0)
		case "copy-start": // a tuple of the copy, the source and a handle
			if len(index) > 0 {
				index = index[1:]
			}
			in = f.c.Operand(in, 0)
		case "add", "subtract":
			e.steps--
			return e.sum(f, in)
		default:
			return term{}, false
		}
	}
	return term{}, false
}

func first(index []int64) int64 {
	if len(index) == 0 {
		return -1
	}
	return index[0]
}

// sum evaluates an add or subtract of integers.
func (e *evaluator) sum(f *frame, in *Instruction) (term, bool) {
	l, ok1 := e.evaluate(f, f.c.Operand(in, 0), nil)
	r, ok2 := e.evaluate(f, f.c.Operand(in, 1), nil)
	if !ok1 || !ok2 || l.carried && r.carried || in.Opcode == "subtract" && r.carried {
		return term{}, false
	}
	if in.Opcode == "subtract" {
		r.add = -r.add
	}
	return term{carried: l.carried || r.carried, index: l.index + r.index, add: l.add + r.add}, true
}
