package stablehlo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
	"weft/engine/stablehlo"
)

// TestErrors: what is wrong in a graph is an error of one line that names the operation and the shapes.
func TestErrors(t *testing.T) {
	f32 := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }
	x := func(g *graph.Graph) *graph.Node { return graph.Parameter(g, "x", f32(4, 6)) }
	double := func(g *graph.Graph) []*graph.Node { n := x(g); return []*graph.Node{graph.Add(n, n)} }
	for _, tc := range []struct {
		name  string
		build graphOf
		want  []string
	}{
		{"shapes that do not broadcast", func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Add(x(g), graph.Parameter(g, "y", f32(3, 6)))}
		}, []string{"Add(f32[4,6], f32[3,6])"}},
		{"dtypes that differ", func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Mul(x(g), graph.Parameter(g, "y", shapes.Make(dtypes.Int32, 4, 6)))}
		}, []string{"Mul(f32[4,6], i32[4,6])"}},
		{"a dimension that does not contract", func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Dot(x(g), graph.Parameter(g, "y", f32(5, 2))).Product()}
		}, []string{"DotGeneral(f32[4,6], f32[5,2])"}},
		{"complex numbers", func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Complex(x(g), graph.Parameter(g, "y", f32(4, 6)))}
		},
			[]string{"Complex", "not implemented"}},
		{"a complex parameter", func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Parameter(g, "z", shapes.Make(dtypes.Complex64, 2))}
		}, []string{`parameter "z"`, "Complex64", "not supported"}},
		{"a dynamic shape", func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Parameter(g, "z", shapes.MakeDynamic(dtypes.Float32, []int{-1}, []string{"batch"}))}
		}, []string{`parameter "z"`, "dynamic"}},
		{"no such parameter to shard", func(g *graph.Graph) []*graph.Node {
			stablehlo.Of(g).ShardParameter("nope", nil)
			return double(g)
		}, []string{`ShardParameter("nope")`, "no such parameter"}},
		{"a dimension that does not divide", func(g *graph.Graph) []*graph.Node {
			stablehlo.Of(g).ShardParameter("x", sharding.Split(2, 1, "fsdp"))
			return double(g)
		}, []string{`parameter "x"`, "does not divide 6"}},
		{"an unknown axis of an output", func(g *graph.Graph) []*graph.Node {
			stablehlo.Of(g).ShardOutputs([]sharding.Spec{sharding.Split(2, 0, "model")})
			return double(g)
		}, []string{"output 0", `axis "model"`}},
		{"an unknown axis of a constraint", func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{constrain(x(g), sharding.Split(2, 0, "model"))}
		}, []string{"Call", "f32[4,6]", `axis "model"`}},
		{"too few output specs", func(g *graph.Graph) []*graph.Node {
			stablehlo.Of(g).ShardOutputs(nil)
			stablehlo.Of(g).ShardOutputs([]sharding.Spec{})
			return double(g)
		}, []string{"0 specs for 1 outputs"}},
		{"donation of nothing", func(g *graph.Graph) []*graph.Node {
			stablehlo.Of(g).Donate("nope", 0)
			return double(g)
		}, []string{`Donate("nope", 0)`, "no such parameter"}},
		{"donation to nothing", func(g *graph.Graph) []*graph.Node {
			stablehlo.Of(g).Donate("x", 1)
			return double(g)
		}, []string{`Donate("x", 1)`, "1 outputs"}},
		{"donation to another shape", func(g *graph.Graph) []*graph.Node {
			stablehlo.Of(g).Donate("x", 0)
			return []*graph.Node{graph.ReduceAllSum(x(g))}
		}, []string{"f32[4,6]", "f32[]", "must agree"}},
		{"donation to another sharding", func(g *graph.Graph) []*graph.Node {
			stablehlo.Of(g).Donate("x", 0)
			stablehlo.Of(g).ShardParameter("x", sharding.Split(2, 0, "fsdp"))
			return double(g)
		}, []string{"[fsdp, -]", "replicated", "must agree"}},
		{"two donations to one output", func(g *graph.Graph) []*graph.Node {
			stablehlo.Of(g).Donate("x", 0)
			stablehlo.Of(g).Donate("y", 0)
			return []*graph.Node{graph.Add(x(g), graph.Parameter(g, "y", f32(4, 6)))}
		}, []string{`already takes the buffer of "x"`}},
		{"a value that left its loop", func(g *graph.Graph) []*graph.Node {
			n := x(g)
			var inside *graph.Node
			out := loop(g, 2, func(_ *graph.Graph, v []*graph.Node) []*graph.Node {
				inside = graph.Exp(n) // GoMLX takes it for a value of main.
				return []*graph.Node{graph.Add(v[0], inside)}
			}, n)
			return []*graph.Node{graph.Add(out[0], inside)}
		}, []string{"Add", "the result of Exp (f32[4,6])", "closure", "not visible"}},
		{"a comparator that reads a tensor", func(g *graph.Graph) []*graph.Node {
			limit := graph.Parameter(g, "limit", f32())
			less := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
				a := graph.Parameter(g, "a", f32())
				return []*graph.Node{graph.LessThan(graph.Add(a, limit), graph.Parameter(g, "b", f32()))}
			})
			return graph.SortFunc(less, 0, false, x(g))
		}, []string{"Sort", "f32[]", "only constants"}},
		{"a loop whose state changes shape", func(g *graph.Graph) []*graph.Node {
			return loop(g, 2, func(_ *graph.Graph, v []*graph.Node) []*graph.Node {
				return []*graph.Node{graph.ReduceSum(v[0], 0)}
			}, x(g))
		}, []string{"While", "value 1 is f32[6]", "f32[4,6]"}},
		{"a call with another shape", func(g *graph.Graph) []*graph.Node {
			f := graph.NewFunction(g, "f", func(g *graph.Graph) []*graph.Node {
				return []*graph.Node{graph.Neg(graph.Parameter(g, "a", f32(4, 5)))}
			})
			return f.Call(x(g))
		}, []string{`Call("f")`, "f32[4,6]", "f32[4,5]"}},
		{"a panic of the caller", func(*graph.Graph) []*graph.Node { panic("out of paper") }, []string{"out of paper"}},
		{"no outputs", func(g *graph.Graph) []*graph.Node { x(g); return nil }, []string{"no outputs"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := stablehlo.Build(mesh(t, sharding.Axis{Name: "fsdp", Size: 4}), "broken", tc.build)
			require.Error(t, err)
			for _, part := range append(tc.want, `build graph "broken"`) {
				require.ErrorContains(t, err, part)
			}
			require.NotContains(t, err.Error(), "\n", "one line")
			require.NotContains(t, err.Error(), ".go:", "no stack")
		})
	}
}

