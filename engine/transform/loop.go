package transform

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine/sharding"
)

// loop is one while loop over n steps. The body's params are the carries, one slice of each x and the invariants, in
// this order; its outs are the new carries and the ys of the step.
type loop struct {
	n              int
	reverse        bool
	body           *record
	carries, xs    int
	xSpecs, ySpecs []sharding.Spec // of the stacked xs and ys; nil where nothing is known
}

// build makes the loop in the current function. values are those of the body's params, with xs stacked. It returns
// the last carries and the stacked ys. The loop's state is, in this order: the step's number, the carries, the buffers
// of the ys, the xs and invariants that the body reads.
func (l *loop) build(g *graph.Graph, values []*graph.Node) []*graph.Node {
	ys := l.body.outs[l.carries:]
	initial := append([]*graph.Node{graph.Const(g, int32(0))}, values[:l.carries]...)
	for j, y := range ys {
		buffer := zeros(g, stacked(l.n, y.Shape()))
		initial = append(initial, constrained(buffer, specOf(l.ySpecs, j)))
	}
	var read []int // the params that are in the state beside the carries
	for i := l.carries; i < len(values); i++ {
		if l.body.reached[l.body.params[i]] {
			read = append(read, i)
			initial = append(initial, values[i])
		}
	}
	cond := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.LessThan(parameters(g, initial)[0], graph.Const(g, int32(l.n)))}
	})
	body := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		return l.step(g, parameters(g, initial), read)
	})
	final := graph.While(cond, body, initial...)
	stateOf(g).loops[final[0].Inputs()[0]] = true
	return final[1 : 1+l.carries+len(ys)]
}

// step is the loop's body: slice the xs, run the record, put the ys in their buffers.
func (l *loop) step(g *graph.Graph, state []*graph.Node, read []int) []*graph.Node {
	counter, position, zero := state[0], state[0], graph.Const(g, int32(0))
	if l.reverse {
		position = graph.Sub(graph.Const(g, int32(l.n-1)), counter)
	}
	buffers := state[1+l.carries:][:len(l.body.outs)-l.carries]
	invariants := state[1+len(l.body.outs):]
	values := make([]*graph.Node, len(l.body.params))
	copy(values, state[1:1+l.carries])
	for k, i := range read {
		values[i] = invariants[k]
		if j := i - l.carries; j < l.xs {
			values[i] = constrained(sliceAt(invariants[k], position, zero), specOf(l.xSpecs, j).DropLeading(1))
		}
	}
	outs := l.body.replay(g, values)
	next := []*graph.Node{graph.Add(counter, graph.Const(g, int32(1)))}
	next = append(next, outs[:l.carries]...)
	for j, y := range outs[l.carries:] {
		spec := specOf(l.ySpecs, j)
		next = append(next, constrained(updateAt(buffers[j], constrained(y, spec.DropLeading(1)), position, zero), spec))
	}
	return append(next, invariants...)
}

// constrained applies a known spec; a nil one means that nothing is known.
func constrained(x *graph.Node, spec sharding.Spec) *graph.Node {
	if spec == nil {
		return x
	}
	return Constrain(x, spec)
}

// stacked is the shape of n tensors on a new leading dimension.
func stacked(n int, s shapes.Shape) shapes.Shape {
	return shapes.Make(s.DType, append([]int{n}, s.Dimensions...)...)
}

// zeros is graph.Zeros without GoMLX's cache of scalars, whose members one closure makes and another cannot see.
func zeros(g *graph.Graph, s shapes.Shape) *graph.Node {
	return graph.BroadcastToShape(graph.ConstAsDType(g, s.DType, 0), s)
}

// sliceAt is x[position] on axis 0.
func sliceAt(x, position, zero *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	one := graph.DynamicSlice(x, startAt(x, position, zero), append([]int{1}, dims[1:]...))
	return graph.Reshape(one, dims[1:]...)
}

// updateAt is buffer with buffer[position] = x on axis 0.
func updateAt(buffer, x, position, zero *graph.Node) *graph.Node {
	one := graph.Reshape(x, append([]int{1}, x.Shape().Dimensions...)...)
	return graph.DynamicUpdateSlice(buffer, one, startAt(buffer, position, zero))
}

func startAt(x, position, zero *graph.Node) []*graph.Node {
	start := []*graph.Node{position}
	for range x.Rank() - 1 {
		start = append(start, zero)
	}
	return start
}
