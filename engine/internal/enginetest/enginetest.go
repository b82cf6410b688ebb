// Package enginetest runs small graphs in tests: on the CPU plugin through engine/stablehlo, over virtual devices, and
// on GoMLX's pure-Go backend, the oracle.
package enginetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// Devices is the number of virtual devices of the client.
const Devices = 8

// BuildFunc builds a graph's outputs on its parameters, one for each input, named x0, x1, ….
type BuildFunc func(g *graph.Graph, xs []*graph.Node) []*graph.Node

// T is what the functions need of a test; *testing.T and *rapid.T both are one.
type T interface {
	require.TestingT
	Helper()
}

var shared struct {
	once   sync.Once
	client *pjrt.Client
	err    error
}

// Client is the one CPU client of the test process. Without the plugin the test is skipped, loudly; with WEFT_CI set it
// fails.
func Client(t testing.TB) *pjrt.Client {
	t.Helper()
	path := pjrttest.Path(t, "cpu")
	shared.once.Do(func() {
		var p *pjrt.Plugin
		if p, shared.err = pjrt.Load(path); shared.err == nil {
			shared.client, shared.err = p.NewClient(map[string]any{"cpu_device_count": Devices})
		}
	})
	require.NoError(t, shared.err)
	return shared.client
}

// Params declares the parameters x0, x1, … for the inputs.
func Params(g *graph.Graph, inputs []*tensors.Tensor) []*graph.Node {
	xs := make([]*graph.Node, len(inputs))
	for i, in := range inputs {
		xs[i] = graph.Parameter(g, fmt.Sprintf("x%d", i), in.Shape())
	}
	return xs
}

// Lower builds the graph and lowers it.
func Lower(t T, mesh sharding.Mesh, build BuildFunc, inputs ...*tensors.Tensor) *stablehlo.Program {
	t.Helper()
	p, err := stablehlo.Build(mesh, "test", func(g *graph.Graph) []*graph.Node { return build(g, Params(g, inputs)) })
	require.NoError(t, err)
	return p
}

// Compile compiles a program over the first devices of the client.
func Compile(t T, c *pjrt.Client, p *stablehlo.Program) *pjrt.LoadedExecutable {
	t.Helper()
	n := p.Mesh.NumDevices()
	assignment := make([]int, n)
	for i := range assignment {
		assignment[i] = c.Devices()[i].ID()
	}
	exe, err := c.Compile(p.Text, pjrt.CompileOptions{NumPartitions: n, DeviceAssignment: assignment, UseSPMD: n > 1, UseShardy: true})
	require.NoError(t, err, "%s", p.Text)
	return exe
}

// Run lowers the graph, compiles it and runs it once, on inputs that it splits by their specs. It returns the whole
// outputs. Devices that hold the same part of an output must agree on its bits.
func Run(t T, c *pjrt.Client, mesh sharding.Mesh, build BuildFunc, inputs ...*tensors.Tensor) []*tensors.Tensor {
	t.Helper()
	p := Lower(t, mesh, build, inputs...)
	exe := Compile(t, c, p)
	defer func() { _ = exe.Destroy() }()
	return Execute(t, c, p, exe, inputs...)
}

// Oracle is GoMLX's pure-Go backend. With operations in parallel, the workers that wait for the closures that they call leave
// none to run them: it stands still for ever.
var Oracle = sync.OnceValue(func() compute.Backend {
	b, err := gobackend.New("ops_sequential")
	if err != nil {
		panic(err)
	}
	return b
})

// RunGo runs the graph on the oracle.
func RunGo(t T, build BuildFunc, inputs ...*tensors.Tensor) []*tensors.Tensor {
	t.Helper()
	g := graph.NewGraph(Oracle(), "oracle")
	require.NoError(t, g.Compile(build(g, Params(g, inputs))...))
	args := make([]any, len(inputs))
	for i, in := range inputs {
		args[i] = in
	}
	return g.Run(args...)
}

var dtypeOf = map[dtypes.DType]pjrt.DType{
	dtypes.Bool: pjrt.Bool, dtypes.Int8: pjrt.Int8, dtypes.Int16: pjrt.Int16, dtypes.Int32: pjrt.Int32, dtypes.Int64: pjrt.Int64,
	dtypes.Uint8: pjrt.Uint8, dtypes.Uint16: pjrt.Uint16, dtypes.Uint32: pjrt.Uint32, dtypes.Uint64: pjrt.Uint64,
	dtypes.Float16: pjrt.Float16, dtypes.BFloat16: pjrt.BFloat16, dtypes.Float32: pjrt.Float32, dtypes.Float64: pjrt.Float64,
}

// Execute runs a compiled program once; see Run.
func Execute(t T, c *pjrt.Client, p *stablehlo.Program, exe *pjrt.LoadedExecutable, inputs ...*tensors.Tensor) []*tensors.Tensor {
	t.Helper()
	require.Len(t, inputs, len(p.Inputs))
	args := make([][]*pjrt.Buffer, p.Mesh.NumDevices())
	for d := range args {
		for i, in := range inputs {
			dims := p.Inputs[i].Dims
			region := p.Inputs[i].Spec.ShardOf(p.Mesh, dims, d)
			b, err := c.BufferFromHost(cut(bytesOf(t, in), dims, p.Inputs[i].DType.Size(), region), dtypeOf[p.Inputs[i].DType], region.Size, c.Devices()[d])
			require.NoError(t, err)
			args[d] = append(args[d], b)
		}
	}
	results, done, err := exe.Execute(args, pjrt.ExecuteOptions{})
	require.NoError(t, err)
	require.NoError(t, pjrt.AwaitAll(done))
	out := make([]*tensors.Tensor, len(p.Outputs))
	for i := range out {
		parts := make([]*pjrt.Buffer, len(results))
		for d := range results {
			parts[d] = results[d][i]
		}
		out[i] = join(t, p, i, parts)
	}
	for _, buffers := range append(args, results...) {
		for _, b := range buffers {
			require.NoError(t, b.Destroy())
		}
	}
	return out
}

// join puts the parts of an output together.
func join(t T, p *stablehlo.Program, output int, parts []*pjrt.Buffer) *tensors.Tensor {
	t.Helper()
	o := p.Outputs[output]
	whole := make([]byte, sharding.Region{Size: o.Dims}.Elements()*o.DType.Size())
	seen := map[string][]byte{}
	for d, part := range parts {
		region := o.Spec.ShardOf(p.Mesh, o.Dims, d)
		require.True(t, slices.Equal(region.Size, part.Dims()), "output %d on device %d", output, d)
		raw := make([]byte, region.Elements()*o.DType.Size())
		require.NoError(t, part.ToHost(raw))
		key := fmt.Sprint(region.Start)
		if first, ok := seen[key]; ok {
			require.Equal(t, first, raw, "devices disagree on output %d", output)
		}
		seen[key] = raw
		paste(whole, raw, o.Dims, o.DType.Size(), region)
	}
	tensor := tensors.FromShape(shapeOf(o))
	require.NoError(t, tensor.MutableBytes(func(b []byte) { copy(b, whole) }))
	return tensor
}
