package transform

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"

	"weft/engine/sharding"
)

// rule is the backward rule of one passThrough function.
type rule struct {
	// in, saved: how many of the call's first inputs get cotangents, and how many after them are only kept. The
	// remaining inputs are the outputs.
	in, saved int
	// what names the combinator in errors.
	what string
	// backward returns one cotangent for each of in; nil means none. A cotangent that is nil or zero was not asked for.
	backward func(in, saved, out, cotangents []*graph.Node) []*graph.Node
}

// constraintKey tells the constraint functions of a graph apart: one for each shape and pair of specs.
type constraintKey struct{ shape, forward, cotangent string }

// state is what this package keeps for a graph. It hangs on the graph, so that it dies with it.
type state struct {
	rules       map[string]*rule
	constraints map[constraintKey]*graph.Function
	// reducedDots are the functions of ReduceScatterDot, by shapes and description.
	reducedDots map[string]*graph.Function
	// movesOnly holds the names of functions that only place data: constraints.
	movesOnly map[string]bool
	loops     map[*graph.Node]bool
}

type stateKey struct{}

func stateOf(g *graph.Graph) *state {
	if s, ok := g.State(stateKey{}).(*state); ok {
		return s
	}
	s := &state{
		rules:       map[string]*rule{},
		constraints: map[constraintKey]*graph.Function{},
		reducedDots: map[string]*graph.Function{},
		movesOnly:   map[string]bool{},
		loops:       map[*graph.Node]bool{},
	}
	g.AttachState(stateKey{}, s)
	return s
}

// Every combinator puts its backward rule on a Call, so that one registration carries them all.
func init() {
	previous := graph.VJPRegistration[graph.NodeTypeCall]
	graph.VJPRegistration[graph.NodeTypeCall] = func(node *graph.Node, cotangents []*graph.Node, shape shapes.Shape) []*graph.Node {
		r := stateOf(node.Graph()).rules[callee(node)]
		switch {
		case r != nil:
			return r.apply(node, cotangents)
		case previous != nil:
			return previous(node, cotangents, shape)
		}
		exceptions.Panicf("transform: the call of function %q has no gradient: build it with transform.CustomVJP", callee(node))
		return nil
	}
}

// callee is the name of the function that a Call node calls. GoMLX shows it only in the node's text; the name is what
// stays the same when a node is cloned.
func callee(node *graph.Node) string {
	if node.Type() != graph.NodeTypeCall {
		return ""
	}
	_, text, _ := strings.Cut(strings.TrimPrefix(node.String(), "Node #"), " ")
	if strings.HasPrefix(text, "[") { // an alias
		if alias, err := strconv.QuotedPrefix(text[1:]); err == nil {
			text = strings.TrimPrefix(text[1+len(alias):], "] ")
		}
	}
	name, _, found := strings.Cut(strings.TrimPrefix(text, "Call("), fmt.Sprintf(", %d inputs)", len(node.Inputs())))
	if !found {
		exceptions.Panicf("transform: cannot read the function's name from the node %q: GoMLX changed its text", node)
	}
	return name
}

func (r *rule) apply(node *graph.Node, cotangents []*graph.Node) []*graph.Node {
	all := node.Inputs()
	in, saved, out := all[:r.in], all[r.in:r.in+r.saved], all[r.in+r.saved:]
	grads := r.backward(in, saved, out, cotangents)
	if len(grads) != len(in) {
		exceptions.Panicf("%s: the backward rule returns %d cotangents for %d inputs: return one for each, nil for none", r.what, len(grads), len(in))
	}
	for i, ct := range grads {
		if ct != nil && !ct.Shape().Equal(in[i].Shape()) {
			exceptions.Panicf("%s: the cotangent of input %d is %s, the input is %s: they must agree", r.what, i, ct.Shape(), in[i].Shape())
		}
	}
	return append(grads, make([]*graph.Node, len(all)-len(in))...)
}

