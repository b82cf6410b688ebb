package transform_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine/internal/enginetest"
	"weft/engine/transform"
)

// lowered is the program's text, and the types of each loop's state.
func lowered(t *testing.T, build enginetest.BuildFunc) (text string, loops []string) {
	t.Helper()
	in := enginetest.Random
	p := enginetest.Lower(t, oneDevice, build, in(1, 2, 3), in(2, 5, 3, 3), in(3, 3, 3), in(4, 5, 3, 3))
	text = string(p.Text)
	for _, m := range regexp.MustCompile(`stablehlo\.while\(.*\) : (.*)`).FindAllStringSubmatch(text, -1) {
		loops = append(loops, strings.NewReplacer("tensor<", "", ">", "").Replace(m[1]))
	}
	return text, loops
}

func dots(text string) int { return strings.Count(text, "stablehlo.dot_general") }

// Inputs are x [2,3], ws [5,3,3], w [3,3], vs [5,3,3]. The step is h' = tanh(h·w_i)·(v_i + tanh(w·w)).
func scanned(remat transform.Remat, differentiate bool) enginetest.BuildFunc {
	return func(g *graph.Graph, in []*node) []*node {
		out, _ := transform.Scan(func(c, xs []*node) ([]*node, []*node) {
			invariant := graph.Tanh(dot(in[2], in[2]))
			return nodes(dot(graph.Tanh(dot(c[0], xs[0])), graph.Add(xs[1], invariant))), nil
		}, in[:1], nodes(in[1], in[3]), transform.ScanOptions{Remat: remat})
		if !differentiate {
			return out
		}
		return graph.Gradient(total(out[0]), in...)
	}
}

func TestWhatScanKeeps(t *testing.T) {
	for _, c := range []struct {
		name              string
		remat             transform.Remat
		forward, backward string
		dots              int
	}{
		// Forward: step, h, stack of the h, ws, vs, w. Backward: step, ct of h, sum for w, two gradient buffers, ws, vs,
		// stack of the h, w. Products: 3 forward, 3-1 again (the last one is not needed), 6 for gradients.
		{"full", transform.RematFull,
			"i32, 2x3xf32, 5x2x3xf32, 5x3x3xf32, 5x3x3xf32, 3x3xf32",
			"i32, 2x3xf32, 3x3xf32, 5x3x3xf32, 5x3x3xf32, 5x3x3xf32, 5x3x3xf32, 5x2x3xf32, 3x3xf32", 3 + 2 + 6},
		// The invariant tanh(w·w) is computed before the loop and not stacked; h and tanh(h·w_i) are, and the sum that
		// multiplies it. Products: 3 forward, 6 for gradients.
		{"none", transform.RematNone,
			"i32, 2x3xf32, 5x2x3xf32, 5x2x3xf32, 5x3x3xf32, 5x3x3xf32, 5x3x3xf32, 3x3xf32",
			"i32, 2x3xf32, 3x3xf32, 5x3x3xf32, 5x3x3xf32, 5x3x3xf32, 5x2x3xf32, 5x2x3xf32, 5x3x3xf32, 3x3xf32, 3x3xf32", 3 + 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, loops := lowered(t, scanned(c.remat, true))
			require.Equal(t, []string{c.forward, c.backward}, loops, text)
			require.Equal(t, c.dots, dots(text), text)
		})
	}
}

// Weights are prepared again from the xs rather than stacked, whatever Remat says, unless they are to be kept.
func TestPreparedWeightsAreStackedOnRequest(t *testing.T) {
	for _, c := range []struct {
		name              string
		keep              func(*node) *node
		again             bool // the product in the backward pass
		forward, backward string
	}{
		// The carry is stacked as the product reads it, in bfloat16.
		{"prepared again", graph.Identity, false, "i32, 2x3xf32, 5x2x3xbf16, 5x3x3xf32", "i32, 2x3xf32, 5x3x3xf32, 5x3x3xf32, 5x2x3xbf16"},
		{"kept", transform.Keep, false, "i32, 2x3xf32, 5x3x3xbf16, 5x2x3xbf16, 5x3x3xf32", "i32, 2x3xf32, 5x3x3xf32, 5x3x3xbf16, 5x2x3xbf16"},
		// Here the carry is stacked as the checkpoint reads it.
		{"kept outside of a checkpoint", transform.Keep, true, "i32, 2x3xf32, 5x2x3xf32, 5x3x3xbf16, 5x3x3xf32", "i32, 2x3xf32, 5x3x3xf32, 5x2x3xf32, 5x3x3xbf16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, loops := lowered(t, func(g *graph.Graph, in []*node) []*node {
				out, _ := transform.Scan(func(carry, xs []*node) ([]*node, []*node) {
					w := c.keep(transform.Constrain(graph.ConvertDType(graph.Transpose(xs[0], 0, 1), dtypes.BFloat16), nil))
					product := func(in []*node) []*node {
						return nodes(graph.ConvertDType(dot(graph.ConvertDType(in[0], dtypes.BFloat16), w), dtypes.Float32))
					}
					if c.again {
						return transform.Checkpoint(product, carry[0]), nil
					}
					return product(carry), nil
				}, in[:1], in[1:2], transform.ScanOptions{})
				return graph.Gradient(total(out[0]), in[:2]...)
			})
			require.Equal(t, []string{c.forward, c.backward}, loops)
		})
	}
}

