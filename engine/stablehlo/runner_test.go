package stablehlo_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/gotype"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"weft/engine/internal/enginetest"
	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/internal/fixture"
	"weft/internal/property"
	"weft/pjrt"
	"weft/pjrt/plugin"
)

// devices is the number of virtual devices of the test client.
const devices = 4

// One drawing compiles every operation: a few are enough.
func init() {
	property.Checks(6)
	property.Unshrunk()
}

// array is a host tensor: row-major little-endian bytes.
type array struct {
	shape shapes.Shape
	raw   []byte
}

func newArray(shape shapes.Shape) array {
	return array{shape, make([]byte, shape.Size()*shape.DType.Size())}
}

// fromSlice copies a flat Go slice.
func fromSlice[T gotype.Supported](flat []T, dims ...int) array {
	return fromTensor(tensors.FromFlatDataAndDimensions(flat, dims...))
}

func paramName(i int) string { return fmt.Sprintf("x%d", i) }

func fromTensor(t *tensors.Tensor) array {
	a := newArray(t.Shape())
	if err := t.ConstBytes(func(b []byte) { copy(a.raw, b) }); err != nil {
		panic(err)
	}
	return a
}

func (a array) tensor() *tensors.Tensor {
	t := tensors.FromShape(a.shape)
	if err := t.MutableBytes(func(b []byte) { copy(b, a.raw) }); err != nil {
		panic(err)
	}
	return t
}

var client = sync.OnceValues(func() (*pjrt.Client, error) {
	info, err := plugin.Find("cpu", "")
	if err != nil {
		if info, err = plugin.Ensure(context.Background(), "cpu", os.Stderr); err != nil {
			return nil, err
		}
	}
	p, err := pjrt.Load(info.Path)
	if err != nil {
		return nil, err
	}
	return p.NewClient(map[string]any{"cpu_device_count": int64(devices)})
})

func cpuClient(t testing.TB) *pjrt.Client {
	t.Helper()
	c, err := client()
	if err != nil {
		fixture.Skip(t, "nothing was compiled: no CPU plugin on this machine: %v", err)
	}
	return c
}

var pjrtTypes = map[dtypes.DType]pjrt.DType{
	dtypes.Bool: pjrt.Bool, dtypes.Int8: pjrt.Int8, dtypes.Int16: pjrt.Int16, dtypes.Int32: pjrt.Int32, dtypes.Int64: pjrt.Int64,
	dtypes.Uint8: pjrt.Uint8, dtypes.Uint16: pjrt.Uint16, dtypes.Uint32: pjrt.Uint32, dtypes.Uint64: pjrt.Uint64,
	dtypes.Float16: pjrt.Float16, dtypes.BFloat16: pjrt.BFloat16, dtypes.Float32: pjrt.Float32, dtypes.Float64: pjrt.Float64,
}

type tester interface {
	require.TestingT
	Helper()
}

// compiled is a program on the CPU plugin.
type compiled struct {
	program *stablehlo.Program
	client  *pjrt.Client
	exe     *pjrt.LoadedExecutable
}

func compile(t tester, c *pjrt.Client, p *stablehlo.Program) *compiled {
	t.Helper()
	n := p.Mesh.NumDevices()
	assignment := make([]int, n)
	for i := range assignment {
		assignment[i] = c.Devices()[i].ID()
	}
	exe, err := c.Compile(p.Text, pjrt.CompileOptions{NumPartitions: n, DeviceAssignment: assignment, UseSPMD: n > 1, UseShardy: true})
	require.NoError(t, err, "%s", p.Text)
	return &compiled{p, c, exe}
}

