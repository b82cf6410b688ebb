package stablehlo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"weft/engine/sharding"
)

// Call runs a named function, or becomes what its name says: a sharding constraint or a reduced product.
func (f *function) Call(callee compute.Function, operands ...compute.Value) ([]compute.Value, error) {
	target, ok := callee.(*function)
	if !ok || target == nil || target.builder != f.builder {
		return nil, fmt.Errorf("stablehlo: Call: %T is not a function of this graph", callee)
	}
	what := fmt.Sprintf("Call(%q)", target.name)
	in, err := f.inputs(what, operands...)
	if err != nil {
		return nil, err
	}
	if target.parent != nil || target == f.builder.main {
		return nil, reject(what, in, "%s cannot be called: make it with NewFunction", target.describe())
	}
	if !target.returned {
		return nil, reject(what, in, "the function has not returned: functions cannot call themselves")
	}
	if len(in) != len(target.params) {
		return nil, reject(what, in, "the function takes %d operands", len(target.params))
	}
	for i, param := range target.params {
		if !param.shape.Equal(in[i].shape) {
			return nil, reject(what, in, "parameter %d is %s", i, shapeText(param.shape))
		}
	}
	switch {
	case target.isConstraint:
		return f.constrain(what, target, in)
	case target.reducedDot != nil:
		return f.callReducedDot(what, target, in)
	}
	if passed, ok := target.passThrough(in); ok {
		return passed, nil
	}
	o := f.add(what, "call", in, shapesOf(target.outputs)...)
	o.callee = target
	o.print = func(p *printer, o *op) {
		p.text("func.call ", symbol(target.name), "(", p.operandList(o, o.operands), ") : (", typeList(o.operands), ") -> ", resultTypes(o.results))
	}
	return asValues(o.results), nil
}

// passThrough gives the results of a function that only returns parameters, as engine/transform makes them to carry a
// gradient: its call needs no operation.
func (f *function) passThrough(in []*value) (passed []compute.Value, ok bool) {
	for _, out := range f.outputs {
		if out.op != nil || out.fn != f {
			return nil, false
		}
		passed = append(passed, in[out.index])
	}
	return passed, true
}

// constrain lowers the call of an identity function made by ConstraintName.
func (f *function) constrain(what string, target *function, in []*value) ([]compute.Value, error) {
	if len(in) != 1 || len(target.outputs) != 1 || target.outputs[0] != target.params[0] {
		return nil, reject(what, in, "a sharding constraint must be the identity of one tensor")
	}
	mesh, spec := f.builder.backend.mesh, target.constraint
	// Zeros divide by everything: inside a program, XLA pads what does not divide evenly.
	if err := spec.Check(mesh, make([]int, in[0].shape.Rank())); err != nil {
		return nil, failed(what, in, err)
	}
	if len(mesh.Axes) == 0 {
		return []compute.Value{in[0]}, nil
	}
	return []compute.Value{f.constraintOp(what, in[0], mesh, spec)}, nil
}

func (f *function) constraintOp(what string, x *value, mesh sharding.Mesh, spec sharding.Spec) *value {
	o := f.add(what, "sdy.sharding_constraint", []*value{x}, x.shape)
	o.print = func(p *printer, o *op) {
		p.text("sdy.sharding_constraint ", p.operandList(o, o.operands), " ", shardingText(mesh, spec, x.shape.Rank()), " : ", tensorType(x.shape))
	}
	return o.results[0]
}

