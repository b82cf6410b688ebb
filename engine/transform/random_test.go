package transform_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"pgregory.net/rapid"

	"weft/engine/internal/enginetest"
	"weft/engine/sharding"
	"weft/engine/transform"
	"weft/internal/property"
)

// step is one operation of a random program on h [rows, width].
type step struct {
	kind                     string
	weight                   int    // index of a closed-over weight
	inner                    []step // of checkpoint and scan
	length                   int
	remat                    transform.Remat
	reverse, readX, counter  bool
	unchanged, unused, emit  bool
	dropEmitted, passAsInput bool
}

func (s step) String() string {
	text := fmt.Sprintf("%s/%d", s.kind, s.weight)
	if s.inner != nil {
		text += fmt.Sprintf("%v", s.inner)
	}
	if s.kind == "scan" {
		text += fmt.Sprintf("{n=%d remat=%d reverse=%t x=%t counter=%t unchanged=%t unused=%t emit=%t drop=%t}", s.length, s.remat, s.reverse, s.readX,
			s.counter, s.unchanged, s.unused, s.emit, s.dropEmitted)
	}
	return text
}

func drawSteps(t *rapid.T, depth int) []step {
	kinds := []string{"tanh", "multiply", "sine", "custom", "constrain", "mask", "softmax", "constant"}
	if depth > 0 {
		kinds = append(kinds, "checkpoint", "scan", "scan", "checkpoint")
	}
	n := rapid.IntRange(1, 3).Draw(t, "steps")
	steps := make([]step, n)
	for i := range steps {
		s := step{kind: rapid.SampledFrom(kinds).Draw(t, "kind"), weight: rapid.IntRange(0, 1).Draw(t, "weight")}
		flip := func(name string) bool { return rapid.Bool().Draw(t, name) }
		if s.kind == "checkpoint" || s.kind == "scan" {
			s.inner = drawSteps(t, depth-1)
			s.passAsInput = flip("input")
		}
		if s.kind == "scan" {
			s.length = rapid.IntRange(1, 3).Draw(t, "length")
			s.remat = rapid.SampledFrom([]transform.Remat{transform.RematNone, transform.RematFull}).Draw(t, "remat")
			s.reverse, s.readX, s.counter = flip("reverse"), flip("x"), flip("counter")
			s.unchanged, s.unused, s.emit, s.dropEmitted = flip("unchanged"), flip("unused"), flip("emit"), flip("drop")
		}
		steps[i] = s
	}
	return steps
}

// world is what a random program can read.
type world struct {
	c       combinators
	weights []*node // [width, width]
	stack   *node   // [3, width, width]
	ids     *node   // int32 [3]
	split   bool    // constraints may split the rows
}

func (w world) apply(steps []step, h *node) *node {
	for _, s := range steps {
		h = w.one(s, h)
	}
	return h
}

func (w world) one(s step, h *node) *node {
	weight := w.weights[s.weight]
	switch s.kind {
	case "tanh":
		return graph.Tanh(dot(h, weight))
	case "multiply":
		return graph.Mul(h, row(graph.ReduceSum(weight, 0), h))
	case "sine":
		return graph.Add(graph.Sin(h), graph.MulScalar(h, 0.5))
	case "softmax":
		e := graph.Exp(graph.Sub(h, graph.StopGradient(graph.ReduceAndKeep(h, graph.ReduceMax, -1))))
		return graph.Mul(graph.Div(e, graph.ReduceAndKeep(e, graph.ReduceSum, -1)), dot(h, weight))
	case "mask":
		return graph.Where(graph.GreaterThan(h, graph.ZerosLike(h)), h, graph.MulScalar(h, 0.1))
	case "constant":
		iota := graph.ConvertDType(graph.Iota(h.Graph(), h.Shape(), 1), h.DType())
		return graph.Add(h, graph.MulScalar(iota, 0.1))
	case "constrain":
		if w.split && s.weight == 0 {
			return w.c.constrain(h, sharding.Split(2, 0, "fsdp"))
		}
		return w.c.constrain(h, sharding.Replicated())
	case "custom":
		return w.product(h, weight)
	case "checkpoint":
		if s.passAsInput {
			inner := w
			return w.c.checkpoint(func(in []*node) []*node {
				inner.weights = in[1:]
				return []*node{inner.apply(s.inner, in[0])}
			}, append([]*node{h}, w.weights...)...)[0]
		}
		return w.c.checkpoint(func(in []*node) []*node { return []*node{w.apply(s.inner, in[0])} }, h)[0]
	}
	return w.scan(s, h)
}

// product is h·weight with a gradient of its own, which reads the output too.
func (w world) product(h, weight *node) *node {
	fwd := func(in []*node) []*node {
		y := graph.Exp(graph.MulScalar(graph.Mul(in[0], in[0]), -1))
		return []*node{y, dot(in[0], in[1])}
	}
	bwd := func(in, out, cts []*node) []*node {
		viaExp := graph.MulScalar(graph.Mul(graph.Mul(cts[0], out[0]), in[0]), -2)
		dh := dot(cts[1], graph.Transpose(in[1], 0, 1))
		return []*node{graph.Add(viaExp, dh), dot(graph.Transpose(in[0], 0, 1), cts[1])}
	}
	outs := w.c.custom("product", fwd, bwd, h, weight)
	return graph.Add(outs[0], outs[1])
}

