package nn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" //nolint:revive // the graph's operations read as mathematics
	"github.com/gomlx/gomlx/support/exceptions"

	"weft/engine/transform"
)

// masked takes the place of a score that must not count. It is finite, so that a row without any key to attend to has
// finite values and gradients.
const masked = -1e30

// RoPETables returns the cosines and sines [T, D/2], float32, of the rotary embedding (Su et al., arXiv 2104.09864) at
// positions 0..T-1 for the given D/2 angular frequencies.
func RoPETables(g *Graph, seqLen int, frequencies []float32) (cos, sin *Node) {
	position := Iota(g, shapes.Make(dtypes.Float32, seqLen, len(frequencies)), 0)
	angle := Mul(position, ExpandLeftToRank(Const(g, frequencies), 2))
	return Cos(angle), Sin(angle)
}

// RoPE turns x [B, T, N, D] by the tables of RoPETables: dimension i is paired with i + D/2. It computes in float32 and
// returns the compute dtype; the gradient is the turn back.
func (p Policy) RoPE(x, cos, sin *Node) *Node {
	fwd := func(in []*Node) []*Node {
		return []*Node{ConvertDType(turn(in[0], in[1], in[2]), p.Compute)}
	}
	bwd := func(in, _, ct []*Node) []*Node {
		return []*Node{ConvertDType(turn(ct[0], in[1], Neg(in[2])), in[0].DType()), nil, nil}
	}
	return transform.CustomVJP("rope", fwd, bwd, x, cos, sin)[0]
}

func turn(x, cos, sin *Node) *Node {
	half := x.Shape().Dim(-1) / 2
	x = ConvertDType(x, dtypes.Float32)
	a := Slice(x, AxisRange().Spacer(), AxisRangeFromStart(half))
	b := Slice(x, AxisRange().Spacer(), AxisRangeToEnd(half))
	cos, sin = Reshape(cos, 1, cos.Shape().Dim(0), 1, half), Reshape(sin, 1, sin.Shape().Dim(0), 1, half)
	return Concatenate([]*Node{Sub(Mul(a, cos), Mul(b, sin)), Add(Mul(b, cos), Mul(a, sin))}, -1)
}

// Mask says which keys a query sees. It is built from positions where it is used: no tensor [T, T] is stored.
type Mask struct {
	// Window is the number of keys that end with the query's own position; 0 is all before.
	Window int
	// Keys is int32 [B, T], 1 for a token, 0 for padding.
	Keys *Node
}

// Attention is causal grouped-query attention for q [B, T, N, D] and k, v [B, T, K, D], N a multiple of K: query head n
// uses key head n/(N/K), which is not repeated in memory. The scores are products of the compute dtype with float32
// output, times scale; mask and softmax are float32. It returns [B, T, N·D].
//
// Backward, scores and softmax are computed again: only q, k, v and the output are kept, unless the compiler finds it
// better to merge the two computations.
func (p Policy) Attention(q, k, v *Node, scale float64, mask Mask) *Node {
	a := newAttention(q, k, scale, mask.Window, p.Compute)
	fwd := func(in []*Node) []*Node {
		probs, _ := a.probs(in[0], in[1], in[3])
		return []*Node{a.merge(a.byKeyHead(a.split(in[0]), ConvertDType(probs, p.Compute), in[2]))}
	}
	return transform.CustomVJP("attention", fwd, a.backward, q, k, v, mask.Keys)[0]
}

// attention has the sizes. Its tensors have K in the place of N: [B, T, K, G, D] for queries, [B, K, T, G, S] for
// scores, S counting keys.
type attention struct {
	b, t, n, kvHeads, groups, d int
	scale                       float64
	window                      int
	compute                     dtypes.DType
}