// run shards the global inputs over the devices, executes once and joins the outputs. Devices that hold the same
// region of an output must agree on its bits.
func (c *compiled) run(t tester, inputs ...array) []array {
	t.Helper()
	require.Len(t, inputs, len(c.program.Inputs))
	n := c.program.Mesh.NumDevices()
	args := make([][]*pjrt.Buffer, n)
	for d := range n {
		for i, in := range inputs {
			spec := c.program.Inputs[i].Spec
			region := spec.ShardOf(c.program.Mesh, in.shape.Dimensions, d)
			b, err := c.client.BufferFromHost(copyRegion(in, region), pjrtTypes[in.shape.DType], region.Size, c.client.Devices()[d])
			require.NoError(t, err)
			args[d] = append(args[d], b)
		}
	}
	results, done, err := c.exe.Execute(args, pjrt.ExecuteOptions{})
	require.NoError(t, err)
	require.NoError(t, pjrt.AwaitAll(done))
	out := make([]array, len(c.program.Outputs))
	for i, o := range c.program.Outputs {
		out[i] = newArray(shapes.Make(o.DType, o.Dims...))
		seen := map[string][]byte{}
		for d := range n {
			region := o.Spec.ShardOf(c.program.Mesh, o.Dims, d)
			require.True(t, slices.Equal(region.Size, results[d][i].Dims()), "output %d on device %d", i, d)
			raw := make([]byte, region.Elements()*o.DType.Size())
			require.NoError(t, results[d][i].ToHost(raw))
			pasteRegion(out[i], region, raw)
			key := fmt.Sprint(region.Start)
			if first, ok := seen[key]; ok {
				require.Equal(t, first, raw, "devices disagree on output %d", i)
			}
			seen[key] = raw
		}
	}
	for d := range n {
		for i := range args[d] {
			if c.program.Inputs[i].DonatedTo >= 0 {
				require.True(t, args[d][i].IsDeleted(), "input %q was not donated", c.program.Inputs[i].Name)
			}
			require.NoError(t, args[d][i].Destroy())
		}
		for i := range results[d] {
			require.NoError(t, results[d][i].Destroy())
		}
	}
	return out
}

func (c *compiled) destroy() { _ = c.exe.Destroy() }

// copyRegion takes a region of a row-major tensor.
func copyRegion(a array, r sharding.Region) []byte {
	out := make([]byte, 0, r.Elements()*a.shape.DType.Size())
	eachRow(a.shape, r, func(offset, n int) { out = append(out, a.raw[offset:offset+n]...) })
	return out
}

func pasteRegion(a array, r sharding.Region, raw []byte) {
	eachRow(a.shape, r, func(offset, n int) { copy(a.raw[offset:offset+n], raw); raw = raw[n:] })
}

// eachRow visits the byte ranges of a region, row by row.
func eachRow(s shapes.Shape, r sharding.Region, visit func(offset, n int)) {
	width := s.DType.Size()
	var walk func(dim, offset int)
	walk = func(dim, offset int) {
		if dim == s.Rank() {
			visit(offset*width, width)
			return
		}
		for i := range r.Size[dim] {
			walk(dim+1, offset*s.Dimensions[dim]+r.Start[dim]+i)
		}
	}
	walk(0, 0)
}

// graphFn builds a graph on the given parameters.
type graphFn func(g *graph.Graph, xs []*graph.Node) []*graph.Node

// params declares one parameter for each array.
func params(g *graph.Graph, inputs []array) []*graph.Node {
	xs := make([]*graph.Node, len(inputs))
	for i, in := range inputs {
		xs[i] = graph.Parameter(g, paramName(i), in.shape)
	}
	return xs
}

// runGo runs a graph on GoMLX's pure-Go backend, the oracle.
func runGo(t tester, fn graphFn, inputs ...array) []array {
	t.Helper()
	g := graph.NewGraph(enginetest.Oracle(), "oracle")
	require.NoError(t, g.Compile(fn(g, params(g, inputs))...))
	args := make([]any, len(inputs))
	for i, in := range inputs {
		args[i] = in.tensor()
	}
	var out []array
	for _, o := range g.Run(args...) {
		out = append(out, fromTensor(o))
	}
	return out
}

// runXLA lowers the same graph for one device and runs it on the CPU plugin.
func runXLA(t tester, c *pjrt.Client, fn graphFn, inputs ...array) []array {
	t.Helper()
	p, err := stablehlo.Build(sharding.Mesh{}, "test", func(g *graph.Graph) []*graph.Node { return fn(g, params(g, inputs)) })
	require.NoError(t, err)
	exe := compile(t, c, p)
	defer exe.destroy()
	return exe.run(t, inputs...)
}
