package transform

import (
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"
)

// record is a piece of a graph that computes outs from params and nothing else, in the order of its nodes. It can be
// built again anywhere: in main, or inside a loop's body.
type record struct {
	params, nodes, outs []*graph.Node
	reached             map[*graph.Node]bool // the params that outs depend on
}

// mark is a position in the graph: nodes made later have ids of at least mark.
func mark(g *graph.Graph) graph.NodeId { return graph.NodeId(len(g.Nodes())) }

// newRecord finds what computes outs from params. Nodes older than since, parameters of the graph and constants that
// GoMLX does not keep are captured: they become params too, after the given ones. Nodes before since are looked
// through when they are constants, which are copied instead.
func newRecord(outs, params []*graph.Node, since graph.NodeId) (r *record, captured []*graph.Node) {
	r = &record{params: slices.Clone(params), outs: outs, reached: map[*graph.Node]bool{}}
	isParam, seen := map[*graph.Node]bool{}, map[*graph.Node]bool{}
	for _, p := range params {
		isParam[p] = true
	}
	work := slices.Clone(outs)
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		switch {
		case isParam[n]:
			r.reached[n] = true
		case n.Type() == graph.NodeTypeConstant && n.ConstantValue() != nil:
			r.nodes = append(r.nodes, n)
		case n.Type() == graph.NodeTypeConstant, n.Type() == graph.NodeTypeParameter, n.Id() < since:
			r.reached[n] = true
			captured = append(captured, n)
		default:
			checkRecordable(n)
			r.nodes = append(r.nodes, n)
			work = append(work, n.Inputs()...)
		}
	}
	slices.SortFunc(r.nodes, byId)
	slices.SortFunc(captured, byId)
	r.params = append(r.params, captured...)
	return r, captured
}

func byId(a, b *graph.Node) int { return int(a.Id()) - int(b.Id()) }

// checkRecordable refuses what cannot be built again: operations whose closures may read values that the recorder
// cannot see, and fused operations, whose copies lose the gradient that GoMLX gave them.
func checkRecordable(n *graph.Node) {
	switch {
	case n.Type() == graph.NodeTypeIf, n.Type() == graph.NodeTypeWhile && !stateOf(n.Graph()).loops[n]:
		exceptions.Panicf("transform: %s cannot stand inside Checkpoint or Scan, since its closures may read any value: use graph.Where or transform.Scan", n)
	case strings.HasPrefix(n.Type().String(), "Fused"):
		exceptions.Panicf("transform: %s cannot stand inside Checkpoint or Scan, since its copy has no gradient: build it from plain operations, as engine/stablehlo does", n)
	}
}

// replay builds the record again in the current function, on other values of its params. A nil value is allowed for a
// param that outs do not depend on.
func (r *record) replay(g *graph.Graph, values []*graph.Node) []*graph.Node {
	built := make(map[*graph.Node]*graph.Node, len(r.params)+len(r.nodes))
	for i, p := range r.params {
		built[p] = values[i]
	}
	for _, n := range r.nodes {
		inputs := make([]*graph.Node, len(n.Inputs()))
		for i, in := range n.Inputs() {
			inputs[i] = built[in]
		}
		built[n] = clone(g, n, inputs)
	}
	outs := make([]*graph.Node, len(r.outs))
	for i, n := range r.outs {
		outs[i] = built[n]
	}
	return outs
}

// clone is CloneWithInputs without its traps: it gives constants and barriers of one operand back as they are, and it
// does not know our loops.
func clone(g *graph.Graph, n *graph.Node, inputs []*graph.Node) *graph.Node {
	switch n.Type() {
	case graph.NodeTypeConstant:
		if n.Function() == g.CurrentFunc() {
			return n
		}
		return graph.ConstTensor(g, n.ConstantValue())
	case graph.NodeTypeOptimizationBarrier:
		outs := graph.OptimizationBarriers(inputs...)
		if len(outs) == 1 {
			return outs[0]
		}
		return outs[0].Inputs()[0]
	}
	c := n.CloneWithInputs(inputs...)
	if s := stateOf(g); s.loops[n] {
		s.loops[c] = true
	}
	return c
}

// placeholders stand for like in a trace: nodes of their own, so that none of them is computed from another one.
func placeholders(like []*graph.Node) []*graph.Node {
	out := make([]*graph.Node, len(like))
	for i, n := range like {
		out[i] = graph.Identity(n)
	}
	return out
}

func isZeroScalar(value any) bool { return reflect.ValueOf(value).IsZero() }
