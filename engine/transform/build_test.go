package transform_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
	"weft/engine/stablehlo"
	"weft/engine/transform"
)

// layer is about as large as a decoder layer: 10 products, each with a norm and an activation.
func layer(c combinators, h *node, w []*node) *node {
	for _, w := range w {
		mean := graph.ReduceAndKeep(graph.Mul(h, h), graph.ReduceMean, -1)
		n := graph.Mul(graph.Div(h, graph.Sqrt(graph.AddScalar(mean, 1e-6))), row(graph.ReduceSum(w, 0), h))
		n = c.constrain(n, sharding.Replicated())
		h = graph.Add(h, graph.Tanh(world{c: c}.product(n, w)))
	}
	return h
}

const layers, weights = 35, 10

func buildUnrolled(g *graph.Graph) []*node {
	h := graph.Parameter(g, "h", shapes.Make(dtypes.Float32, 8, 16))
	var ws []*node
	for l := range layers {
		var own []*node
		for i := range weights {
			own = append(own, graph.Parameter(g, fmt.Sprintf("w%d.%d", l, i), shapes.Make(dtypes.Float32, 16, 16)))
		}
		h = transform.Checkpoint(func(in []*node) []*node { return []*node{layer(ours, in[0], in[1:])} }, append([]*node{h}, own...)...)[0]
		ws = append(ws, own...)
	}
	return graph.Gradient(total(h), ws...)
}

func buildScanned(remat transform.Remat) func(g *graph.Graph) []*node {
	return func(g *graph.Graph) []*node {
		h := graph.Parameter(g, "h", shapes.Make(dtypes.Float32, 8, 16))
		const groups = 8
		var all []*node
		for group := range groups {
			var ws []*node
			for i := range weights {
				ws = append(ws, graph.Parameter(g, fmt.Sprintf("w%d.%d", group, i), shapes.Make(dtypes.Float32, 4, 16, 16)))
			}
			out, _ := transform.Scan(func(c, w []*node) ([]*node, []*node) { return []*node{layer(ours, c[0], w)}, nil }, []*node{h}, ws,
				transform.ScanOptions{Remat: remat})
			h = out[0]
			all = append(all, ws...)
		}
		return graph.Gradient(total(h), all...)
	}
}

// The same graph gives the same program, whatever the order in which maps are walked.
func TestProgramsAreReproducible(t *testing.T) {
	for name, build := range map[string]func(*graph.Graph) []*node{
		"unrolled": buildUnrolled, "scan none": buildScanned(transform.RematNone), "scan full": buildScanned(transform.RematFull),
	} {
		first, err := stablehlo.Build(oneDevice, "step", build)
		require.NoError(t, err, name)
		second, err := stablehlo.Build(oneDevice, "step", build)
		require.NoError(t, err, name)
		require.Equal(t, string(first.Text), string(second.Text), name)
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct {
		name  string
		build func(*graph.Graph) []*node
	}{{"unrolled", buildUnrolled}, {"scan-none", buildScanned(transform.RematNone)}, {"scan-full", buildScanned(transform.RematFull)}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				nodes := 0
				p, err := stablehlo.Build(oneDevice, "step", func(g *graph.Graph) []*node {
					outs := c.build(g)
					nodes = len(g.Nodes())
					return outs
				})
				require.NoError(b, err)
				b.ReportMetric(float64(len(p.Text)), "text-bytes")
				b.ReportMetric(float64(nodes), "nodes")
			}
		})
	}
}
