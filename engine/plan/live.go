package plan

import (
	"slices"
	"strings"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/sharding"
)

// class is what a temporary of a program holds.
type class int

const (
	temporary class = iota
	gathered
	gradient
	activation
	numClasses
)

// sizes are bytes by class.
type sizes [numClasses]int64

func (s sizes) total() (n int64) {
	for _, b := range s {
		n += b
	}
	return n
}

func (s sizes) plus(o sizes) sizes {
	for i := range s {
		s[i] += o[i]
	}
	return s
}

// knownShapes tells classes by shapes, as text. Those of the trained parameters' float32 shards, and of single layers of
// stacked ones, are gradients'; those of whole stacks of matrices, in a dtype of products, are what a step that gathers
// once keeps for its backward pass.
func knownShapes(mesh sharding.Mesh, params []engine.Param) map[string]class {
	known := map[string]class{}
	for _, p := range params {
		stack := len(p.Dims) == 3
		if stack && !p.Spec.IsReplicated() {
			for _, dtype := range []string{"bf16", "f32"} {
				known[hlo.Shape{DType: dtype, Dims: wide(p.Dims)}.String()] = gathered
			}
		}
		if !p.Trainable {
			continue
		}
		s := hlo.Shape{DType: "f32", Dims: wide(p.Spec.ShardDims(mesh, p.Dims))}
		known[s.String()] = gradient
		if stack {
			known[hlo.Shape{DType: "f32", Dims: s.Dims[1:]}.String()] = gradient
		}
	}
	return known
}

func wide(dims []int) []int64 {
	out := make([]int64, len(dims))
	for i, d := range dims {
		out[i] = int64(d)
	}
	return out
}

// buffer is main memory that an instruction's result takes. Its life is from first to last, positions in the schedule.
type buffer struct {
	bytes       int64
	class       class
	first, last int
	// kept buffers belong to the caller: results, and what a loop carries.
	kept bool
}

// leaf is one array of a value: its buffer, nil when it lies elsewhere or belongs to the caller, and whether it comes
// from an argument of the program by moving data only.
type leaf struct {
	buffer   *buffer
	argument bool
}

// liveAtPeak finds the fullest moment of the program's schedule and what the temporaries hold then. It follows values
// through tuples, loops and updates in place as the compiler does, which leaves out what it pads and loses to gaps.
func liveAtPeak(m *hlo.Module, known map[string]class) sizes {
	entry, err := m.Entry()
	if err != nil {
		return sizes{}
	}
	l := &liveness{module: m, known: known}
	arguments := map[int64][]leaf{}
	for _, in := range entry.Instructions {
		if in.Opcode == "parameter" {
			leaves := make([]leaf, len(in.Shape.Arrays()))
			for i := range leaves {
				leaves[i].argument = true
			}
			arguments[in.ParameterNumber] = leaves
		}
	}
	return l.computation(entry, arguments, 0)
}

type liveness struct {
	module *hlo.Module
	known  map[string]class // by shape
}

// computation returns what is alive of a computation's own buffers, and of those it calls, at its fullest moment. The
// arguments' buffers are the caller's.
func (l *liveness) computation(c *hlo.Computation, arguments map[int64][]leaf, depth int) sizes {
	values := map[int64][]leaf{}
	inside := make([]sizes, len(c.Instructions))
	var own []*buffer
	for at, in := range c.Instructions {
		for i := range in.Operands {
			for _, v := range values[in.Operands[i]] {
				if v.buffer != nil {
					v.buffer.last = at
					if in.Opcode == "while" && v.buffer.class == temporary {
						v.buffer.class = activation
					}
				}
			}
		}
		values[in.ID] = l.value(c, in, at, values, arguments, &own)
		if depth < 32 {
			inside[at] = l.called(c, in, values, depth)
		}
	}
	if root := c.Root(); root != nil {
		for _, v := range values[root.ID] {
			if v.buffer != nil {
				v.buffer.kept = true
			}
		}
	}
	return fullest(own, inside, depth == 0)
}

// longLived is the share of the program that a value must stay alive for to count as kept on purpose.
const longLived = 0.1

// fullest sweeps over the schedule.
func fullest(own []*buffer, inside []sizes, entry bool) sizes {
	begin, end := make([]sizes, len(inside)+1), make([]sizes, len(inside)+1)
	for _, b := range own {
		if b.kept {
			continue
		}
		if entry && b.class == temporary && float64(b.last-b.first) > longLived*float64(len(inside)) {
			b.class = activation
		}
		begin[b.first][b.class] += b.bytes
		end[b.last+1][b.class] += b.bytes
	}
	var now, worst sizes
	for at := range inside {
		for k := range now {
			now[k] += begin[at][k] - end[at][k]
		}
		if with := now.plus(inside[at]); with.total() > worst.total() {
			worst = with
		}
	}
	return worst
}

