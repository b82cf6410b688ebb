package transform

import (
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"

	"weft/engine/sharding"
)

// Remat says what the backward pass of a Scan computes again.
type Remat int

const (
	// RematNone stacks, over the steps, those values of the body that its gradient reads; no matrix product is
	// computed twice. Reshapes, transposes, broadcasts and conversions of such values, and weights prepared
	// from xs and closed-over values by them and by constraints alone, are made again rather than stacked; Keep
	// makes an exception.
	RematNone Remat = iota
	// RematFull keeps the carries and xs only; the backward body computes the rest again.
	RematFull
)

// ScanOptions are the options of Scan.
type ScanOptions struct {
	// Length is the number of steps, needed when there are no xs; else 0 or the length of the xs.
	Length int
	// Remat is what the backward pass computes again.
	Remat Remat
	// Reverse runs from the last slice to the first; ys keep the order of the xs.
	Reverse bool
	// XsSpecs are the shardings of the stacked xs, one each or none; nil where nothing is to be said. They constrain
	// the slice of each step, the gradient of the slice and the buffer that collects the gradients, so that the
	// gradient of a sharded weight is never whole on one device.
	XsSpecs []sharding.Spec
}

// Scan runs body once for each slice of xs along axis 0, as one loop whose size in the program does not depend on the
// number of steps: carry, ys[i] = body(carry, xs[i]). It returns the last carry and the ys, stacked on a new axis 0.
//
// body must return carries of the shapes and dtypes that it got. It is called once. Nodes that it closes over are
// found and passed to the loop; their gradients are summed over the steps, in float32 if their dtype is shorter.
// A carry that body returns untouched costs nothing.
func Scan(body func(carry, xs []*graph.Node) (newCarry, ys []*graph.Node), carry, xs []*graph.Node, o ScanOptions) (carryOut, ys []*graph.Node) {
	n := checkScan(carry, xs, o)
	if len(carry)+len(xs) == 0 {
		exceptions.Panicf("transform.Scan: neither carry nor xs given: give at least one")
	}
	g := concat(carry, xs)[0].Graph()
	first := mark(g)
	carryIn := placeholders(carry)
	slicesIn := make([]*graph.Node, len(xs))
	for i, x := range xs {
		slicesIn[i] = graph.Reshape(graph.Slice(x, graph.AxisElem(0)), x.Shape().Dimensions[1:]...)
	}
	since := mark(g)
	newCarry, ys := body(concat(carryIn), concat(slicesIn))
	checkCarry(carryIn, newCarry, ys)

	carryOut = concat(carry)
	s := &scan{g: g, n: n, o: o, first: first, xs: len(xs)}
	var values, params, outs []*graph.Node
	var changed []int // the carries that body changes
	for i := range carry {
		if newCarry[i] != carryIn[i] {
			changed = append(changed, i)
			values, params, outs = append(values, carry[i]), append(params, carryIn[i]), append(outs, newCarry[i])
		}
	}
	s.carries = len(changed)
	if outs = append(outs, ys...); len(outs) == 0 {
		return carryOut, nil
	}
	rec, captured := newRecord(outs, append(params, slicesIn...), since)
	values = append(values, xs...)
	for _, c := range captured {
		if i := slices.Index(carryIn, c); i >= 0 {
			c = carry[i] // an unchanged carry
		}
		values = append(values, c)
	}
	results := s.build(rec, values)
	for k, i := range changed {
		carryOut[i] = results[k]
	}
	return carryOut, results[s.carries:]
}