func TestWhatCheckpointComputesAgain(t *testing.T) {
	build := func(c combinators) enginetest.BuildFunc {
		return func(g *graph.Graph, in []*node) []*node {
			h := in[0]
			for range 3 {
				h = c.checkpoint(func(v []*node) []*node { return nodes(dot(graph.Tanh(dot(v[0], in[2])), in[2])) }, h)[0]
			}
			return graph.Gradient(total(h), in[0], in[2])
		}
	}
	without, _ := lowered(t, build(plain))
	with, _ := lowered(t, build(ours))
	require.Equal(t, 3*(2+4), dots(without))
	require.Equal(t, 3*(2+1+4), dots(with), "the second product of a block need not be computed again")
	// Each barrier holds the block's input, the closed-over weight and the cotangent.
	barriers := regexp.MustCompile(`optimization_barrier .* : (.*)`).FindAllStringSubmatch(with, -1)
	require.Len(t, barriers, 3)
	for _, b := range barriers {
		require.ElementsMatch(t, []string{"tensor<2x3xf32>", "tensor<3x3xf32>", "tensor<2x3xf32>"}, strings.Split(b[1], ", "))
	}
}

// The carriers of gradients leave nothing in the program, nor do traces.
func TestProgramsHoldNoTraces(t *testing.T) {
	text, _ := lowered(t, scanned(transform.RematNone, false))
	require.NotContains(t, text, "func.call")
	require.NotContains(t, text, "func.func private")
	require.Equal(t, 3, dots(text), text)
}

// A body that GoMLX cannot differentiate runs; only its gradient is refused.
func TestScanOfABodyWithoutGradient(t *testing.T) {
	sorted := func(in []*node) *node {
		out, _ := transform.Scan(func(c, xs []*node) ([]*node, []*node) {
			return nodes(graph.Sort(dot(c[0], xs[0]), 1, true)), nil
		}, in[:1], in[1:2], transform.ScanOptions{})
		return out[0]
	}
	text, _ := lowered(t, func(g *graph.Graph, in []*node) []*node { return nodes(sorted(in)) })
	require.Contains(t, text, "stablehlo.sort")
	requirePanic(t, "Sort", func(g *graph.Graph, in []*node) []*node { return graph.Gradient(total(sorted(in)), in[0]) })
}

// The rule is found by the function's name in a node's text, which an alias must not disturb.
func TestAliasesDoNotHideRules(t *testing.T) {
	text, _ := lowered(t, func(g *graph.Graph, in []*node) []*node {
		h := transform.CustomVJP("zero, 1 inputs) Call(", func(v []*node) []*node { return nodes(graph.Sin(v[0])) },
			func(in, _, cts []*node) []*node { return nodes(graph.Neg(cts[0])) }, in[0])[0]
		return graph.Gradient(total(h.WithAlias(`x"] Call(other, 2 inputs) ["`)), in[0])
	})
	require.Equal(t, 1, strings.Count(text, "stablehlo.negate"), text)
}

// Rules live as long as their graph and no longer.
func TestDeadGraphsAreCollected(t *testing.T) {
	var graphs []weak.Pointer[graph.Graph]
	var payloads []weak.Pointer[[1 << 16]byte]
	for range 5 {
		g := graph.NewGraph(enginetest.Oracle(), "dead")
		in := nodes(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2, 3)), graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 3, 3)))
		held := new([1 << 16]byte)
		h := transform.Checkpoint(func(v []*node) []*node { return nodes(graph.Tanh(dot(v[0], v[1]))) }, in...)
		h = transform.CustomVJP("held", func(v []*node) []*node { return v }, func(_, _, cts []*node) []*node { held[0]++; return cts }, h...)
		graph.Gradient(total(transform.Constrain(h[0], nil)), in...)
		require.EqualValues(t, 1, held[0])
		graphs, payloads = append(graphs, weak.Make(g)), append(payloads, weak.Make(held))
	}
	for range 5 {
		runtime.GC()
	}
	for i := range graphs {
		require.Nil(t, graphs[i].Value(), "graph %d is still reachable", i)
		require.Nil(t, payloads[i].Value(), "what the rule of graph %d closes over is still reachable", i)
	}
}

// requirePanic builds on inputs x [2,3], ws [5,3,3], w [3,3], vs [5,3,3] and wants the error's text.
func requirePanic(t *testing.T, want string, build enginetest.BuildFunc) {
	t.Helper()
	err := buildError(build)
	require.Error(t, err)
	require.Contains(t, err.Error(), want)
}