// called is what an instruction's loops and calls take.
func (l *liveness) called(c *hlo.Computation, in *hlo.Instruction, values map[int64][]leaf, depth int) (worst sizes) {
	if !slices.Contains([]string{"while", "call", "conditional", "async-start"}, in.Opcode) {
		return worst
	}
	for n, id := range in.Calls {
		callee := l.module.Computation(id)
		if callee == nil {
			continue
		}
		arguments := map[int64][]leaf{}
		for i := range in.Operands {
			leaves := slices.Clone(values[in.Operands[i]])
			for k := range leaves {
				leaves[k].buffer = nil
			}
			switch {
			case in.Opcode != "conditional":
				arguments[int64(i)] = leaves
			case i == n+1: // operand 0 chooses
				arguments[0] = leaves
			}
		}
		if s := l.computation(callee, arguments, depth+1); s.total() > worst.total() {
			worst = s
		}
	}
	return worst
}

// value finds the arrays of an instruction's result, and makes buffers for those that are new.
func (l *liveness) value(c *hlo.Computation, in *hlo.Instruction, at int, values, arguments map[int64][]leaf, own *[]*buffer) []leaf {
	arrays := in.Shape.Arrays()
	operand := func(i int) []leaf {
		if i >= len(in.Operands) {
			return nil
		}
		return values[in.Operands[i]]
	}
	reuse := make([]*leaf, len(arrays)) // what a result is written over, or another name of
	switch in.Opcode {
	case "parameter":
		if a := arguments[in.ParameterNumber]; len(a) == len(arrays) {
			return a
		}
		return make([]leaf, len(arrays))
	case "constant":
		return make([]leaf, len(arrays))
	case "get-tuple-element":
		return element(c, in, values)
	case "tuple":
		var all []leaf
		for i := range in.Operands {
			all = append(all, operand(i)...)
		}
		return all
	case "while", "bitcast", "opt-barrier", "dynamic-update-slice", "scatter", "domain", "add-dependency":
		fill(reuse, operand(0))
	case "copy-start":
		if len(reuse) > 1 {
			fill(reuse[1:2], operand(0))
		}
	case "copy-done", "all-gather-done", "all-reduce-done", "collective-permute-done", "async-done":
		return started(c, in, operand(0), len(arrays))
	case "async-update": // the operands, which its start lacked, and the results
		if len(in.Operands) == 1 {
			return started(c, in, operand(0), len(arrays))
		}
		at := 0
		for i := range in.Operands[1:] {
			at += fill(reuse[at:], operand(i+1))
		}
	case "all-gather-start", "collective-permute-start", "async-start":
		at := 0
		for i := range in.Operands {
			at += fill(reuse[at:], operand(i))
		}
	case "fusion":
		l.inPlace(in, values, reuse)
	}
	moved := l.moves(in) && fromArgument(in, values)
	out := make([]leaf, len(arrays))
	for i, a := range arrays {
		out[i].argument = moved
		switch {
		case reuse[i] != nil:
			out[i] = *reuse[i]
		case a.MemorySpace == 0 && a.Bytes() > 0 && a.DType != "token":
			out[i].buffer = &buffer{bytes: a.Bytes(), class: l.classify(c, in, a, values), first: at, last: at}
			*own = append(*own, out[i].buffer)
		}
	}
	return out
}

// fill makes the first arrays of a result other names of the leaves, and returns how many.
func fill(to []*leaf, from []leaf) int {
	n := min(len(to), len(from))
	for i := range n {
		to[i] = &from[i]
	}
	return n
}

// element takes the leaves of one element of a tuple.
func element(c *hlo.Computation, in *hlo.Instruction, values map[int64][]leaf) []leaf {
	of := c.Operand(in, 0)
	if of == nil || in.TupleIndex >= int64(len(of.Shape.Tuple)) || in.TupleIndex < 0 {
		return make([]leaf, len(in.Shape.Arrays()))
	}
	from := 0
	for _, t := range of.Shape.Tuple[:in.TupleIndex] {
		from += len(t.Arrays())
	}
	leaves := values[of.ID]
	to := from + len(of.Shape.Tuple[in.TupleIndex].Arrays())
	if to > len(leaves) {
		return make([]leaf, len(in.Shape.Arrays()))
	}
	return leaves[from:to]
}