func (w world) scan(s step, h *node) *node {
	g := h.Graph()
	carry := []*node{h}
	var xs []*node
	if s.readX {
		xs = append(xs, graph.Slice(w.stack, graph.AxisRange(0, s.length)), graph.Slice(w.ids, graph.AxisRange(0, s.length)))
	}
	if s.counter {
		carry = append(carry, graph.Const(g, int32(1)))
	}
	if s.unchanged {
		carry = append(carry, graph.MulScalar(h, 0.25))
	}
	if s.unused {
		carry = append(carry, graph.Sin(h))
	}
	body := func(in, slices []*node) ([]*node, []*node) {
		out, next := append([]*node{}, in...), 1
		inner := w
		x := in[0]
		if s.readX {
			inner.weights = []*node{slices[0], w.weights[s.weight]}
			x = graph.Add(x, graph.MulScalar(graph.ConvertDType(slices[1], x.DType()), 0.1))
		}
		y := inner.apply(s.inner, x)
		if s.counter {
			y = graph.Mul(y, graph.Reciprocal(graph.ConvertDType(in[next], y.DType())))
			out[next] = graph.AddScalar(in[next], 1)
			next++
		}
		if s.unchanged {
			y = graph.Add(y, in[next])
			next++
		}
		if s.unused { // written, never read
			out[next] = graph.Cos(y)
		}
		out[0] = y
		if s.emit {
			return out, []*node{graph.Mul(y, x), graph.ConvertDType(graph.GreaterThan(y, x), dtypes.Int32)}
		}
		return out, nil
	}
	out, ys := w.c.scan(body, carry, xs, transform.ScanOptions{Length: s.length, Remat: s.remat, Reverse: s.reverse})
	h = out[0]
	if s.emit && !s.dropEmitted {
		h = graph.Add(h, graph.ReduceMean(ys[0], 0))
	}
	if s.unchanged {
		h = graph.Sub(h, out[len(out)-1-map[bool]int{true: 1}[s.unused]])
	}
	return h
}

func randomProgram(steps []step, split bool) program {
	return func(c combinators, xs []*node) []*node {
		w := world{c: c, weights: xs[1:3], stack: xs[3], ids: xs[4], split: split}
		return []*node{w.apply(steps, xs[0])}
	}
}

func randomInputs(seed, rows, width int) []*tensors.Tensor {
	return []*tensors.Tensor{
		enginetest.Random(seed, rows, width), enginetest.Random(seed+1, width, width), enginetest.Random(seed+2, width, width),
		enginetest.Random(seed+3, 3, width, width), tensors.FromFlatDataAndDimensions([]int32{2, 0, 1}, 3),
	}
}

func TestRandomProgramsOnThePlugin(t *testing.T) {
	client := enginetest.Client(t)
	property.Check(t, func(t *rapid.T) {
		steps := drawSteps(t, 2)
		rows, width := rapid.IntRange(1, 3).Draw(t, "rows"), rapid.IntRange(1, 4).Draw(t, "width")
		agree(t, client, randomProgram(steps, false), 2e-5, fmt.Sprint(steps), randomInputs(rapid.IntRange(1, 1000).Draw(t, "seed"), rows, width)...)
	})
}

func TestRandomProgramsOnTwoDevices(t *testing.T) {
	client := enginetest.Client(t)
	mesh := sharding.Mesh{Name: "mesh", Axes: []sharding.Axis{{Name: "fsdp", Size: 2}}}
	property.Check(t, func(t *rapid.T) {
		steps := append(drawSteps(t, 2), step{kind: "constrain"})
		inputs := randomInputs(rapid.IntRange(1, 1000).Draw(t, "seed"), 2*rapid.IntRange(1, 2).Draw(t, "rows"), 3)
		want := enginetest.Run(t, client, oneDevice, withGradients(plain, randomProgram(steps, true)), inputs...)
		got := enginetest.Run(t, client, mesh, withGradients(ours, randomProgram(steps, true)), inputs...)
		enginetest.Close(t, want, got, 2e-5, fmt.Sprint(steps))
	})
}

// The pure-Go backend has no DynamicSlice, hence no scans, but runs everything else.
func TestRandomProgramsWithoutScansInPureGo(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		steps := withoutScans(drawSteps(t, 2))
		inputs := randomInputs(rapid.IntRange(1, 1000).Draw(t, "seed"), 2, 3)
		want := enginetest.RunGo(t, withGradients(plain, randomProgram(steps, false)), inputs...)
		got := enginetest.RunGo(t, withGradients(ours, randomProgram(steps, false)), inputs...)
		enginetest.Close(t, want, got, 2e-5, fmt.Sprint(steps))
	})
}

func withoutScans(steps []step) []step {
	for i := range steps {
		if steps[i].kind == "scan" {
			steps[i].kind = "checkpoint"
		}
		steps[i].inner = withoutScans(steps[i].inner)
	}
	return steps
}
