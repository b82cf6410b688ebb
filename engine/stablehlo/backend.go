package stablehlo

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine/sharding"
)

// IO describes one input or output of a program. Shapes are global: a device holds the slice that Spec gives it.
type IO struct {
	// Name of the parameter; outputs are named out0, out1, ….
	Name string
	// DType of the elements.
	DType dtypes.DType
	// Dims of the global tensor; empty for a scalar.
	Dims []int
	// Spec splits it over the program's mesh.
	Spec sharding.Spec
	// DonatedTo is, for an input, the index of the output that takes its buffer, or -1. It is -1 for outputs.
	DonatedTo int
}

// Program is a lowered graph.
type Program struct {
	// Name of the graph, which is the module's name.
	Name string
	// Text is the MLIR module, in the textual form that PJRT_Client_Compile takes as format "mlir".
	Text []byte
	// Mesh that the shardings refer to. The program runs as Mesh.NumDevices() partitions of one replica.
	Mesh sharding.Mesh
	// Inputs in the order of @main's arguments, Outputs in the order of its results.
	Inputs, Outputs []IO
}

// Backend records one GoMLX graph and lowers it. It is a compute.Backend without buffers; create one per program.
type Backend struct {
	notimplemented.Backend
	mesh      sharding.Mesh
	builder   *builder
	specs     map[string]sharding.Spec
	outSpecs  []sharding.Spec
	donations map[string]int
	program   *Program
}

var _ compute.Backend = (*Backend)(nil)

// New returns a backend for one program over the mesh. A mesh without axes is one device without shardings.
func New(mesh sharding.Mesh) *Backend {
	return &Backend{mesh: mesh, specs: map[string]sharding.Spec{}, donations: map[string]int{}}
}

// Of returns the Backend that a graph is built on, nil when it is another backend's.
func Of(g *graph.Graph) *Backend {
	b, _ := g.Backend().(*Backend)
	return b
}

// ShardParameter splits the parameter of main with this name over the mesh. Parameters without a spec are replicated.
// Mistakes (no such parameter, a dimension that does not divide) are reported when the graph is compiled.
func (b *Backend) ShardParameter(name string, spec sharding.Spec) { b.specs[name] = spec }

// ShardOutputs splits the outputs over the mesh, one spec for each output in order. Without it, outputs are replicated.
func (b *Backend) ShardOutputs(specs []sharding.Spec) { b.outSpecs = specs }

// Donate lets an output take over the buffer of a parameter, which is then gone after execution. Both must have the
// same dtype, dims and spec.
func (b *Backend) Donate(paramName string, outputIndex int) { b.donations[paramName] = outputIndex }

// Mesh of the program.
func (b *Backend) Mesh() sharding.Mesh { return b.mesh }

// Program returns the lowered graph, once it was compiled.
func (b *Backend) Program() (*Program, error) {
	if b.program == nil {
		return nil, errors.New("stablehlo: no program yet: call Compile on the graph first")
	}
	return b.program, nil
}

// Build builds a graph with fn, which returns its outputs, and lowers it. Shardings and donations are set inside fn
// through Of(g). A panic of GoMLX, whose text names the operation and the shapes, is returned as an error.
func Build(mesh sharding.Mesh, name string, fn func(g *graph.Graph) []*graph.Node) (program *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			program, err = nil, fmt.Errorf("build graph %q: %w", name, asError(r))
		}
	}()
	b := New(mesh)
	g := graph.NewGraph(b, name)
	if err := g.Compile(fn(g)...); err != nil {
		return nil, fmt.Errorf("build graph %q: %w", name, err)
	}
	return b.Program()
}

func asError(r any) error {
	if err, ok := r.(error); ok {
		return err
	}
	return fmt.Errorf("%v", r)
}

// Name is "stablehlo".
func (b *Backend) Name() string { return "stablehlo" }

// String is the name.
func (b *Backend) String() string { return b.Name() }

// Description for people.
func (b *Backend) Description() string { return "writes StableHLO programs with Shardy shardings" }

// NumDevices is the number of devices of the mesh.
func (b *Backend) NumDevices() int { return b.mesh.NumDevices() }

// DeviceDescription names a position of the mesh.
func (b *Backend) DeviceDescription(device compute.DeviceNum) string {
	return fmt.Sprintf("position %d of mesh %s", device, b.mesh)
}

// Builder starts the program. A second one is refused at its first operation.
func (b *Backend) Builder(name string) compute.Builder {
	next := newBuilder(b, name)
	if b.builder != nil {
		next.broken = fmt.Errorf("stablehlo: this backend already holds graph %q: make one with stablehlo.New for each graph", b.builder.name)
		return next
	}
	b.builder = next
	return next
}

// executable is what GoMLX gets from Compile: it describes the program and refuses to run it.
type executable struct{ program *Program }

func (executable) Finalize() {}

func (e executable) Inputs() (names []string, inputShapes []shapes.Shape) {
	for _, in := range e.program.Inputs {
		names = append(names, in.Name)
		inputShapes = append(inputShapes, shapes.Make(in.DType, in.Dims...))
	}
	return names, inputShapes
}

func (e executable) Outputs() (outputShapes []shapes.Shape) {
	for _, out := range e.program.Outputs {
		outputShapes = append(outputShapes, shapes.Make(out.DType, out.Dims...))
	}
	return outputShapes
}

func (e executable) Execute([]compute.Buffer, []bool, compute.DeviceNum) ([]compute.Buffer, error) {
	return nil, fmt.Errorf("stablehlo: graph %q is only lowered here: compile its Program with a PJRT client", e.program.Name)
}
