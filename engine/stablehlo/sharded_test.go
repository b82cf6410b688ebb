package stablehlo_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/internal/golden"
	"weft/internal/property"
)

func mesh(t testing.TB, axes ...sharding.Axis) sharding.Mesh {
	t.Helper()
	m, err := sharding.NewMesh(axes...)
	require.NoError(t, err)
	return m
}

// constrain is a call of a constraint function, which any backend runs as the identity.
func constrain(x *graph.Node, spec sharding.Spec) *graph.Node {
	g := x.Graph()
	f := graph.NewFunction(g, stablehlo.ConstraintName(spec, g.UniqueName("c")), func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.Parameter(g, "x", x.Shape())}
	})
	return f.Call(x)[0]
}

// shardedStep is an update of a split weight from a split batch, in a loop that constrains its state.
func shardedStep(g *graph.Graph, w, x *graph.Node) []*graph.Node {
	steps := loop(g, 3, func(_ *graph.Graph, v []*graph.Node) []*graph.Node {
		y := constrain(graph.Dot(x, v[0]).Product(), sharding.Split(2, 0, "data"))
		grad := graph.Dot(graph.Transpose(x, 0, 1), graph.Tanh(y)).Product()
		next := graph.Sub(v[0], graph.MulScalar(grad, 0.125))
		return []*graph.Node{constrain(next, sharding.Split(2, 0, "fsdp"))}
	}, w)
	loss := graph.ReduceAllSum(graph.Dot(x, steps[0]).Product())
	return []*graph.Node{steps[0], loss}
}

// TestGoldenSharded runs one program split over 2x2 devices, with donation, against the oracle.
func TestGoldenSharded(t *testing.T) {
	c := cpuClient(t)
	m := mesh(t, sharding.Axis{Name: "data", Size: 2}, sharding.Axis{Name: "fsdp", Size: 2})
	d := &drawer{rng: newRand(5), largest: 4}
	w, x := d.fill(dtypes.Float32, []int{8, 4}, -1, 1), d.fill(dtypes.Float32, []int{8, 8}, -1, 1)
	program, err := stablehlo.Build(m, "sharded", func(g *graph.Graph) []*graph.Node {
		b := stablehlo.Of(g)
		b.ShardParameter("w", sharding.Split(2, 0, "fsdp"))
		b.ShardParameter("x", sharding.Split(2, 0, "data", "fsdp"))
		b.ShardOutputs([]sharding.Spec{sharding.Split(2, 0, "fsdp"), nil})
		b.Donate("w", 0)
		return shardedStep(g, graph.Parameter(g, "w", w.shape), graph.Parameter(g, "x", x.shape))
	})
	require.NoError(t, err)
	require.Equal(t, 0, program.Inputs[0].DonatedTo)
	require.Equal(t, -1, program.Inputs[1].DonatedTo)
	golden.Equal(t, "sharded.mlir", program.Text)
	exe := compile(t, c, program)
	defer exe.destroy()
	got := exe.run(t, w, x)
	want := runGo(t, func(g *graph.Graph, xs []*graph.Node) []*graph.Node { return shardedStep(g, xs[0], xs[1]) }, w, x)
	for i := range want {
		require.NoError(t, compareArrays(got[i], want[i], 1e-4), "output %d", i)
	}
}

// quoted is a string of the program's text.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// TestConstraintNames come back as they were; others are refused.
func TestConstraintNames(t *testing.T) {
	build := func(m sharding.Mesh, name string, rank int) (string, error) {
		p, err := stablehlo.Build(m, "g", func(g *graph.Graph) []*graph.Node {
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, make([]int, rank)...))
			f := graph.NewFunction(g, name, func(g *graph.Graph) []*graph.Node {
				return []*graph.Node{graph.Parameter(g, "x", x.Shape())}
			})
			return f.Call(x)
		})
		if err != nil {
			return "", err
		}
		return string(p.Text), nil
	}
	property.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 6, -1), 1, 3, rapid.ID[string]).Draw(rt, "axes")
		var axes []sharding.Axis
		for _, n := range names {
			axes = append(axes, sharding.Axis{Name: n, Size: 2})
		}
		spec := make(sharding.Spec, rapid.IntRange(1, 3).Draw(rt, "rank"))
		for _, n := range names {
			d := rapid.IntRange(0, len(spec)).Draw(rt, "dimension")
			if d < len(spec) {
				spec[d] = append(spec[d], n)
			}
		}
		m := mesh(t, axes...)
		text, err := build(m, stablehlo.ConstraintName(spec, rapid.String().Draw(rt, "unique")), len(spec))
		require.NoError(rt, err)
		line := text[strings.Index(text, "sdy.sharding_constraint"):]
		line = line[:strings.Index(line, "\n")]
		line = quoted.ReplaceAllString(line, "") // an axis may be called {
		require.Equal(rt, len(spec), strings.Count(line[:strings.LastIndex(line, "]")], "{"))
	})
	for _, bad := range []string{"sdy.constraint", "sdy.constraint[{fsdp}]", "sdy.constraint{fsdp}#x", "sdy.constraint[{fsdp]#x", "sdy.constraint[{,}]#x", "sdy.constraint[{a b}]#x"} {
		_, err := build(mesh(t, sharding.Axis{Name: "fsdp", Size: 2}), bad, 1)
		require.ErrorContains(t, err, "rename the function", bad)
	}
}
