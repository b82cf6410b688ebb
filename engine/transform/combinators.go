package transform

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"

	"weft/engine/sharding"
	"weft/engine/stablehlo"
)

// CustomVJP returns fwd(inputs), differentiated by bwd instead of by the operations that fwd is made of.
//
// bwd gets the inputs, the outputs of fwd and one cotangent for each output, of its shape and dtype (zeros for an
// output that the loss does not depend on). It returns one cotangent for each input, of the input's shape and dtype;
// nil means zero, which is what integers and booleans have. Values that fwd closes over get no gradient: make them
// inputs. name is used in errors and in the program's text.
func CustomVJP(name string, fwd func(in []*graph.Node) []*graph.Node, bwd func(in, out, cotangents []*graph.Node) []*graph.Node, inputs ...*graph.Node) []*graph.Node {
	what := fmt.Sprintf("transform.CustomVJP %s", name)
	checkInputs(what, inputs)
	outs := fwd(concat(inputs))
	checkOutputs(what, outs)
	r := &rule{what: what, backward: func(in, _, out, cotangents []*graph.Node) []*graph.Node {
		return bwd(concat(in), concat(out), concat(cotangents))
	}}
	return passThrough(r, inputs, nil, outs)
}

// Checkpoint returns f(inputs) and keeps nothing of f's inside for the backward pass, which computes f again.
//
// The backward pass puts all that f reads, weights too, behind one optimization barrier together with the arriving
// cotangents: the compiler can neither merge the second computation with the first nor start it before the cotangents
// are there. f is called once; nodes that it closes over are found and treated as inputs. All inputs and closed-over
// nodes of a float dtype get a gradient.
func Checkpoint(f func(in []*graph.Node) []*graph.Node, inputs ...*graph.Node) []*graph.Node {
	const what = "transform.Checkpoint"
	checkInputs(what, inputs)
	g := inputs[0].Graph()
	since := mark(g)
	outs := f(concat(inputs))
	checkOutputs(what, outs)
	_, captured := newRecord(outs, inputs, since)
	all := concat(inputs, captured)
	r := &rule{what: what, backward: func(in, _, _, cotangents []*graph.Node) []*graph.Node {
		return recompute(outs, all, since, in, cotangents)
	}}
	return passThrough(r, all, nil, outs)
}

// recompute builds outs again from values of params behind a barrier and pulls the cotangents back.
func recompute(outs, params []*graph.Node, since graph.NodeId, values, cotangents []*graph.Node) []*graph.Node {
	var needed, arriving []*graph.Node
	for i, ct := range cotangents {
		if isFloat(outs[i]) && !isZero(ct) {
			needed, arriving = append(needed, outs[i]), append(arriving, ct)
		}
	}
	grads := make([]*graph.Node, len(params))
	if len(needed) == 0 {
		return grads
	}
	rec, _ := newRecord(needed, params, since)
	var read []int
	var held []*graph.Node
	for i, p := range params {
		if rec.reached[p] {
			read, held = append(read, i), append(held, values[i])
		}
	}
	held = graph.OptimizationBarriers(concat(held, arriving)...)
	again := make([]*graph.Node, len(params))
	for k, i := range read {
		again[i] = held[k]
	}
	second := rec.replay(needed[0].Graph(), again)
	for k, ct := range pullback(second, held[len(read):], held[:len(read)]) {
		grads[read[k]] = ct
	}
	return grads
}

// Keep returns x. Where the backward pass of a Scan reads it, the forward loop stacks it, even if it could be made again
// from the xs and the closed-over values by moving data: a gathered weight is not gathered a second time then. Inside
// Checkpoint it does nothing: keep what Checkpoint closes over.
func Keep(x *graph.Node) *graph.Node {
	same := func(in []*graph.Node) []*graph.Node { return in }
	pass := func(_, _, cotangents []*graph.Node) []*graph.Node { return cotangents }
	return CustomVJP("keep", same, pass, x)[0]
}

// Constrain fixes the sharding of x over the mesh of the program, and that of its cotangent. The spec may have fewer
// dimensions than x; those left out are not split.
func Constrain(x *graph.Node, spec sharding.Spec) *graph.Node {
	return ConstrainTo(x, spec, spec)
}

// ConstrainTo fixes the sharding of x to spec and that of its cotangent to another one. A weight that is split over
// an axis and gathered for use is ConstrainTo(w, sharding.Replicated(), split): its gradient is reduced and scattered
// where it leaves. The reduction runs in x's dtype: to reduce the gradient of a bfloat16 product in float32, gather
// inside a CustomVJP whose rule asks for a float32 product, as engine/nn does.
func ConstrainTo(x *graph.Node, spec, cotangent sharding.Spec) *graph.Node {
	checkInputs("transform.Constrain", []*graph.Node{x})
	for _, s := range []sharding.Spec{spec, cotangent} {
		if len(s) > x.Rank() {
			exceptions.Panicf("transform.Constrain: sharding %v has %d dimensions, the tensor is %s", s, len(s), x.Shape())
		}
	}
	return constraint(x.Graph(), x, spec, cotangent).Call(x)[0]
}

// constraint is the function that the backend lowers to a constraint, one for each shape and pair of specs.
func constraint(g *graph.Graph, x *graph.Node, spec, cotangent sharding.Spec) *graph.Function {
	s := stateOf(g)
	key := constraintKey{x.Shape().String(), fmt.Sprint([][]string(spec)), fmt.Sprint([][]string(cotangent))}
	if f := s.constraints[key]; f != nil {
		return f
	}
	name := stablehlo.ConstraintName(spec, g.UniqueName("constraint"))
	f := graph.NewFunction(g, name, func(g *graph.Graph) []*graph.Node { return parameters(g, []*graph.Node{x}) })
	s.constraints[key] = f
	s.movesOnly[name] = true
	s.rules[name] = &rule{in: 1, what: "transform.Constrain", backward: func(_, _, _, cts []*graph.Node) []*graph.Node {
		if isZero(cts[0]) {
			return []*graph.Node{nil}
		}
		return []*graph.Node{ConstrainTo(cts[0], cotangent, spec)}
	}}
	return f
}

func checkInputs(what string, inputs []*graph.Node) {
	if len(inputs) == 0 {
		exceptions.Panicf("%s: no inputs given: give at least one", what)
	}
	checkNodes(what, "input", inputs)
}

func checkOutputs(what string, outs []*graph.Node) {
	if len(outs) == 0 {
		exceptions.Panicf("%s: the function returns no outputs: return at least one", what)
	}
	checkNodes(what, "output", outs)
}

func checkNodes(what, role string, nodes []*graph.Node) {
	for i, n := range nodes {
		if n == nil {
			exceptions.Panicf("%s: %s %d is nil", what, role, i)
		}
	}
}
