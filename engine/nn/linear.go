package nn

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" //nolint:revive // the graph's operations read as mathematics
	"github.com/gomlx/gomlx/support/exceptions"

	"weft/engine/sharding"
	"weft/engine/transform"
)

// Linear returns x·wᵀ in the compute dtype for x [..., in] and the master weight w [out, in], split by spec.
//
// Backward, the gradient of x is in the compute dtype; that of w is a product with float32 output, reduce-scattered
// over the data axes in Policy.Reduce, so that it lies split by spec. What is kept for it is x and the split master;
// Policy.Gathering says what becomes of the whole weight.
func (p Policy) Linear(x, w *Node, spec sharding.Spec) *Node {
	if w.Rank() != 2 || x.Rank() < 1 || x.Shape().Dim(-1) != w.Shape().Dim(1) {
		exceptions.Panicf("nn.Linear: x is %s, w is %s: want [..., in] and [out, in]", x.Shape(), w.Shape())
	}
	last := []int{x.Rank() - 1}
	fwd := func(in []*Node) []*Node {
		whole := p.Weight(in[1], spec)
		out := []*Node{dot(in[0], whole, last, nil, []int{1}, nil, p.Compute)}
		if p.Gathering == GatherOnce {
			out = append(out, whole)
		}
		return out
	}
	bwd := func(in, out, ct []*Node) []*Node {
		x, w, dy := in[0], in[1], ct[0]
		if p.Gathering == GatherApart && p.sharded() {
			held := OptimizationBarriers(w, dy)
			w, dy = held[0], held[1]
		}
		var whole *Node
		if p.Gathering == GatherOnce {
			whole = out[1]
		} else {
			whole = p.Weight(w, spec)
		}
		dx := dot(dy, whole, last, nil, []int{0}, nil, p.Compute)
		return []*Node{dx, ConvertDType(p.weightGradient(dy, x, spec), w.DType())}
	}
	return transform.CustomVJP("linear", fwd, bwd, ConvertDType(x, p.Compute), w)[0]
}

// LinearKept is Linear with the weight that Policy.Kept made of w. It gathers nothing, neither forward nor backward; the
// gradient goes to w as Linear's does. A nil whole is Linear.
func (p Policy) LinearKept(x, w, whole *Node, spec sharding.Spec) *Node {
	if whole == nil {
		return p.Linear(x, w, spec)
	}
	last := []int{x.Rank() - 1}
	fwd := func(in []*Node) []*Node {
		return []*Node{dot(in[0], in[2], last, nil, []int{1}, nil, p.Compute)}
	}
	bwd := func(in, _, ct []*Node) []*Node {
		dx := dot(ct[0], in[2], last, nil, []int{0}, nil, p.Compute)
		return []*Node{dx, ConvertDType(p.weightGradient(ct[0], in[0], spec), in[1].DType()), nil}
	}
	return transform.CustomVJP("linear_kept", fwd, bwd, ConvertDType(x, p.Compute), w, whole)[0]
}

// GatedGelu returns gelu(gate)·up, where gelu is the approximation by tanh (Hendrycks and Gimpel, arXiv 1606.08415).
// It computes in float32 and keeps its two inputs only.
func (p Policy) GatedGelu(gate, up *Node) *Node {
	fwd := func(in []*Node) []*Node {
		value, _ := geluTanh(ConvertDType(in[0], dtypes.Float32))
		return []*Node{ConvertDType(Mul(value, ConvertDType(in[1], dtypes.Float32)), p.Compute)}
	}
	bwd := func(in, _, ct []*Node) []*Node {
		value, slope := geluTanh(ConvertDType(in[0], dtypes.Float32))
		up, dy := ConvertDType(in[1], dtypes.Float32), ConvertDType(ct[0], dtypes.Float32)
		return []*Node{
			ConvertDType(Mul(Mul(dy, up), slope), in[0].DType()),
			ConvertDType(Mul(dy, value), in[1].DType()),
		}
	}
	return transform.CustomVJP("gated_gelu", fwd, bwd, gate, up)[0]
}

// geluTanh returns x/2·(1 + tanh u), u = √(2/π)·(x + 0.044715·x³), and its derivative.
func geluTanh(x *Node) (value, slope *Node) {
	const root, cubic = 0.7978845608028654, 0.044715
	square := Mul(x, x)
	t := Tanh(MulScalar(Mul(x, OnePlus(MulScalar(square, cubic))), root))
	half := MulScalar(OnePlus(t), 0.5)
	value = Mul(x, half)
	inner := MulScalar(OnePlus(MulScalar(square, 3*cubic)), root)
	slope = Add(half, MulScalar(Mul(Mul(x, OneMinus(Mul(t, t))), inner), 0.5))
	return value, slope
}

// Norm is a root mean square norm (Zhang and Sennrich, arXiv 1910.07467).
type Norm struct {
	Eps float64
	// PlusOne scales by 1+w instead of w.
	PlusOne bool
}

// RMSNorm normalises the last dimension of x in float32, scales it by the float32 weight w [last], split by spec, and
// returns the compute dtype. A nil w scales by 1.
func (p Policy) RMSNorm(n Norm, x, w *Node, spec sharding.Spec) *Node {
	wide := ConvertDType(x, dtypes.Float32)
	mean := ReduceAndKeep(Mul(wide, wide), ReduceMean, -1)
	y := Div(wide, Sqrt(AddScalar(mean, n.Eps)))
	if w != nil {
		w = p.whole(ConvertDType(w, dtypes.Float32), spec)
		if n.PlusOne {
			w = OnePlus(w)
		}
		y = Mul(y, ExpandLeftToRank(w, x.Rank()))
	}
	return ConvertDType(y, p.Compute)
}