// While runs body on the state as long as cond holds.
func (f *function) While(cond, body compute.Function, initialState ...compute.Value) ([]compute.Value, error) {
	in, err := f.inputs("While", initialState...)
	if err != nil {
		return nil, err
	}
	c, err := f.closureOf("While", "condition", cond)
	if err != nil {
		return nil, err
	}
	b, err := f.closureOf("While", "body", body)
	if err != nil {
		return nil, err
	}
	for i, closure := range []*function{c, b} {
		if err := sameShapes(closure.params, in); err != nil {
			return nil, reject("While", in, "the %s takes (%s): %w", []string{"condition", "body"}[i], shapesText(closure.params), err)
		}
	}
	if err := sameShapes(b.outputs, in); err != nil {
		return nil, reject("While", in, "the body returns (%s): %w", shapesText(b.outputs), err)
	}
	if !returnsOneBool(c) {
		return nil, reject("While", in, "the condition returns (%s): it must return one bool scalar", shapesText(c.outputs))
	}
	o := f.add("While", "stablehlo.while", in, shapesOf(in)...)
	o.regions = []*function{c, b}
	o.print = printWhile
	return asValues(o.results), nil
}

func sameShapes(got, want []*value) error {
	if len(got) != len(want) {
		return fmt.Errorf("that is %d values, the state has %d", len(got), len(want))
	}
	for i := range want {
		if !got[i].shape.Equal(want[i].shape) {
			return fmt.Errorf("value %d is %s, the state has %s", i, shapeText(got[i].shape), shapeText(want[i].shape))
		}
	}
	return nil
}

func returnsOneBool(c *function) bool {
	return len(c.outputs) == 1 && c.outputs[0].shape.IsScalar() && c.outputs[0].shape.DType == dtypes.Bool
}

// printWhile writes the loop with its state as block arguments that both regions share.
func printWhile(p *printer, o *op) {
	mark := len(p.undo)
	cond, body := o.regions[0], o.regions[1]
	args := make([]string, len(o.operands))
	for i, init := range o.operands {
		initial := p.name(init, o.what, o.fn)
		args[i] = p.fresh(cond.params[i]) + " = " + initial
		p.set(body.params[i], p.names[cond.params[i]])
	}
	p.text("stablehlo.while(", strings.Join(args, ", "), ") : ", typeList(o.operands))
	p.end()
	for i, keyword := range []string{"cond {", "} do {"} {
		p.line(keyword)
		inside := len(p.undo)
		p.printBody(o.regions[i], "stablehlo.return")
		p.leave(inside)
	}
	p.start()
	p.text("}")
	p.leave(mark)
}

// If runs one of two closures without parameters.
func (f *function) If(pred compute.Value, trueBranch, falseBranch compute.Function) ([]compute.Value, error) {
	in, err := f.inputs("If", pred)
	if err != nil {
		return nil, err
	}
	if !in[0].shape.IsScalar() || in[0].shape.DType != dtypes.Bool {
		return nil, reject("If", in, "the predicate must be a bool scalar")
	}
	t, err := f.closureOf("If", "true branch", trueBranch)
	if err != nil {
		return nil, err
	}
	e, err := f.closureOf("If", "false branch", falseBranch)
	if err != nil {
		return nil, err
	}
	if len(t.params) > 0 || len(e.params) > 0 {
		return nil, reject("If", in, "the branches take no parameters: they read values of the enclosing scopes directly")
	}
	if len(t.outputs) != len(e.outputs) || sameShapes(t.outputs, e.outputs) != nil {
		return nil, reject("If", in, "the branches return (%s) and (%s): both must return the same shapes", shapesText(t.outputs), shapesText(e.outputs))
	}
	o := f.add("If", "stablehlo.if", in, shapesOf(t.outputs)...)
	o.regions = []*function{t, e}
	o.print = printGeneric()
	return asValues(o.results), nil
}

