package transform

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"

	"weft/engine/sharding"
)

// backward is the rule of a Scan: one loop in the other direction, whose carries are the cotangents of the carries
// and the sums of the captured values' gradients, and whose ys are the gradients of the xs.
func (s *scan) backward(in, saved, out, cotangents []*graph.Node) []*graph.Node {
	if s.notDifferentiable != nil {
		panic(s.notDifferentiable)
	}
	active, grads := s.active(cotangents)
	b := &backwardLoop{scan: s, grads: make([]*graph.Node, len(in))}
	kept := len(s.stackedOnly())
	b.addCarries(active, grads, cotangents)
	b.addSums(grads)
	b.addXs(in, grads)
	b.stepInputs(s.residuals, s.stacks(saved[:kept], out), nil)
	for i := s.carries; i < len(s.outs); i++ {
		if active[i] {
			b.stepInputs([]*graph.Node{s.cotangents[i]}, []*graph.Node{cotangents[i]}, nil)
		}
	}
	if len(b.outs)+len(b.ys) == 0 {
		return b.grads
	}
	b.run(concat(s.params[s.carries+s.xs:], s.invariants), concat(in[s.carries+s.xs:], saved[kept:]))
	return b.grads
}

// active finds the cotangents that are not zero at some step, and the gradients of the params from them.
func (s *scan) active(cotangents []*graph.Node) (active []bool, grads []*graph.Node) {
	active = make([]bool, len(s.outs))
	for i, ct := range cotangents {
		active[i] = s.cotangents[i] != nil && !isZero(ct)
	}
	for {
		grads = s.pull(active)
		grown := false
		for i := range s.carries {
			if grads[i] != nil && !active[i] {
				active[i], grown = true, true
			}
		}
		if !grown {
			return active, grads
		}
	}
}

// backwardLoop collects the parts of the backward loop's body: nodes of the trace, with their actual values.
type backwardLoop struct {
	*scan
	carryParams, carryValues, outs []*graph.Node // outs: the new values of the carries
	xParams, xValues, ys           []*graph.Node
	xSpecs, ySpecs                 []sharding.Spec
	take                           []func(result *graph.Node) // what becomes of the results: carries, then ys
	takeYs                         []func(result *graph.Node)
	grads                          []*graph.Node // the result: cotangents of the Scan's inputs
}

// addCarries makes the cotangents of the carries carries of the loop.
func (b *backwardLoop) addCarries(active []bool, grads, cotangents []*graph.Node) {
	for i := range b.carries {
		if !active[i] {
			continue
		}
		next := grads[i]
		if next == nil {
			next = zeros(b.g, b.params[i].Shape())
		}
		b.carryParams, b.carryValues = append(b.carryParams, b.cotangents[i]), append(b.carryValues, cotangents[i])
		b.outs = append(b.outs, next)
		b.take = append(b.take, func(result *graph.Node) { b.grads[i] = result })
	}
}

// addSums makes the sum of each captured value's gradients a carry of the loop.
func (b *backwardLoop) addSums(grads []*graph.Node) {
	for i := b.carries + b.xs; i < len(b.params); i++ {
		if grads[i] == nil {
			continue
		}
		dtype := b.params[i].DType()
		sumShape := shapes.Make(sumType(dtype), b.params[i].Shape().Dimensions...)
		zero := zeros(b.g, sumShape)
		sum := graph.Identity(zero)
		b.carryParams, b.carryValues = append(b.carryParams, sum), append(b.carryValues, zero)
		b.outs = append(b.outs, graph.Add(sum, graph.ConvertDType(grads[i], sumShape.DType)))
		b.take = append(b.take, func(result *graph.Node) { b.grads[i] = graph.ConvertDType(result, dtype) })
	}
}

// sumType is the dtype in which gradients are summed over the steps.
func sumType(dtype dtypes.DType) dtypes.DType {
	if dtype == dtypes.BFloat16 || dtype == dtypes.Float16 {
		return dtypes.Float32
	}
	return dtype
}

// addXs gives the loop the xs, and makes their gradients its ys.
func (b *backwardLoop) addXs(in, grads []*graph.Node) {
	for j := range b.xs {
		i := b.carries + j
		spec := specOf(b.o.XsSpecs, j)
		b.stepInputs(b.params[i:i+1], in[i:i+1], spec)
		if grads[i] == nil {
			continue
		}
		b.ys, b.ySpecs = append(b.ys, grads[i]), append(b.ySpecs, spec)
		b.takeYs = append(b.takeYs, func(result *graph.Node) { b.grads[i] = result })
	}
}

// stepInputs gives the loop stacked values of which it reads one slice a step.
func (b *backwardLoop) stepInputs(params, values []*graph.Node, spec sharding.Spec) {
	for i := range params {
		b.xParams, b.xValues, b.xSpecs = append(b.xParams, params[i]), append(b.xValues, values[i]), append(b.xSpecs, spec)
	}
}

// run builds the loop and hands its results out.
func (b *backwardLoop) run(constantParams, constantValues []*graph.Node) {
	rec, captured := newRecord(concat(b.outs, b.ys), concat(b.carryParams, b.xParams, constantParams), b.since)
	for _, c := range captured {
		if slices.Contains(b.params, c) || c.Id() >= b.first && c.Id() < b.since {
			exceptions.Panicf("transform.Scan: a backward rule in the body closes over the body's value %s: make it an input of the rule", c)
		}
	}
	l := &loop{n: b.n, reverse: !b.o.Reverse, body: rec, carries: len(b.outs), xs: len(b.xParams), xSpecs: b.xSpecs, ySpecs: b.ySpecs}
	results := l.build(b.g, concat(b.carryValues, b.xValues, constantValues, captured))
	for i, take := range append(b.take, b.takeYs...) {
		take(results[i])
	}
}