// checkScan validates what does not need the body, and returns the number of steps.
func checkScan(carry, xs []*graph.Node, o ScanOptions) int {
	checkNodes("transform.Scan", "carry", carry)
	checkNodes("transform.Scan", "x", xs)
	n := o.Length
	for i, x := range xs {
		if x.Rank() == 0 {
			exceptions.Panicf("transform.Scan: x %d is a scalar: xs are sliced along axis 0", i)
		}
		if n == 0 {
			n = x.Shape().Dimensions[0]
		}
		if x.Shape().Dimensions[0] != n {
			exceptions.Panicf("transform.Scan: x %d is %s: axis 0 must be %d, the number of steps", i, x.Shape(), n)
		}
	}
	if n < 1 {
		exceptions.Panicf("transform.Scan: %d steps: give xs with at least one slice, or Length", n)
	}
	if len(o.XsSpecs) > 0 && len(o.XsSpecs) != len(xs) {
		exceptions.Panicf("transform.Scan: %d XsSpecs for %d xs: give one for each, nil where nothing is to be said", len(o.XsSpecs), len(xs))
	}
	for i, spec := range o.XsSpecs {
		if len(spec.Axes(0)) > 0 {
			exceptions.Panicf("transform.Scan: XsSpecs[%d] = %v splits axis 0, which is the axis of the steps: split another one", i, spec)
		}
		if len(spec) > xs[i].Rank() {
			exceptions.Panicf("transform.Scan: XsSpecs[%d] = %v has %d dimensions, x %d is %s", i, spec, len(spec), i, xs[i].Shape())
		}
	}
	return n
}

// checkCarry reports a body that does not keep the carries' number, shapes and dtypes.
func checkCarry(in, out, ys []*graph.Node) {
	if len(out) != len(in) {
		exceptions.Panicf("transform.Scan: the body returns %d carries, it got %d", len(out), len(in))
	}
	checkNodes("transform.Scan", "returned carry", out)
	checkNodes("transform.Scan", "returned y", ys)
	for i := range in {
		if !out[i].Shape().Equal(in[i].Shape()) {
			exceptions.Panicf("transform.Scan: the body returns carry %d as %s, it got %s: shape and dtype must stay the same", i, out[i].Shape(), in[i].Shape())
		}
	}
}

// scan is one Scan: its body as a trace in the enclosing function, with all that the backward pass needs to know.
// The trace is never part of the program: loops are built from records of it.
type scan struct {
	g           *graph.Graph
	n           int
	o           ScanOptions
	carries, xs int
	first       graph.NodeId // of the trace of body
	since, end  graph.NodeId // the body's nodes in the trace are in [since, end)

	// params of the trace: carries, slices of the xs, captured values. outs: new carries, ys.
	params, outs []*graph.Node
	// cotangents stand for those of outs; nil for an output that has none.
	cotangents []*graph.Node
	// grads of params, by the cotangents that they were pulled back from.
	grads map[string][]*graph.Node
	// notDifferentiable is the panic of a body without gradient; it is raised when a gradient is asked for.
	notDifferentiable any

	// residuals are the nodes of the trace that the forward loop stacks for the backward one, invariants those that
	// do not change from step to step and are computed once, before the loop.
	residuals, invariants []*graph.Node
}

// build traces the body once more, on params that do not depend on each other, plans what to keep, and makes the
// forward loop. values are the actual carries, stacked xs and captured values.
func (s *scan) build(body *record, values []*graph.Node) []*graph.Node {
	s.params = placeholders(body.params)
	s.since = mark(s.g)
	s.outs = body.replay(s.g, s.params)
	s.end = mark(s.g)
	s.plan()

	stacks := s.stackedOnly()
	forward, _ := newRecord(concat(s.outs, stacks), concat(s.params, s.invariants), s.since)
	once, _ := newRecord(s.invariants, s.params, s.since)
	inv := once.replay(s.g, values)
	l := &loop{n: s.n, reverse: s.o.Reverse, body: forward, carries: s.carries, xs: s.xs, xSpecs: s.o.XsSpecs}
	results := l.build(s.g, concat(values, inv))
	outs, kept := results[:len(s.outs)], results[len(s.outs):]
	r := &rule{what: "transform.Scan", backward: s.backward}
	return passThrough(r, values, concat(kept, inv), outs)
}

// stackedOnly are the residuals that are not stacked as ys anyway.
func (s *scan) stackedOnly() []*graph.Node {
	var out []*graph.Node
	for _, r := range s.residuals {
		if !slices.Contains(s.outs[s.carries:], r) {
			out = append(out, r)
		}
	}
	return out
}

// stacks are the stacked values of the residuals, given what the forward loop kept and returned.
func (s *scan) stacks(saved, out []*graph.Node) []*graph.Node {
	stacks := make([]*graph.Node, len(s.residuals))
	next := 0
	for i, r := range s.residuals {
		if j := slices.Index(s.outs[s.carries:], r); j >= 0 {
			stacks[i] = out[s.carries+j]
			continue
		}
		stacks[i] = saved[next]
		next++
	}
	return stacks
}
