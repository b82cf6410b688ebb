package transform_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"weft/engine/hlo"
	"weft/engine/internal/enginetest"
	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/engine/transform"
)

const (
	steps, out, in = 6, 16, 8
	rows           = 12
)

// fsdp scans layers h' = h + tanh(h·upᵀ)·downᵀ whose weights are split, converts and gathers them in the body, and
// splits the rows of h. ups [steps, out, in] are split on out, downs [steps, in, out] on their last dimension.
func fsdp(remat transform.Remat, compute dtypes.DType, sharded bool) enginetest.BuildFunc {
	upSpec, downSpec := sharding.Split(3, 1, "fsdp"), sharding.Split(3, 2, "fsdp")
	return func(g *graph.Graph, xs []*node) []*node {
		x, ups, downs := xs[0], xs[1], xs[2]
		constrain := func(x *node, spec sharding.Spec) *node { return x }
		gather := func(w *node, _ sharding.Spec) *node { return graph.ConvertDType(w, compute) }
		o := transform.ScanOptions{Remat: remat}
		if sharded {
			b := stablehlo.Of(g)
			b.ShardParameter("x0", sharding.Split(2, 0, "fsdp"))
			b.ShardParameter("x1", upSpec)
			b.ShardParameter("x2", downSpec)
			b.ShardOutputs([]sharding.Spec{nil, sharding.Split(2, 0, "fsdp"), sharding.Split(2, 0, "fsdp"), upSpec, downSpec})
			constrain = transform.Constrain
			gather = func(w *node, spec sharding.Spec) *node {
				return transform.ConstrainTo(graph.ConvertDType(w, compute), sharding.Replicated(), spec)
			}
			o.XsSpecs = []sharding.Spec{upSpec, downSpec}
		}
		batch := sharding.Split(2, 0, "fsdp")
		h, _ := transform.Scan(func(c, w []*node) ([]*node, []*node) {
			up, down := gather(w[0], upSpec.DropLeading(1)), gather(w[1], downSpec.DropLeading(1))
			h := constrain(c[0], batch)
			mid := graph.Tanh(dot(h, graph.Transpose(up, 0, 1)))
			return nodes(constrain(graph.Add(h, dot(mid, graph.Transpose(down, 0, 1))), batch)), nil
		}, nodes(graph.ConvertDType(x, compute)), nodes(ups, downs), o)
		last := graph.ConvertDType(h[0], dtypes.Float32)
		loss := total(last)
		return append(nodes(loss, last), graph.Gradient(loss, xs...)...)
	}
}

func fsdpInputs() []*tensors.Tensor {
	r := enginetest.Random
	return []*tensors.Tensor{r(1, rows, in), r(2, steps, out, in), r(3, steps, in, out)}
}

func TestShardedScan(t *testing.T) {
	client := enginetest.Client(t)
	for _, compute := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		tolerance := map[dtypes.DType]float64{dtypes.Float32: 1e-5, dtypes.BFloat16: 0.03}[compute]
		want := enginetest.Run(t, client, oneDevice, fsdp(transform.RematNone, compute, false), fsdpInputs()...)
		for name, remat := range map[string]transform.Remat{"none": transform.RematNone, "full": transform.RematFull} {
			for _, devices := range []int{2, 4} {
				t.Run(fmt.Sprintf("%s/%s/%d", compute, name, devices), func(t *testing.T) {
					mesh := sharding.Mesh{Name: "mesh", Axes: []sharding.Axis{{Name: "fsdp", Size: devices}}}
					p := enginetest.Lower(t, mesh, fsdp(remat, compute, true), fsdpInputs()...)
					exe := enginetest.Compile(t, client, p)
					defer func() { require.NoError(t, exe.Destroy()) }()
					enginetest.Close(t, want, enginetest.Execute(t, client, p, exe, fsdpInputs()...), tolerance)
					e, err := exe.Executable()
					require.NoError(t, err)
					defer func() { require.NoError(t, e.Destroy()) }()
					format, code, err := e.OptimizedProgram()
					require.NoError(t, err)
					m, err := hlo.Parse(format, code)
					require.NoError(t, err)
					requireNeverWhole(t, m)
					requireGatheredTwice(t, m)
				})
			}
		}
	}
}

// requireNeverWhole fails when a device holds all steps of a whole weight, of its gradient or of its gathered copies.
func requireNeverWhole(t *testing.T, m *hlo.Module) {
	t.Helper()
	for _, c := range m.Computations {
		for _, i := range c.Instructions {
			for _, s := range append([]hlo.Shape{i.Shape}, i.Shape.Tuple...) {
				if len(s.Dims) == 3 && s.Dims[0] == steps {
					require.Less(t, s.Dims[0]*s.Dims[1]*s.Dims[2], int64(steps*out*in), "%s %s %s is a whole stack of weights", i.Opcode, i.Name, s)
				}
			}
		}
	}
}

// requireGatheredTwice wants each weight gathered once a step forward and once backward, and its gradient reduced
// once a step.
func requireGatheredTwice(t *testing.T, m *hlo.Module) {
	t.Helper()
	list, err := m.Collectives()
	require.NoError(t, err)
	counts := map[string]int64{}
	for _, c := range list {
		parts := c.Shape.Tuple // the compiler combines collectives
		if parts == nil {
			parts = []hlo.Shape{c.Shape}
		}
		for _, s := range parts {
			if len(s.Dims) == 2 {
				counts[c.Opcode] += c.Count
			}
		}
	}
	require.EqualValues(t, 2*2*steps, counts["all-gather"], hlo.FormatCollectives(list))
	require.EqualValues(t, 2*steps, counts["reduce-scatter"]+counts["all-reduce"], hlo.FormatCollectives(list))
}

func TestConstraintsOfValueAndCotangent(t *testing.T) {
	mesh := sharding.Mesh{Name: "mesh", Axes: []sharding.Axis{{Name: "fsdp", Size: 2}}}
	p := enginetest.Lower(t, mesh, func(g *graph.Graph, xs []*node) []*node {
		h := transform.Constrain(xs[0], sharding.Split(2, 0, "fsdp"))
		w := transform.ConstrainTo(xs[1], sharding.Replicated(), sharding.Split(2, 1, "fsdp"))
		return graph.Gradient(total(dot(graph.Sin(h), graph.Sin(w))), xs...)
	}, enginetest.Random(1, 4, 6), enginetest.Random(2, 6, 8))
	var got []string
	for _, line := range strings.Split(string(p.Text), "\n") {
		if _, after, found := strings.Cut(line, "sdy.sharding_constraint "); found {
			_, after, _ = strings.Cut(after, " ")
			got = append(got, after)
		}
	}
	require.Equal(t, []string{
		`<@mesh, [{"fsdp"}, {}]> : tensor<4x6xf32>`, `<@mesh, [{}, {}]> : tensor<6x8xf32>`,
		`<@mesh, [{}, {"fsdp"}]> : tensor<6x8xf32>`, `<@mesh, [{"fsdp"}, {}]> : tensor<4x6xf32>`,
	}, got)
}
