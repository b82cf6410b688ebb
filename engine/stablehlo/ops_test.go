package stablehlo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/engine/internal/enginetest"
	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/internal/property"
	"weft/pjrt"
)

// instance is one drawn use of an operation.
type instance struct {
	inputs []array
	// fn builds the operation under test.
	fn graphFn
	// grad lists the inputs to differentiate by.
	grad []int
	// ref, where GoMLX's pure-Go backend lacks the operation or its gradient, computes the same with others.
	ref graphFn
	// want computes the outputs (and then the gradients, given the weights of the loss) in plain Go instead.
	want func(inputs, weights []array) []array
	// loose multiplies the tolerance, for sums of many terms.
	loose float64
}

// opCase covers operations with random instances.
type opCase struct {
	name string
	ops  []compute.OpType
	draw func(d *drawer) instance
}

// allCases are the cases of every family.
func allCases() []opCase {
	return slices.Concat(unaryCases(), binaryCases(), elementwiseCases(), shapeCases(), linearCases(), reduceCases(), controlCases())
}

// TestOpsHaveCases fails when the backend claims an operation that no case covers, or the reverse.
func TestOpsHaveCases(t *testing.T) {
	claimed := stablehlo.New(sharding.Mesh{}).Capabilities().Operations
	covered := map[compute.OpType]bool{}
	for _, c := range allCases() {
		for _, op := range c.ops {
			covered[op] = true
			require.True(t, claimed[op], "case %s covers %s, which the backend does not claim", c.name, op)
		}
	}
	covered[compute.OpTypeParameter] = true       // every case has some
	covered[compute.OpTypeRNGBitGenerator] = true // TestRandomBits: the oracle has another generator
	for op, ok := range claimed {
		require.True(t, !ok || covered[op], "the backend claims %s, which has no case", op)
	}
}

// TestOps runs every case, value and gradient, in one program for each drawing.
func TestOps(t *testing.T) {
	c := cpuClient(t)
	cases := allCases()
	property.Check(t, func(rt *rapid.T) {
		d := newDrawer(rt)
		batch := &batch{}
		for _, oc := range cases {
			batch.add(oc.name, oc.draw(d), d)
		}
		batch.check(rt, c)
	})
}

// batch is many instances in one program.
type batch struct {
	names     []string
	instances []instance
	weights   [][]array // of each output in the loss
}

func (b *batch) add(name string, in instance, d *drawer) {
	b.names = append(b.names, name)
	b.instances = append(b.instances, in)
	var weights []array
	if in.grad != nil {
		for _, s := range outputShapes(in) {
			if s.DType.IsFloat() {
				weights = append(weights, d.fill(s.DType, s.Dimensions, -1, 1))
			}
		}
	}
	b.weights = append(b.weights, weights)
}

// outputShapes finds what an instance returns.
func outputShapes(in instance) (out []shapes.Shape) {
	g := graph.NewGraph(stablehlo.New(sharding.Mesh{}), "shapes")
	for _, n := range in.fn(g, params(g, in.inputs)) {
		out = append(out, n.Shape())
	}
	return out
}

// values builds an instance's outputs and gradients.
func (in instance) values(g *graph.Graph, fn graphFn, xs, weights []*graph.Node) []*graph.Node {
	out := fn(g, xs)
	if in.grad == nil {
		return out
	}
	loss := graph.Scalar(g, dtypes.Float32, 0)
	w := 0
	for _, o := range out {
		if o.DType().IsFloat() {
			loss = graph.Add(loss, graph.ConvertDType(graph.ReduceAllSum(graph.Mul(o, weights[w])), dtypes.Float32))
			w++
		}
	}
	var by []*graph.Node
	for _, i := range in.grad {
		by = append(by, xs[i])
	}
	return append(slices.Clone(out), graph.Gradient(loss, by...)...)
}

// build makes the program of all instances, or of those the oracle computes.
func (b *batch) build(g *graph.Graph, forOracle bool) (out []*graph.Node) {
	for i, in := range b.instances {
		fn := in.fn
		if forOracle && in.ref != nil {
			fn = in.ref
		}
		xs, ws := b.declare(g, fmt.Sprintf("%d.%s.x", i, b.names[i]), in.inputs), b.declare(g, fmt.Sprintf("%d.%s.w", i, b.names[i]), b.weights[i])
		if forOracle && in.want != nil {
			continue
		}
		built := in.values(g, fn, xs, ws)
		out = append(out, built...)
	}
	return out
}

func (b *batch) declare(g *graph.Graph, prefix string, arrays []array) (nodes []*graph.Node) {
	for i, a := range arrays {
		nodes = append(nodes, graph.Parameter(g, fmt.Sprintf("%s%d", prefix, i), a.shape))
	}
	return nodes
}

func (b *batch) inputs() (all []array) {
	for i, in := range b.instances {
		all = append(append(all, in.inputs...), b.weights[i]...)
	}
	return all
}

func (b *batch) check(t *rapid.T, c *pjrt.Client) {
	program, err := stablehlo.Build(sharding.Mesh{}, "ops", func(g *graph.Graph) []*graph.Node { return b.build(g, false) })
	require.NoError(t, err)
	exe := compile(t, c, program)
	defer exe.destroy()
	got := exe.run(t, b.inputs()...)
	want := runOracle(b)
	for i, in := range b.instances {
		n := len(outputShapes(in))
		outs := n + len(in.grad)
		expected := want[:min(outs, len(want))]
		if in.want != nil {
			expected = in.want(in.inputs, b.weights[i])
		} else {
			want = want[outs:]
		}
		require.Len(t, expected, outs, b.names[i])
		for j := range outs {
			what := fmt.Sprintf("output %d", j)
			if j >= n {
				what = fmt.Sprintf("gradient by input %d", in.grad[j-n])
			}
			tolerance := tolerances[expected[j].shape.DType] * max(1, in.loose)
			if err := compareArrays(got[j], expected[j], tolerance); err != nil {
				t.Fatalf("%s: %s on %s: %v", b.names[i], what, describeInputs(in.inputs), err)
			}
		}
		got = got[outs:]
	}
	require.Empty(t, got)
}

func describeInputs(inputs []array) string {
	parts := make([]string, len(inputs))
	for i, a := range inputs {
		parts[i] = a.shape.String()
		if a.shape.Size() <= 6 {
			parts[i] += fmt.Sprint(a.tensor().Value())
		}
	}
	return strings.Join(parts, " ")
}

// runOracle runs what GoMLX's pure-Go backend can.
func runOracle(b *batch) (out []array) {
	g := graph.NewGraph(enginetest.Oracle(), "oracle")
	if err := g.Compile(b.build(g, true)...); err != nil {
		panic(err)
	}
	var args []any
	for _, in := range b.inputs() {
		args = append(args, in.tensor())
	}
	for _, o := range g.Run(args...) {
		out = append(out, fromTensor(o))
	}
	return out
}
