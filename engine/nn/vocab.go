package nn

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" //nolint:revive // the graph's operations read as mathematics

	"weft/engine/sharding"
	"weft/engine/transform"
)

// NoTarget is the label of a position that has no target, as in Hugging Face transformers.
const NoTarget = -100

// Embed looks up ids, int32 [B, T], in the table [V, H], split by spec, and returns [B, T, H] in the compute dtype,
// split by rows of the batch. No device ever holds the whole table, nor the whole gradient:
//
// A table split by words is looked up in vocab-parallel: every device gets all ids, finds those that it has, and the
// parts are summed. A table split by columns gives every device its columns of all rows, which an all-to-all turns into
// all columns of its rows. The gradient is scattered in float32 where the table lies. Rows stay split over data axes
// that do not split the table.
func (p Policy) Embed(ids, table *Node, spec sharding.Spec) *Node {
	fwd := func(in []*Node) []*Node {
		rows := p.constrain(ConvertDType(in[1], p.Compute), spec)
		found := Gather(rows, InsertAxes(p.lookupIDs(in[0], spec), -1))
		return []*Node{p.Batch(p.constrain(found, p.lookupSpec(spec)))}
	}
	bwd := func(in, _, ct []*Node) []*Node {
		table := in[1]
		// Split by rows first: else it is the value that dy was rounded from that gets sent, in float32.
		dy := ConvertDType(p.constrain(p.Batch(ct[0]), p.lookupSpec(spec)), dtypes.Float32)
		zero := p.constrain(Zeros(table.Graph(), shapes.Make(dtypes.Float32, table.Shape().Dimensions...)), spec)
		grad := ScatterSum(zero, InsertAxes(p.lookupIDs(in[0], spec), -1), dy, false, false)
		return []*Node{nil, ConvertDType(p.constrain(grad, spec), table.DType())}
	}
	return transform.CustomVJP("embed", fwd, bwd, ids, table)[0]
}

// lookupIDs gives every device the ids of all rows that some device with another part of the table has.
func (p Policy) lookupIDs(ids *Node, table sharding.Spec) *Node {
	return p.constrain(ids, sharding.Split(2, 0, p.otherRows(slices.Concat(table...))...))
}

// lookupSpec is the sharding of what is found [B, T, H] before it goes to the rows of the batch.
func (p Policy) lookupSpec(table sharding.Spec) sharding.Spec {
	return sharding.Spec{p.otherRows(slices.Concat(table...)), nil, table.Axes(1)}
}

// head is the product of hidden states with a tied embedding table.
type head struct {
	Policy
	spec    sharding.Spec
	softcap float64
}

// parallel tells whether each device computes the logits of its own words.
func (h head) parallel() bool { return h.sharded() && len(h.spec.Axes(0)) > 0 }

// rows are the axes that split the rows of the batch beside the words.
func (h head) rows() []string {
	if !h.parallel() {
		return h.DataAxes
	}
	return h.otherRows(h.spec.Axes(0))
}

// logitsSpec splits [B, T, V].
func (h head) logitsSpec() sharding.Spec { return sharding.Spec{h.rows(), nil, h.spec.Axes(0)} }

// operands returns hidden states and table as the product takes them: with the words split, the device's words and all
// rows that need them, else the device's rows and all words.
func (h head) operands(x, table *Node) (*Node, *Node) {
	if !h.parallel() {
		return h.Batch(x), h.Weight(table, h.spec)
	}
	// Split by rows first: else it is the value that x was rounded from that gets sent, in float32.
	return h.constrain(h.Batch(x), sharding.Split(3, 0, h.rows()...)), h.constrain(ConvertDType(table, h.Compute), h.spec)
}

// logits returns float32 [B, T, V], capped.
func (h head) logits(x, table *Node) *Node {
	z := h.constrain(dot(x, table, []int{2}, nil, []int{1}, nil, dtypes.Float32), h.logitsSpec())
	if h.softcap > 0 {
		z = MulScalar(Tanh(MulScalar(z, 1/h.softcap)), h.softcap)
	}
	return z
}

// Logits returns softcap·tanh(x·tableᵀ/softcap), float32 [B, T, V], for x [B, T, H] and the table [V, H] split by spec.
// softcap 0 is no cap. It has no gradient: training uses CrossEntropy.
func (p Policy) Logits(x, table *Node, spec sharding.Spec, softcap float64) *Node {
	h := head{p, spec, softcap}
	return h.logits(h.operands(ConvertDType(x, p.Compute), table))
}

