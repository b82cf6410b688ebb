package stablehlo

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"

	"weft/engine/sharding"
)

// function implements compute.Function: main, a named function or a closure.
type function struct {
	notimplemented.Function
	builder *builder
	name    string    // empty for a closure
	parent  *function // of a closure
	serial  int       // of a closure, for errors

	params     []*value
	paramNames []string
	ops        []*op
	outputs    []*value
	returned   bool

	isConstraint bool
	constraint   sharding.Spec
	reducedDot   *ReducedDot

	scalars map[string]*value // literals of our own, such as the 0 of a sum
}

// value is a parameter or the result of an operation. It gets its SSA name when it is printed.
type value struct {
	fn    *function
	op    *op // nil for a parameter
	index int
	shape shapes.Shape
}

// op is one recorded operation.
type op struct {
	fn       *function
	what     string // the GoMLX operation, for errors
	mnemonic string
	operands []*value
	results  []*value
	regions  []*function
	callee   *function
	isConst  bool
	// arguments are the static ones that a VJP asks for.
	arguments any
	// isolated regions may not read values of enclosing scopes (XLA's rule for sort and reductions).
	isolated bool
	print    func(p *printer, o *op)
}

var _ compute.Function = (*function)(nil)

func (f *function) Name() string { return f.name }

func (f *function) Builder() compute.Builder { return f.builder }

func (f *function) Parent() compute.Function {
	if f.parent == nil {
		return nil
	}
	return f.parent
}

// describe names the function in errors.
func (f *function) describe() string {
	if f.parent != nil {
		return fmt.Sprintf("closure %d", f.serial)
	}
	return fmt.Sprintf("function %q", f.name)
}

// Closure starts a region. GoMLX asks main for every closure, nested ones too; the scope that it belongs to is found
// when the operation that uses it is printed.
func (f *function) Closure() (compute.Function, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	return f.newClosure(), nil
}

func (f *function) newClosure() *function {
	c := f.builder.newFunction("")
	f.builder.closures++
	c.parent, c.serial = f, f.builder.closures
	return c
}

// open reports why no operation can be added.
func (f *function) open() error {
	switch {
	case f.builder.broken != nil:
		return f.builder.broken
	case f.builder.compiled:
		return fmt.Errorf("stablehlo: graph %q is compiled already", f.builder.name)
	case f.returned:
		return fmt.Errorf("stablehlo: %s has returned already", f.describe())
	}
	return nil
}

func (f *function) Shape(v compute.Value) (shapes.Shape, error) { return f.builder.OpShape(v) }

func (f *function) Parameter(name string, shape shapes.Shape, spec *compute.ShardingSpec) (compute.Value, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	if spec != nil {
		return nil, fmt.Errorf("stablehlo: parameter %q: GoMLX's sharding specs are not supported: use Backend.ShardParameter", name)
	}
	if err := checkShape(shape); err != nil {
		return nil, fmt.Errorf("stablehlo: parameter %q: %w", name, err)
	}
	return f.addParam(name, shape), nil
}

func (f *function) addParam(name string, shape shapes.Shape) *value {
	v := &value{fn: f, index: len(f.params), shape: shapes.Make(shape.DType, shape.Dimensions...)}
	f.params = append(f.params, v)
	f.paramNames = append(f.paramNames, name)
	return v
}

func (f *function) Constant(flat any, dims ...int) (compute.Value, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	slice := reflect.ValueOf(flat)
	if slice.Kind() != reflect.Slice {
		return nil, fmt.Errorf("stablehlo: Constant: takes a slice, got a %T", flat)
	}
	shape := shapes.Make(dtypes.FromGoType(slice.Type().Elem()), dims...)
	if err := checkShape(shape); err != nil {
		return nil, fmt.Errorf("stablehlo: Constant: %w", err)
	}
	if slice.Len() != shape.Size() {
		return nil, fmt.Errorf("stablehlo: Constant: %d values for shape %s", slice.Len(), shapeText(shape))
	}
	return f.constant("Constant", shape, denseLiteral(shape, dtypes.UnsafeByteSliceFromAny(flat))), nil
}