// started takes the results out of what an asynchronous operation's start gave: (operands, results, …), for a copy
// (result, operand, …), for an all-reduce the results.
func started(c *hlo.Computation, in *hlo.Instruction, leaves []leaf, n int) []leaf {
	from := 0
	if of := c.Operand(in, 0); of != nil && len(of.Shape.Tuple) > 1 && in.Opcode != "copy-done" && in.Opcode != "all-reduce-done" && in.Opcode != "async-update" {
		from = len(of.Shape.Tuple[0].Arrays())
	}
	if from+n > len(leaves) {
		return make([]leaf, n)
	}
	return leaves[from : from+n]
}

// inPlace finds the results of a fusion that are updates of operands.
func (l *liveness) inPlace(in *hlo.Instruction, values map[int64][]leaf, reuse []*leaf) {
	callee := l.module.Computation(in.Calls[0])
	if callee == nil || callee.Root() == nil {
		return
	}
	results := []*hlo.Instruction{callee.Root()}
	if root := callee.Root(); root.Opcode == "tuple" {
		results = results[:0]
		for i := range root.Operands {
			results = append(results, callee.Operand(root, i))
		}
	}
	if len(results) != len(reuse) {
		return
	}
	for i, r := range results {
		updates := false
		for r != nil && r.Opcode != "parameter" {
			updates = updates || r.Opcode == "dynamic-update-slice" || r.Opcode == "scatter"
			if !slices.Contains([]string{"dynamic-update-slice", "scatter", "bitcast", "reshape"}, r.Opcode) {
				r = nil
				break
			}
			r = callee.Operand(r, 0)
		}
		if r == nil || r.ParameterNumber >= int64(len(in.Operands)) || !updates && callee.Root().Opcode != "tuple" {
			continue
		}
		if leaves := values[in.Operands[r.ParameterNumber]]; len(leaves) == 1 {
			reuse[i] = &leaves[0]
		}
	}
}

// movement are the opcodes that give the elements of an operand, rounded perhaps, and no others.
var movement = []string{
	"parameter", "constant", "bitcast", "reshape", "transpose", "copy", "convert", "slice", "dynamic-slice", "get-tuple-element", "tuple",
	"copy-start", "copy-done", "opt-barrier", "all-gather", "pad", "bitcast-convert",
}

// moves tells whether an instruction only moves data.
func (l *liveness) moves(in *hlo.Instruction) bool {
	if in.Opcode != "fusion" {
		return slices.Contains(movement, in.Opcode)
	}
	callee := l.module.Computation(in.Calls[0])
	if callee == nil {
		return false
	}
	return !slices.ContainsFunc(callee.Instructions, func(i *hlo.Instruction) bool {
		return !slices.Contains(movement, i.Opcode) && i.Shape.Elements() > 1
	})
}

// fromArgument tells whether the first operand, of an update after its start the second, comes from an argument.
func fromArgument(in *hlo.Instruction, values map[int64][]leaf) bool {
	i := 0
	if in.Opcode == "async-update" {
		i = 1
	}
	if i >= len(in.Operands) {
		return false
	}
	v := values[in.Operands[i]]
	return len(v) > 0 && v[0].argument
}

// classify says what a new buffer holds.
func (l *liveness) classify(c *hlo.Computation, in *hlo.Instruction, a hlo.Shape, values map[int64][]leaf) class {
	if l.gathers(c, in) && fromArgument(in, values) && !strings.HasPrefix(a.DType, "s") {
		return gathered
	}
	return l.known[a.String()] // temporary, if it is not
}

// gathers tells whether an instruction is an all-gather, or a fusion or wrapper of one.
func (l *liveness) gathers(c *hlo.Computation, in *hlo.Instruction) bool {
	if x := c.Communication(in); x != nil {
		return x.Kind == hlo.AllGather
	}
	switch in.Opcode {
	case "async-update":
		if start := c.Operand(in, 0); start != nil && start.Opcode == "async-start" {
			return l.gathers(c, start)
		}
		return false
	case "fusion", "async-start", "custom-call":
	default:
		return false
	}
	for _, id := range in.Calls {
		if callee := l.module.Computation(id); callee != nil && slices.ContainsFunc(callee.Instructions, func(i *hlo.Instruction) bool {
			return l.gathers(callee, i)
		}) {
			return true
		}
	}
	return false
}
