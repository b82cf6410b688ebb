package transform

import (
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// plan differentiates the trace with all cotangents and decides what the forward loop keeps for the backward one.
func (s *scan) plan() {
	s.grads = map[string][]*graph.Node{}
	s.cotangents = make([]*graph.Node, len(s.outs))
	all := make([]bool, len(s.outs))
	for i, out := range s.outs {
		if isFloat(out) {
			s.cotangents[i] = graph.Identity(zeros(s.g, out.Shape()))
			all[i] = true
		}
	}
	var grads []*graph.Node
	s.notDifferentiable = catch(func() { grads = s.pull(all) })
	p := &planner{scan: s, origins: map[*graph.Node]origin{}, decided: map[*graph.Node]bool{}}
	for i, param := range s.params {
		switch {
		case i < s.carries:
			p.origins[param] = fromCarry
		case i < s.carries+s.xs:
			p.origins[param] = fromXs
		default:
			p.origins[param] = fromCaptured
		}
	}
	switch s.o.Remat {
	case RematFull:
		rec, _ := newRecord(present(grads), concat(s.params, s.cotangents), s.since)
		for _, c := range s.params[:s.carries] {
			if rec.reached[c] {
				p.residuals = append(p.residuals, c)
			}
		}
	default:
		for _, n := range p.readByGradient(grads) {
			p.keep(n)
		}
	}
	slices.SortFunc(p.residuals, byId)
	slices.SortFunc(p.invariants, byId)
	s.residuals, s.invariants = p.residuals, p.invariants
}

// catch returns the panic of f, nil if there was none.
func catch(f func()) (panicked any) {
	defer func() { panicked = recover() }()
	f()
	return nil
}

// pull returns the gradients of the params from the cotangents that are active; nil for none.
func (s *scan) pull(active []bool) []*graph.Node {
	key := make([]byte, len(active))
	cotangents := make([]*graph.Node, len(active))
	for i, a := range active {
		if a {
			key[i], cotangents[i] = 1, s.cotangents[i]
		}
	}
	if _, ok := s.grads[string(key)]; !ok {
		s.grads[string(key)] = pullback(s.outs, cotangents, s.params)
	}
	return s.grads[string(key)]
}

// origin is what a value of the body depends on.
type origin int

const (
	fromCarry origin = 1 << iota
	fromXs
	fromCaptured
	changesByStep = fromCarry | fromXs
)

// planner decides, for RematNone, which values of the body the backward loop gets.
type planner struct {
	*scan
	origins               map[*graph.Node]origin
	decided               map[*graph.Node]bool
	residuals, invariants []*graph.Node
}

// readByGradient are the body's values and params that the nodes which differentiation added read.
func (p *planner) readByGradient(grads []*graph.Node) []*graph.Node {
	var read []*graph.Node
	seen := map[*graph.Node]bool{}
	for _, ct := range p.cotangents {
		seen[ct] = true
	}
	work := present(grads)
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		if _, isParam := p.origins[n]; isParam || n.Id() >= p.since && n.Id() < p.end {
			read = append(read, n)
		} else if n.Id() >= p.end {
			work = append(work, n.Inputs()...)
		}
	}
	slices.SortFunc(read, byId)
	return read
}

// originOf is what a value of the body depends on.
func (p *planner) originOf(n *graph.Node) origin {
	if o, ok := p.origins[n]; ok {
		return o
	}
	var o origin
	if n.Id() >= p.since {
		for _, in := range n.Inputs() {
			o |= p.originOf(in)
		}
	}
	p.origins[n] = o
	return o
}

// keep makes a value available to the backward loop: as a residual, as an invariant, or by nothing at all, when the
// loop has it or can make it again by moving data.
func (p *planner) keep(n *graph.Node) {
	if p.decided[n] {
		return
	}
	p.decided[n] = true
	o := p.originOf(n)
	isParam := slices.Contains(p.params, n)
	switch {
	case o == 0, isParam && o&fromCarry == 0, !isParam && p.prepared(n):
	case !isParam && isMove(n) && size(n.Inputs()[0]) <= size(n):
		p.keep(n.Inputs()[0])
	case o&changesByStep == 0:
		p.invariants = append(p.invariants, n)
	default:
		p.residuals = append(p.residuals, n)
	}
}

// prepared tells that a value is an x or a captured value, moved, cut, converted or constrained: a weight made ready
// for use. Keeping it would stack gathered weights where the xs hold slices of them.
func (p *planner) prepared(n *graph.Node) bool {
	for !slices.Contains(p.params, n) {
		switch {
		case p.originOf(n) == 0:
			return true
		case isMove(n), n.Type() == graph.NodeTypeSlice, n.Type() == graph.NodeTypeCall && stateOf(p.g).movesOnly[callee(n)]:
			n = n.Inputs()[0]
		default:
			return false
		}
	}
	return p.originOf(n)&fromCarry == 0
}

// isMove tells that an operation of one input only moves or converts data.
func isMove(n *graph.Node) bool {
	switch n.Type() {
	case graph.NodeTypeIdentity, graph.NodeTypeReshape, graph.NodeTypeTranspose, graph.NodeTypeBroadcastInDim, graph.NodeTypeConvertDType:
		return true
	}
	return false
}

// size is the size of a node's value in bytes.
func size(n *graph.Node) uint64 { return uint64(n.Shape().ByteSize()) }

// present leaves the nils out.
func present(nodes []*graph.Node) []*graph.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *graph.Node) bool { return n == nil })
}
