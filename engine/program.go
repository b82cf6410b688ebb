package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/pjrt"
)

// Input declares one argument of a program.
type Input struct {
	Name  string
	DType dtypes.DType
	Dims  []int
	Spec  sharding.Spec
}

// Output is one result of a program: a node and how it is split.
type Output struct {
	Node *graph.Node
	Spec sharding.Spec
	// Donated names the input whose memory becomes this output's, "" for none. The input's Array is consumed by Run.
	Donated string
}

// Lowered is a program as StableHLO text, not yet compiled.
type Lowered struct {
	Name    string
	Text    []byte
	Mesh    sharding.Mesh
	Inputs  []Input
	Outputs []Input
	// consumed tells which inputs are donated.
	consumed []bool
}

// Lower builds a GoMLX graph and writes it as StableHLO with Shardy annotations for the mesh. Panics of graph building
// end here as an error.
func Lower(mesh sharding.Mesh, name string, inputs []Input, build func(in []*graph.Node) []Output) (*Lowered, error) {
	for _, in := range inputs {
		if err := in.Spec.Check(mesh, in.Dims); err != nil {
			return nil, fmt.Errorf("input %q of %s: %w", in.Name, name, err)
		}
	}
	low := &Lowered{Name: name, Mesh: mesh, Inputs: inputs, consumed: make([]bool, len(inputs))}
	index := make(map[string]int, len(inputs))
	for i, in := range inputs {
		index[in.Name] = i
	}
	var outputs []Output
	program, err := stablehlo.Build(mesh, name, func(g *graph.Graph) []*graph.Node {
		b := stablehlo.Of(g)
		nodes := make([]*graph.Node, len(inputs))
		for i, in := range inputs {
			b.ShardParameter(in.Name, in.Spec)
			nodes[i] = graph.Parameter(g, in.Name, shapes.Make(in.DType, in.Dims...))
		}
		outputs = build(nodes)
		results := make([]*graph.Node, len(outputs))
		specs := make([]sharding.Spec, len(outputs))
		for i, o := range outputs {
			results[i], specs[i] = o.Node, o.Spec
			if o.Donated != "" {
				b.Donate(o.Donated, i)
				low.consumed[index[o.Donated]] = true
			}
		}
		b.ShardOutputs(specs)
		return results
	})
	if err != nil {
		return nil, fmt.Errorf("build the program %s: %w", name, err)
	}
	low.Text = program.Text
	for _, o := range outputs {
		s := o.Node.Shape()
		low.Outputs = append(low.Outputs, Input{DType: s.DType, Dims: s.Dimensions, Spec: o.Spec})
	}
	return low, nil
}

// CompileOptions returns the options under which the program is compiled for devices with the given global ids, in
// the order of the mesh.
func (l *Lowered) CompileOptions(deviceIDs []int) pjrt.CompileOptions {
	return pjrt.CompileOptions{
		NumReplicas:      1,
		NumPartitions:    l.Mesh.NumDevices(),
		UseSPMD:          true,
		UseShardy:        true,
		DeviceAssignment: deviceIDs,
	}
}

// Program is a compiled program, bound to the devices of a runtime.
type Program struct {
	*Lowered
	// CompileTime is how long compilation (or loading from the cache) took; FromCache tells which it was.
	CompileTime time.Duration
	FromCache   bool

	rt  *Runtime
	exe executable
	// order holds, for each device of the executable, its index in rt.local.
	order []int
}

// executable is a compiled program on the devices of this process.
type executable interface {
	AddressableDevices() []*pjrt.Device
	Execute(args [][]*pjrt.Buffer, o pjrt.ExecuteOptions) (outs [][]*pjrt.Buffer, done []*pjrt.Event, err error)
	Executable() (*pjrt.Executable, error)
	Destroy() error
}

// Compile lowers and compiles a program for the runtime's mesh, or takes it from the compile cache.
func (rt *Runtime) Compile(name string, inputs []Input, build func(in []*graph.Node) []Output) (*Program, error) {
	low, err := Lower(rt.mesh, name, inputs, build)
	if err != nil {
		return nil, err
	}
	return rt.CompileLowered(low)
}