// CrossEntropy returns the summed negative log-likelihood of the shifted targets and their number, float32 scalars over
// the global batch, for x [B, T, H], the table [V, H] split by spec, and unshifted labels, int32 [B, T]: position t
// predicts labels[t+1], NoTarget is no target.
//
// With a table split by words each device computes the logits of its own words for all rows, and only statistics [B, T]
// are summed over the devices. Logits, cap, log-sum-exp and probabilities are float32.
//
// The loss is linear in its cotangent, so its gradients, but for that factor, are computed along with it: the logits
// are neither kept for the backward pass nor computed again in it. The table's gradient is a product with float32 output
// that stays where the table lies. Where only the loss is wanted, the compiler drops the gradients.
func (p Policy) CrossEntropy(x, table *Node, spec sharding.Spec, labels *Node, softcap float64) (sum, count *Node) {
	h := head{p, spec, softcap}
	targets := shift(labels)
	if h.parallel() {
		targets = h.constrain(targets, sharding.Split(2, 0, h.rows()...))
	}
	count = ReduceAllSum(ConvertDType(isTarget(targets), dtypes.Float32))
	out := transform.CustomVJP("cross_entropy", h.loss, lossBackward, ConvertDType(x, p.Compute), table, targets)
	return out[0], count
}

// shift moves labels one position forward; the last position has no target.
func shift(labels *Node) *Node {
	d := labels.Shape().Dimensions
	none := BroadcastToDims(Const(labels.Graph(), int32(NoTarget)), d[0], 1)
	return Concatenate([]*Node{Slice(labels, AxisRange(), AxisRangeToEnd(1)), none}, 1)
}

func isTarget(targets *Node) *Node {
	return NotEqual(targets, BroadcastToShape(Const(targets.Graph(), int32(NoTarget)), targets.Shape()))
}

// isWord is bool [B, T, V]: the word is the position's target.
func isWord(targets *Node, logits shapes.Shape) *Node {
	word := Iota(targets.Graph(), shapes.Make(dtypes.Int32, logits.Dimensions...), 2)
	return Equal(word, BroadcastToDims(InsertAxes(targets, -1), logits.Dimensions...))
}

// loss returns the summed loss and its gradients with respect to the hidden states and the table, both float32.
func (h head) loss(in []*Node) []*Node {
	x, table := h.operands(in[0], in[1])
	z := h.logits(x, table)
	targets, word := isTarget(in[2]), isWord(in[2], z.Shape())
	top := ReduceMax(z, 2)
	lse := Add(top, Log(ReduceSum(Exp(Sub(z, InsertAxes(top, -1))), 2)))
	picked := ReduceSum(Where(word, z, ZerosLike(z)), 2)
	nll := Where(targets, Sub(lse, picked), ZerosLike(lse))

	d := Sub(Exp(Sub(z, InsertAxes(lse, -1))), ConvertDType(word, dtypes.Float32))
	d = Mul(d, InsertAxes(ConvertDType(targets, dtypes.Float32), -1))
	if h.softcap > 0 {
		d = Mul(d, OneMinus(Square(MulScalar(z, 1/h.softcap))))
	}
	narrow := ConvertDType(d, h.Compute)
	dx, dtable := h.gradients(narrow, x, table)
	return []*Node{ReduceAllSum(nll), dx, dtable}
}

// gradients returns those of hidden states [B, T, H] and table [V, H], float32, given that of the logits [B, T, V] in
// the compute dtype. With the words split, each device has the part of its words in dx; the parts are summed in float32.
func (h head) gradients(dz, x, table *Node) (dx, dtable *Node) {
	logits, hidden := h.logitsSpec(), sharding.Split(3, 0, h.rows()...)
	rows := []int{0, 1}
	dtable = h.reduced(dz, x, transform.ReducedDot{ContractLHS: rows, ContractRHS: rows, LHS: logits, RHS: hidden, Out: h.spec, Reduce: h.Reduce})
	if !h.parallel() {
		return h.Batch(dot(dz, table, []int{2}, nil, []int{0}, nil, dtypes.Float32)), dtable
	}
	return h.reduced(dz, table, transform.ReducedDot{
		ContractLHS: []int{2}, ContractRHS: []int{0}, LHS: logits, RHS: h.spec, Out: h.BatchSpec(3, 0),
	}), dtable
}

// lossBackward scales the gradients that the loss computed.
func lossBackward(in, out, ct []*Node) []*Node {
	dx, dtable := Mul(out[1], ct[0]), Mul(out[2], ct[0])
	return []*Node{ConvertDType(dx, in[0].DType()), ConvertDType(dtable, in[1].DType()), nil}
}
