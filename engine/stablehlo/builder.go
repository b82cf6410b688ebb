package stablehlo

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
)

// builder implements compute.Builder.
type builder struct {
	notimplemented.Builder
	backend   *Backend
	name      string
	main      *function
	functions []*function // named functions, in the order they were made
	closures  int
	compiled  bool
	broken    error
}

func newBuilder(b *Backend, name string) *builder {
	bd := &builder{backend: b, name: name}
	bd.main = bd.newFunction(compute.MainName)
	return bd
}

func (b *builder) newFunction(name string) *function {
	return &function{
		Function: notimplemented.Function{ErrFn: func(op compute.OpType) error {
			return fmt.Errorf("stablehlo: %s: %w", op, compute.ErrNotImplemented)
		}},
		builder: b,
		name:    name,
		scalars: map[string]*value{},
	}
}

func (b *builder) Name() string { return b.name }

func (b *builder) Main() compute.Function { return b.main }

func (b *builder) NewFunction(name string) (compute.Function, error) {
	if name == "" || name == compute.MainName {
		return nil, fmt.Errorf("stablehlo: function name %q is reserved: choose another", name)
	}
	if slices.ContainsFunc(b.functions, func(f *function) bool { return f.name == name }) {
		return nil, fmt.Errorf("stablehlo: function %q exists already: names must be unique in a graph", name)
	}
	spec, found, err := parseConstraint(name)
	if err != nil {
		return nil, fmt.Errorf("stablehlo: %w", err)
	}
	dot, err := parseReducedDot(name)
	if err != nil {
		return nil, fmt.Errorf("stablehlo: %w", err)
	}
	f := b.newFunction(name)
	f.isConstraint, f.constraint, f.reducedDot = found, spec, dot
	b.functions = append(b.functions, f)
	return f, nil
}

func (b *builder) OpShape(v compute.Value) (shapes.Shape, error) {
	x, ok := v.(*value)
	if !ok || x == nil {
		return shapes.Invalid(), fmt.Errorf("stablehlo: %T is not a value of this backend", v)
	}
	return x.shape, nil
}

func (b *builder) DistributedSPMD(int) error {
	return errors.New("stablehlo: GoMLX's SPMD strategy is not supported: give the mesh to stablehlo.New and the specs to ShardParameter")
}

func (b *builder) DistributedAutoSharding(...compute.Mesh) error {
	return errors.New("stablehlo: GoMLX's AutoSharding strategy is not supported: give the mesh to stablehlo.New and the specs to ShardParameter")
}

func (b *builder) DeviceAssignment(...compute.DeviceNum) error {
	return errors.New("stablehlo: the device assignment is a compile option of the runtime, not part of the program")
}

// Compile lowers main and every function that it reaches.
func (b *builder) Compile() (compute.Executable, error) {
	if b.broken != nil {
		return nil, b.broken
	}
	if b.compiled {
		return nil, fmt.Errorf("stablehlo: graph %q is compiled already", b.name)
	}
	if !b.main.returned {
		return nil, fmt.Errorf("stablehlo: graph %q has no outputs: Return was not called on its main function", b.name)
	}
	program, err := b.describe()
	if err != nil {
		return nil, fmt.Errorf("stablehlo: graph %q: %w", b.name, err)
	}
	program.Text, err = printModule(b, program)
	if err != nil {
		return nil, fmt.Errorf("stablehlo: graph %q: %w", b.name, err)
	}
	b.compiled = true
	b.backend.program = program
	return executable{program}, nil
}

// describe checks shardings and donations against main's signature.
func (b *builder) describe() (*Program, error) {
	bk := b.backend
	p := &Program{Name: b.name, Mesh: bk.mesh}
	index := map[string]int{}
	for i, param := range b.main.params {
		name := b.main.paramNames[i]
		index[name] = i
		spec := bk.specs[name]
		if err := spec.Check(bk.mesh, param.shape.Dimensions); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		p.Inputs = append(p.Inputs, IO{Name: name, DType: param.shape.DType, Dims: slices.Clone(param.shape.Dimensions), Spec: spec, DonatedTo: -1})
	}
	for _, name := range slices.Sorted(maps.Keys(bk.specs)) {
		if _, ok := index[name]; !ok {
			return nil, fmt.Errorf("ShardParameter(%q): the graph has no such parameter", name)
		}
	}
	if bk.outSpecs != nil && len(bk.outSpecs) != len(b.main.outputs) {
		return nil, fmt.Errorf("ShardOutputs got %d specs for %d outputs: give one for each", len(bk.outSpecs), len(b.main.outputs))
	}
	for i, out := range b.main.outputs {
		o := IO{Name: fmt.Sprintf("out%d", i), DType: out.shape.DType, Dims: slices.Clone(out.shape.Dimensions), DonatedTo: -1}
		if bk.outSpecs != nil {
			o.Spec = bk.outSpecs[i]
		}
		if err := o.Spec.Check(bk.mesh, o.Dims); err != nil {
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
		p.Outputs = append(p.Outputs, o)
	}
	return p, b.describeDonations(p, index)
}

func (b *builder) describeDonations(p *Program, index map[string]int) error {
	taken := map[int]string{}
	for _, name := range slices.Sorted(maps.Keys(b.backend.donations)) {
		out := b.backend.donations[name]
		i, ok := index[name]
		if !ok {
			return fmt.Errorf("Donate(%q, %d): the graph has no such parameter", name, out)
		}
		if out < 0 || out >= len(p.Outputs) {
			return fmt.Errorf("Donate(%q, %d): the graph has %d outputs", name, out, len(p.Outputs))
		}
		if other, ok := taken[out]; ok {
			return fmt.Errorf("Donate(%q, %d): output %d already takes the buffer of %q", name, out, out, other)
		}
		taken[out] = name
		in, o := &p.Inputs[i], p.Outputs[out]
		if in.DType != o.DType || !slices.Equal(in.Dims, o.Dims) || !in.Spec.Equal(o.Spec) {
			return fmt.Errorf("Donate(%q, %d): the parameter is %s %v, the output %s %v: both must agree in dtype, dims and sharding", name, out,
				shapeText(shapes.Make(in.DType, in.Dims...)), in.Spec, shapeText(shapes.Make(o.DType, o.Dims...)), o.Spec)
		}
		in.DonatedTo = out
	}
	return nil
}