// constant adds a constant with the given text inside dense<…>.
func (f *function) constant(what string, shape shapes.Shape, literal string) *value {
	o := f.add(what, "stablehlo.constant", nil, shape)
	o.isConst = true
	o.print = func(p *printer, o *op) {
		p.text("stablehlo.constant dense<", literal, "> : ", tensorType(shape))
	}
	return o.results[0]
}

// scalar is a constant of our own, made once for each function.
func (f *function) scalar(dtype dtypes.DType, literal string) *value {
	key := elementTypes[dtype] + " " + literal
	if f.scalars[key] == nil {
		f.scalars[key] = f.constant("Constant", shapes.Make(dtype), literal)
	}
	return f.scalars[key]
}

func (f *function) Return(outputs []compute.Value, shardings []*compute.ShardingSpec) error {
	for _, s := range shardings {
		if s != nil {
			return errors.New("stablehlo: Return: GoMLX's sharding specs are not supported: use Backend.ShardOutputs")
		}
	}
	values, err := f.inputs("Return", outputs...)
	if err != nil {
		return err
	}
	if len(values) == 0 {
		return fmt.Errorf("stablehlo: %s returns nothing: give at least one output", f.describe())
	}
	f.finish(values...)
	return nil
}

func (f *function) finish(outputs ...*value) {
	f.outputs, f.returned = outputs, true
}

// inputs checks that an operation can be added to f on these values.
func (f *function) inputs(what string, values ...compute.Value) ([]*value, error) {
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("%w (adding %s)", err, what)
	}
	cast := make([]*value, len(values))
	for i, v := range values {
		x, ok := v.(*value)
		if !ok || x == nil {
			return nil, fmt.Errorf("stablehlo: %s: operand %d is a %T, not a value of this backend", what, i, v)
		}
		if x.fn.builder != f.builder {
			return nil, fmt.Errorf("stablehlo: %s: operand %d (%s) belongs to graph %q, not to %q", what, i, shapeText(x.shape), x.fn.builder.name, f.builder.name)
		}
		cast[i] = x
	}
	return cast, nil
}

// add records an operation.
func (f *function) add(what, mnemonic string, operands []*value, results ...shapes.Shape) *op {
	o := &op{fn: f, what: what, mnemonic: mnemonic, operands: operands}
	for i, s := range results {
		o.results = append(o.results, &value{fn: f, op: o, index: i, shape: shapes.Make(s.DType, s.Dimensions...)})
	}
	f.ops = append(f.ops, o)
	return o
}

// closureOf checks a closure argument of an operation.
func (f *function) closureOf(what, role string, c compute.Function) (*function, error) {
	x, ok := c.(*function)
	switch {
	case !ok || x == nil:
		return nil, fmt.Errorf("stablehlo: %s: the %s is a %T, not a closure of this backend", what, role, c)
	case x.builder != f.builder:
		return nil, fmt.Errorf("stablehlo: %s: the %s belongs to graph %q, not to %q", what, role, x.builder.name, f.builder.name)
	case x.parent == nil:
		return nil, fmt.Errorf("stablehlo: %s: the %s is %s: make a closure for it", what, role, x.describe())
	case !x.returned:
		return nil, fmt.Errorf("stablehlo: %s: the %s has not returned", what, role)
	}
	return x, nil
}

// failed wraps an error of shape inference with the operation and the shapes of its operands.
func failed(what string, operands []*value, err error) error {
	return fmt.Errorf("stablehlo: %s(%s): %w", what, shapesText(operands), err)
}

func shapesText(values []*value) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = shapeText(v.shape)
	}
	return strings.Join(parts, ", ")
}

func shapesOf(values []*value) []shapes.Shape {
	out := make([]shapes.Shape, len(values))
	for i, v := range values {
		out[i] = v.shape
	}
	return out
}

// asValues is the list in the form that GoMLX takes.
func asValues(values []*value) []compute.Value {
	out := make([]compute.Value, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// reject is the error of an operation on operands that it cannot take.
func reject(what string, operands []*value, format string, args ...any) error {
	return failed(what, operands, fmt.Errorf(format, args...))
}