func newAttention(q, k *Node, scale float64, window int, compute dtypes.DType) attention {
	if q.Rank() != 4 || k.Rank() != 4 || q.Shape().Dim(3) != k.Shape().Dim(3) || q.Shape().Dim(2)%k.Shape().Dim(2) != 0 {
		exceptions.Panicf("nn.Attention: q is %s, k is %s: want [B, T, N, D] and [B, T, K, D] with N a multiple of K", q.Shape(), k.Shape())
	}
	d := q.Shape().Dimensions
	kv := k.Shape().Dim(2)
	return attention{b: d[0], t: d[1], n: d[2], kvHeads: kv, groups: d[2] / kv, d: d[3], scale: scale, window: window, compute: compute}
}

func (a attention) split(q *Node) *Node { return Reshape(q, a.b, a.t, a.kvHeads, a.groups, a.d) }

// visible is bool [B, K, T, G, S].
func (a attention) visible(keys *Node) *Node {
	g := keys.Graph()
	square := shapes.Make(dtypes.Int32, a.t, a.t)
	query, key := Iota(g, square, 0), Iota(g, square, 1)
	see := LessOrEqual(key, query)
	if a.window > 0 {
		see = LogicalAnd(see, LessThan(Sub(query, key), Const(g, int32(a.window))))
	}
	all := []int{a.b, a.kvHeads, a.t, a.groups, a.t}
	token := NotEqual(keys, ZerosLike(keys))
	return LogicalAnd(
		BroadcastToDims(Reshape(see, 1, 1, a.t, 1, a.t), all...),
		BroadcastToDims(Reshape(token, a.b, 1, 1, 1, a.t), all...))
}

// probs returns the softmax [B, K, T, G, S] in float32 and the mask.
func (a attention) probs(q, k, keys *Node) (probs, visible *Node) {
	scores := dot(a.split(q), k, []int{4}, []int{0, 2}, []int{3}, []int{0, 2}, dtypes.Float32)
	visible = a.visible(keys)
	scores = Where(visible, MulScalar(scores, a.scale), FillScalar(q.Graph(), scores.Shape(), masked))
	e := Exp(Sub(scores, ReduceAndKeep(scores, ReduceMax, -1)))
	return Div(e, ReduceAndKeep(e, ReduceSum, -1)), visible
}

// byKeyHead returns Σ_s weights·values as [B, T, K, G, D] for weights [B, K, T, G, S] and values [B, S, K, D].
func (a attention) byKeyHead(like, weights, values *Node) *Node {
	return ConvertDType(TransposeAllAxes(dot(weights, values, []int{4}, []int{0, 1}, []int{1}, []int{0, 2}, a.compute), 0, 2, 1, 3, 4), like.DType())
}

// toKeys returns Σ_tg weights·x as [B, S, K, D] for weights [B, K, T, G, S] and x [B, T, K, G, D].
func (a attention) toKeys(weights, x *Node) *Node {
	return TransposeAllAxes(dot(weights, x, []int{2, 3}, []int{0, 1}, []int{1, 3}, []int{0, 2}, a.compute), 0, 2, 1, 3)
}

func (a attention) merge(x *Node) *Node { return Reshape(x, a.b, a.t, a.n*a.d) }

// backward gives the gradients of q, k and v.
func (a attention) backward(in, _, ct []*Node) []*Node {
	q, k, v, keys := in[0], in[1], in[2], in[3]
	probs, visible := a.probs(q, k, keys)
	dy := a.split(ct[0])
	dv := a.toKeys(ConvertDType(probs, a.compute), dy)
	dprobs := dot(dy, v, []int{4}, []int{0, 2}, []int{3}, []int{0, 2}, dtypes.Float32)
	dscores := Mul(probs, Sub(dprobs, ReduceAndKeep(Mul(dprobs, probs), ReduceSum, -1)))
	dscores = Where(visible, MulScalar(dscores, a.scale), ZerosLike(dscores))
	narrow := ConvertDType(dscores, a.compute)
	dq := Reshape(a.byKeyHead(q, narrow, k), a.b, a.t, a.n, a.d)
	return []*Node{dq, a.toKeys(narrow, a.split(q)), dv, nil}
}