// CompileLowered compiles a program that was lowered for the runtime's mesh.
func (rt *Runtime) CompileLowered(low *Lowered) (*Program, error) {
	p := &Program{Lowered: low, rt: rt}
	start := time.Now()
	var err error
	if rt.hosts != nil {
		p.exe, p.FromCache, err = rt.hosts.compile(rt, low)
	} else {
		p.exe, p.FromCache, err = rt.compileHere(low)
	}
	if err != nil {
		return nil, fmt.Errorf("compile the program %s for %s: %w", low.Name, rt.client.PlatformName(), err)
	}
	p.CompileTime = time.Since(start)
	if p.order, err = rt.localOrder(p.exe.AddressableDevices()); err != nil {
		p.Destroy()
		return nil, fmt.Errorf("compile the program %s: %w", low.Name, err)
	}
	return p, nil
}

// compileHere compiles a program, or takes it from the compile cache, which hit tells.
func (rt *Runtime) compileHere(low *Lowered) (exe *pjrt.LoadedExecutable, hit bool, err error) {
	ids := make([]int, len(rt.devices))
	for i, d := range rt.devices {
		ids[i] = d.ID()
	}
	opts := low.CompileOptions(ids)
	if exe, err = rt.cache.load(rt.client, low.Text, opts); err != nil || exe != nil {
		return exe, exe != nil, err
	}
	if exe, err = rt.client.Compile(low.Text, opts); err == nil {
		rt.cache.store(exe, low.Text, opts)
	}
	return exe, false, err
}

// localOrder returns the index in rt.local of each device of an executable.
func (rt *Runtime) localOrder(devices []*pjrt.Device) ([]int, error) {
	order := make([]int, len(devices))
	for i, d := range devices {
		order[i] = slices.IndexFunc(rt.local, func(p int) bool { return rt.devices[p].ID() == d.ID() })
		if order[i] < 0 {
			return nil, fmt.Errorf("it runs on device %d, which is not one of the mesh", d.ID())
		}
	}
	if len(order) != len(rt.local) {
		return nil, fmt.Errorf("it runs on %d of this process's %d devices", len(order), len(rt.local))
	}
	return order, nil
}

// Run executes the program. Arguments must match Inputs; donated ones are consumed, also when it fails. It returns
// when the program is enqueued: reading a result waits for it.
func (p *Program) Run(args ...*Array) ([]*Array, error) {
	if len(args) != len(p.Inputs) {
		return nil, fmt.Errorf("program %s takes %d arguments, got %d", p.Name, len(p.Inputs), len(args))
	}
	perDevice := make([][]*pjrt.Buffer, len(p.rt.local))
	flat := make([]*pjrt.Buffer, len(perDevice)*len(args))
	for d := range perDevice {
		perDevice[d] = flat[d*len(args) : (d+1)*len(args)]
		for i, a := range args {
			perDevice[d][i] = a.shards[p.order[d]]
		}
	}
	results, done, err := p.exe.Execute(perDevice, pjrt.ExecuteOptions{})
	for _, e := range done {
		e.Destroy()
	}
	for i, a := range args {
		if p.consumed[i] {
			a.Destroy()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("run the program %s: %w", p.Name, err)
	}
	return p.wrap(results), nil
}

func (p *Program) wrap(results [][]*pjrt.Buffer) []*Array {
	out := make([]*Array, len(p.Outputs))
	for i, o := range p.Outputs {
		out[i] = &Array{DType: o.DType, Dims: o.Dims, Spec: o.Spec, rt: p.rt, shards: make([]*pjrt.Buffer, len(results))}
		for d := range results {
			out[i].shards[p.order[d]] = results[d][i]
		}
	}
	return out
}

// MemoryStats are the compiler's own figures for one device, in bytes.
func (p *Program) MemoryStats() (pjrt.CompiledMemoryStats, error) {
	exe, err := p.exe.Executable()
	if err != nil {
		return pjrt.CompiledMemoryStats{}, err
	}
	defer exe.Destroy()
	return exe.MemoryStats()
}

// OptimizedProgram returns the program after XLA's passes, in the plugin's format.
func (p *Program) OptimizedProgram() (format string, program []byte, err error) {
	exe, err := p.exe.Executable()
	if err != nil {
		return "", nil, err
	}
	defer exe.Destroy()
	return exe.OptimizedProgram()
}

// Destroy releases the executable.
func (p *Program) Destroy() {
	if p != nil && p.exe != nil {
		_ = p.exe.Destroy()
		p.exe = nil
	}
}