// Sort orders the inputs together along an axis. The comparator's parameters are (lhs0, rhs0, lhs1, rhs1, …), as in
// graph.SortFunc and in StableHLO.
func (f *function) Sort(comparator compute.Function, axis int, isStable bool, inputs ...compute.Value) ([]compute.Value, error) {
	in, err := f.inputs("Sort", inputs...)
	if err != nil {
		return nil, err
	}
	c, err := f.closureOf("Sort", "comparator", comparator)
	if err != nil {
		return nil, err
	}
	if len(in) == 0 || axis < 0 || axis >= in[0].shape.Rank() {
		return nil, reject("Sort", in, "axis %d is out of range", axis)
	}
	var want []*value
	for _, x := range in {
		if !x.shape.EqualDimensions(in[0].shape) {
			return nil, reject("Sort", in, "all inputs must have the same dimensions")
		}
		scalar := &value{shape: shapes.Make(x.shape.DType)}
		want = append(want, scalar, scalar)
	}
	if err := sameShapes(c.params, want); err != nil {
		return nil, reject("Sort", in, "the comparator takes (%s), it must take two scalars for each input", shapesText(c.params))
	}
	if !returnsOneBool(c) {
		return nil, reject("Sort", in, "the comparator returns (%s): it must return one bool scalar", shapesText(c.outputs))
	}
	o := f.add("Sort", "stablehlo.sort", in, shapesOf(in)...)
	o.regions, o.isolated = []*function{c}, true
	o.print = printGeneric(fmt.Sprintf("dimension = %d : i64", axis), "is_stable = "+strconv.FormatBool(isStable))
	return asValues(o.results), nil
}

// OptimizationBarrier is the identity that the compiler does not move operations across.
func (f *function) OptimizationBarrier(operands ...compute.Value) ([]compute.Value, error) {
	in, err := f.inputs("OptimizationBarrier", operands...)
	if err != nil {
		return nil, err
	}
	if len(in) == 0 {
		return nil, fmt.Errorf("stablehlo: OptimizationBarrier: needs at least one operand")
	}
	return asValues(f.barrier("OptimizationBarrier", in)), nil
}

// SchedulingBarrier is operand, available only once the dependencies are.
func (f *function) SchedulingBarrier(operand compute.Value, dependencies ...compute.Value) (compute.Value, error) {
	in, err := f.inputs("SchedulingBarrier", append([]compute.Value{operand}, dependencies...)...)
	if err != nil {
		return nil, err
	}
	return f.barrier("SchedulingBarrier", in)[0], nil
}

func (f *function) barrier(what string, in []*value) []*value {
	o := f.add(what, "stablehlo.optimization_barrier", in, shapesOf(in)...)
	o.print = func(p *printer, o *op) {
		p.text("stablehlo.optimization_barrier ", p.operandList(o, o.operands), " : ", typeList(o.operands))
	}
	return o.results
}

// RNGBitGenerator gives random bits of an integer shape with Philox, and the state that follows. The state is
// uint64[3], or uint64[2].
func (f *function) RNGBitGenerator(state compute.Value, shape shapes.Shape) (newState, values compute.Value, err error) {
	in, err := f.inputs("RNGBitGenerator", state)
	if err != nil {
		return nil, nil, err
	}
	if err := checkShape(shape); err != nil {
		return nil, nil, failed("RNGBitGenerator", in, err)
	}
	s := in[0].shape
	if s.DType != dtypes.Uint64 || s.Rank() != 1 || s.Dimensions[0] != 2 && s.Dimensions[0] != 3 {
		return nil, nil, reject("RNGBitGenerator", in, "the state must be ui64[2] or ui64[3]")
	}
	if !shape.DType.IsInt() {
		return nil, nil, reject("RNGBitGenerator", in, "gives integers, not %s: convert or bitcast the bits", shape.DType)
	}
	bits := withDType(shape, unsignedOf(shape.DType))
	o := f.add("RNGBitGenerator", "stablehlo.rng_bit_generator", in, s, bits)
	o.print = func(p *printer, o *op) {
		p.text("stablehlo.rng_bit_generator ", p.operandList(o, o.operands), ", algorithm = PHILOX : (", typeList(o.operands), ") -> ", resultTypes(o.results))
	}
	out := o.results[1]
	if bits.DType != shape.DType {
		out = f.bitcast(out, shape)
	}
	return o.results[0], out, nil
}

func unsignedOf(dtype dtypes.DType) dtypes.DType {
	switch dtype {
	case dtypes.Int8:
		return dtypes.Uint8
	case dtypes.Int16:
		return dtypes.Uint16
	case dtypes.Int32:
		return dtypes.Uint32
	case dtypes.Int64:
		return dtypes.Uint64
	}
	return dtype
}
