package stablehlo_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/internal/golden"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// trainingStep is a two-layer network in bf16 with float32 weights, its cross-entropy and an update by momentum.
func trainingStep(g *graph.Graph) []*graph.Node {
	b := stablehlo.Of(g)
	split := sharding.Split(2, 0, "fsdp")
	param := func(name string, spec sharding.Spec, dtype dtypes.DType, dims ...int) *graph.Node {
		b.ShardParameter(name, spec)
		return graph.Parameter(g, name, shapes.Make(dtype, dims...))
	}
	weights := []*graph.Node{param("w0", split, dtypes.Float32, 16, 8), param("w1", split, dtypes.Float32, 8, 4)}
	moments := []*graph.Node{param("m0", split, dtypes.Float32, 16, 8), param("m1", split, dtypes.Float32, 8, 4)}
	x, labels := param("x", split, dtypes.Float32, 4, 16), param("labels", sharding.Split(1, 0, "fsdp"), dtypes.Int32, 4)
	rate := param("rate", nil, dtypes.Float32)

	bf16 := func(n *graph.Node) *graph.Node { return graph.ConvertDType(n, dtypes.BFloat16) }
	dot := func(a, b *graph.Node) *graph.Node {
		return graph.Dot(a, b).WithAccumulatorDType(dtypes.InvalidDType).WithOutputDType(dtypes.Float32).Product()
	}
	hidden := graph.Tanh(dot(bf16(x), bf16(weights[0])))
	logits := dot(bf16(hidden), bf16(weights[1]))
	logits = graph.Sub(logits, graph.InsertAxes(graph.ReduceMax(logits, 1), 1))
	logNorm := graph.Log(graph.ReduceSum(graph.Exp(logits), 1))
	picked := graph.ReduceSum(graph.Mul(logits, graph.OneHot(labels, 4, dtypes.Float32)), 1)
	loss := graph.ReduceAllMean(graph.Sub(logNorm, picked))

	outputs, specs := []*graph.Node{loss}, []sharding.Spec{nil}
	for i, grad := range graph.Gradient(loss, weights...) {
		moment := graph.Add(graph.MulScalar(moments[i], 0.9), constrain(grad, split))
		outputs = append(outputs, graph.Sub(weights[i], graph.Mul(rate, moment)), moment)
		specs = append(specs, split, split)
		b.Donate([]string{"w0", "w1"}[i], 1+2*i)
		b.Donate([]string{"m0", "m1"}[i], 2+2*i)
	}
	b.ShardOutputs(specs)
	return outputs
}

// TestGoldenTrainingStep holds the text of one small training step, and builds it twice.
func TestGoldenTrainingStep(t *testing.T) {
	m := mesh(t, sharding.Axis{Name: "fsdp", Size: devices})
	first, err := stablehlo.Build(m, "training step", trainingStep)
	require.NoError(t, err)
	golden.Equal(t, "training_step.mlir", first.Text)
	for range 3 {
		again, err := stablehlo.Build(m, "training step", trainingStep)
		require.NoError(t, err)
		require.Equal(t, string(first.Text), string(again.Text), "the same graph must give the same bytes")
	}
	compile(t, cpuClient(t), first).destroy()
}

var controlTable = []float32{0.1, 1, -0.5, 2}

// TestGoldenControl holds the text of calls, nested loops, branches, sorts and constants, and runs it.
func TestGoldenControl(t *testing.T) {
	p, err := stablehlo.Build(sharding.Mesh{}, "control", controlGraph)
	require.NoError(t, err)
	golden.Equal(t, "control.mlir", p.Text)
	exe := compile(t, cpuClient(t), p)
	defer exe.destroy()
	x := []float32{0.25, -1, 2, 0.5}
	for _, flag := range []bool{false, true} {
		got := exe.run(t, fromSlice(x, 4), fromSlice([]bool{flag}))
		want := make([]float32, 4)
		for i, v := range x {
			for range 3 {
				shifted := v + x[i]*x[i]
				if !flag {
					v = 2 * x[i]
					continue
				}
				for range 2 {
					v = (v + shifted) * controlTable[i]
				}
			}
			want[i] = v
		}
		require.InDeltaSlice(t, want, got[0].tensor().Value(), 1e-5)
		slices.Sort(want)
		slices.Reverse(want)
		require.InDeltaSlice(t, want, got[1].tensor().Value(), 1e-5)
		require.Equal(t, int32(2), got[2].tensor().Value())
	}
}

// controlGraph nests a loop in a branch in a loop; all of them read values of the scopes around.
func controlGraph(g *graph.Graph) []*graph.Node {
	x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4))
	flag := graph.Parameter(g, "a \"quoted\"\nflag", shapes.Make(dtypes.Bool))
	graph.Exp(x) // leads nowhere: it must not be written
	twice := graph.NewFunction(g, "twice", func(g *graph.Graph) []*graph.Node {
		a := graph.Parameter(g, "a", x.Shape())
		return []*graph.Node{graph.Add(a, a), graph.Mul(a, a)}
	})
	graph.NewFunction(g, "never called", func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.Neg(graph.Parameter(g, "a", x.Shape()))}
	})
	called := twice.Call(x)
	table := graph.Const(g, controlTable)
	out := loop(g, 3, func(g *graph.Graph, v []*graph.Node) []*graph.Node {
		shifted := graph.Add(v[0], called[1])
		yes := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
			return loop(g, 2, func(_ *graph.Graph, v []*graph.Node) []*graph.Node {
				return []*graph.Node{graph.Mul(graph.Add(v[0], shifted), table)}
			}, v[0])
		})
		no := graph.NewClosure(g, func(*graph.Graph) []*graph.Node { return []*graph.Node{called[0]} })
		return graph.If(flag, yes, no)
	}, x)
	return []*graph.Node{out[0], graph.Sort(out[0], 0, false), graph.ArgMax(x, 0)}
}