type graphOf = func(g *graph.Graph) []*graph.Node

// TestBackendHoldsOneGraph: a second graph, an early Program and an execution are refused.
func TestBackendHoldsOneGraph(t *testing.T) {
	b := stablehlo.New(sharding.Mesh{})
	_, err := b.Program()
	require.ErrorContains(t, err, "call Compile")
	g := graph.NewGraph(b, "first")
	require.NoError(t, g.Compile(graph.Neg(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2)))))
	p, err := b.Program()
	require.NoError(t, err)
	require.Equal(t, "first", p.Name)
	_, err = g.Executable().Execute(nil, nil, 0)
	require.ErrorContains(t, err, "PJRT")
	names, in := g.Executable().Inputs()
	require.Equal(t, []string{"x"}, names)
	require.Equal(t, []int{2}, in[0].Dimensions)
	require.Equal(t, []int{2}, g.Executable().Outputs()[0].Dimensions)
	second := graph.NewGraph(b, "second")
	require.PanicsWithError(t, `failed to create parameter "x": stablehlo: this backend already holds graph "first": make one with stablehlo.New for each graph`,
		func() { graph.Parameter(second, "x", shapes.Make(dtypes.Float32)) })
}

// TestNotImplemented: what is left out says so in the way that GoMLX looks for another way.
func TestNotImplemented(t *testing.T) {
	f := stablehlo.New(sharding.Mesh{}).Builder("g").Main()
	x, err := f.Parameter("x", shapes.Make(dtypes.Float32, 4), nil)
	require.NoError(t, err)
	for name, call := range map[string]func() error{
		"FFT":                   func() error { _, err := f.FFT(x, compute.FFTForward, []int{4}); return err },
		"Complex":               func() error { _, err := f.Complex(x, x); return err },
		"BatchNormForInference": func() error { _, err := f.BatchNormForInference(x, x, x, x, x, 0, 0); return err },
		"DynamicShape":          func() error { _, err := f.DynamicShape(x); return err },
		"FusedSoftmax":          func() error { _, err := f.FusedSoftmax(x, 0); return err },
		"AllReduce":             func() error { _, err := f.AllReduce([]compute.Value{x}, compute.ReduceOpSum, nil); return err },
	} {
		err := call()
		require.True(t, errors.Is(err, compute.ErrNotImplemented), "%s: %v", name, err)
		require.True(t, strings.HasPrefix(err.Error(), "stablehlo: "+name), "%v", err)
	}
}