// passThrough returns outs behind a call that gives them the rule's gradient with respect to in. The function called
// only returns its last parameters: what computes outs stays in the caller, where the compiler, the partitioner and
// the recorder see it, and where its constants are visible.
func passThrough(r *rule, in, saved, outs []*graph.Node) []*graph.Node {
	r.in, r.saved = len(in), len(saved)
	all := concat(in, saved, outs)
	g := all[0].Graph()
	f := graph.NewFunction(g, uniqueName(g, r.what), func(g *graph.Graph) []*graph.Node {
		return parameters(g, all)[len(in)+len(saved):]
	})
	stateOf(g).rules[f.Name()] = r
	return f.Call(all...)
}

// uniqueName is a function name that no other function of the graph has, made of plain characters.
func uniqueName(g *graph.Graph, what string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, what)
	return g.UniqueName("vjp." + strings.TrimPrefix(plain, "transform."))
}

// parameters makes one parameter of the current function for each node, of the node's shape.
func parameters(g *graph.Graph, like []*graph.Node) []*graph.Node {
	out := make([]*graph.Node, len(like))
	for i, n := range like {
		out[i] = graph.Parameter(g, fmt.Sprintf("p%d", i), n.Shape())
	}
	return out
}

// pullback returns the cotangents of wrt, given those of outs. Nil or zero cotangents of outs, outputs that are not
// floats and paths that do not exist cost nothing: their cotangents are nil.
func pullback(outs, cotangents, wrt []*graph.Node) []*graph.Node {
	var seeded, seeds, targets []*graph.Node
	for i, ct := range cotangents {
		if ct != nil && isFloat(outs[i]) && !isZero(ct) {
			seeded, seeds = append(seeded, outs[i]), append(seeds, ct)
		}
	}
	for _, n := range wrt {
		if isFloat(n) {
			targets = append(targets, n)
		}
	}
	grads := make([]*graph.Node, len(wrt))
	if len(seeds) == 0 || len(targets) == 0 {
		return grads
	}
	found := graph.Gradient(seedRoot(seeded, seeds), targets...)
	for i, next := 0, 0; i < len(wrt); i++ {
		if !isFloat(wrt[i]) {
			continue
		}
		if !isZero(found[next]) {
			grads[i] = found[next]
		}
		next++
	}
	return grads
}

// seedRoot is a scalar whose gradient with respect to outs is seeds: what graph.Gradient needs to pull back several
// tensors without a multiplication.
func seedRoot(outs, seeds []*graph.Node) *graph.Node {
	g := outs[0].Graph()
	scalar := graph.Scalar(g, dtypes.Float32, 0)
	seed := &rule{what: "transform.seed", backward: func(_, _, _, _ []*graph.Node) []*graph.Node { return seeds }}
	return passThrough(seed, outs, nil, []*graph.Node{scalar})[0]
}

func isFloat(n *graph.Node) bool { return n.DType().IsFloat() }

// isZero tells that a node is zero by construction, as GoMLX's cotangents of unused outputs are.
func isZero(n *graph.Node) bool {
	switch n.Type() {
	case graph.NodeTypeConstant:
		value := n.ConstantValue()
		return value != nil && value.Size() == 1 && value.Shape().IsScalar() && isZeroScalar(value.Value())
	case graph.NodeTypeBroadcastInDim, graph.NodeTypeReshape, graph.NodeTypeTranspose, graph.NodeTypeConvertDType:
		return isZero(n.Inputs()[0])
	case graph.NodeTypeCall:
		return stateOf(n.Graph()).movesOnly[callee(n)] && isZero(n.Inputs()[0])
	}
	return false
}

// concat joins lists in a new one.
func concat[T any](lists ...[]T) []T {
	var out []T
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// specOf is the i-th spec of a list that may be short.
func specOf(specs []sharding.Spec, i int) sharding.Spec {
	if i < len(specs) {
		return specs[i]
	}
	return nil
}
