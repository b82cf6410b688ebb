// Package nn has the building blocks of transformers, aware of precision and of sharding, so that a model's file holds
// mathematics only.
//
// Matrices are float32 master weights that lie split over the mesh. A block converts its weight to the compute dtype
// while it is still split, gathers it for one use and forgets it; the backward pass gathers again (ZeRO-3), unless
// Policy.Kept gathered it for both. The weight's gradient is a float32 product that is reduce-scattered in float32 and lands split as the master is.
// Activations are split by rows of the batch. Norms, softmax, rotary embeddings and the loss compute in float32.
//
// The functions panic on wrong shapes, as GoMLX does; the engine turns that into an error.
package nn

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" //nolint:revive // the graph's operations read as mathematics
	"github.com/gomlx/gomlx/support/exceptions"

	"weft/engine/sharding"
	"weft/engine/transform"
)

// Policy says where tensors lie and in which precision products are computed.
type Policy struct {
	// Mesh is the program's mesh. With one device, or none given, nothing is constrained.
	Mesh sharding.Mesh
	// DataAxes are the mesh axes that split the rows of the batch, major first.
	DataAxes []string
	// Compute is the dtype of activations and of the operands of products: BFloat16 or Float32.
	Compute dtypes.DType
	// Reduce is the dtype in which gradients of weights are sent and summed over the devices: Float32, the default, or
	// BFloat16, which halves what goes over the wire.
	Reduce dtypes.DType
	// Gathering says where the backward pass takes a whole weight from.
	Gathering Gathering
}

// Gathering says where the backward pass takes a whole weight from.
type Gathering int

const (
	// GatherAgain gathers it a second time. Right in a scan, whose backward loop is apart from the forward one.
	GatherAgain Gathering = iota
	// GatherApart gathers it a second time behind a barrier. Right for a layer in the open, where the compiler would
	// merge the two and keep the whole weight alive from one pass to the other.
	GatherApart
	// GatherOnce keeps it from the forward pass. Right where that is computed again just before (remat).
	GatherOnce
)

func (p Policy) sharded() bool { return p.Mesh.NumDevices() > 1 }

// constrain fixes the sharding of x and of its cotangent.
func (p Policy) constrain(x *Node, spec sharding.Spec) *Node {
	if !p.sharded() {
		return x
	}
	return transform.Constrain(x, spec)
}

// BatchSpec is the sharding of a tensor of the given rank whose dimension dim runs over the rows of the batch.
func (p Policy) BatchSpec(rank, dim int) sharding.Spec {
	if !p.sharded() || len(p.DataAxes) == 0 {
		return sharding.Replicated()
	}
	return sharding.Split(rank, dim, p.DataAxes...)
}

// Batch splits dimension 0 of x over the data axes and nothing else.
func (p Policy) Batch(x *Node) *Node { return p.constrain(x, p.BatchSpec(x.Rank(), 0)) }

// Weight gathers a master weight for use: it is converted to the compute dtype while still split by spec, then made
// whole on every device. Its gradient goes back to float32 and to spec after it was reduced in the compute dtype; the
// other blocks of this package, which reduce in float32, do not use it.
func (p Policy) Weight(w *Node, spec sharding.Spec) *Node {
	return p.whole(ConvertDType(w, p.Compute), spec)
}

// Kept gathers a master weight [out, in], split by spec, for both passes; LinearKept takes the result beside w, which gets
// the gradient. Called in a Scan's body, the whole weights of all steps are stacked; called outside of a Checkpoint whose
// function multiplies by it, the weight is not gathered again. It is nil where there is nothing to gather: with one
// device, and for a weight that is not split.
func (p Policy) Kept(w *Node, spec sharding.Spec) *Node {
	if !p.sharded() || spec.IsReplicated() {
		return nil
	}
	return transform.Keep(p.Weight(w, spec))
}

// whole gathers w, which is split by spec; the gradient is reduced in w's dtype and split again.
func (p Policy) whole(w *Node, spec sharding.Spec) *Node {
	if !p.sharded() || spec.IsReplicated() {
		return w
	}
	return transform.ConstrainTo(transform.Constrain(w, spec), sharding.Replicated(), spec)
}

// reduced is a product whose contraction is split over devices, float32; see transform.ReduceScatterDot.
func (p Policy) reduced(l, r *Node, d transform.ReducedDot) *Node {
	if !p.sharded() {
		return dot(l, r, d.ContractLHS, nil, d.ContractRHS, nil, dtypes.Float32)
	}
	return transform.ReduceScatterDot(l, r, d)
}

// weightGradient is the float32 product of dy [..., out] and x [..., in] over all rows, [out, in], summed over the data
// axes in Policy.Reduce and split by spec.
func (p Policy) weightGradient(dy, x *Node, spec sharding.Spec) *Node {
	rows := until(x.Rank() - 1)
	batch := p.BatchSpec(x.Rank(), 0)
	return p.reduced(dy, x, transform.ReducedDot{ContractLHS: rows, ContractRHS: rows, LHS: batch, RHS: batch, Out: spec, Reduce: p.Reduce})
}

// otherRows are the data axes that are not among axes: they split the rows of the batch where axes split something else.
func (p Policy) otherRows(axes []string) []string {
	return slices.DeleteFunc(slices.Clone(p.DataAxes), func(a string) bool { return slices.Contains(axes, a) })
}

// dot is a DotGeneral of operands of one dtype, accumulated as the compiler does (float32 on every platform), with
// an output of dtype out. The batch dimensions of the output come first, then those of l, then those of r.
func dot(l, r *Node, contractL, batchL, contractR, batchR []int, out dtypes.DType) *Node {
	if l.DType() != r.DType() {
		exceptions.Panicf("nn: product of %s and %s: convert them to one dtype", l.Shape(), r.Shape())
	}
	// GoMLX asks for a float32 accumulator by default, which its gradients take for float32 operands.
	b := Dot(l, r).WithAccumulatorDType(dtypes.InvalidDType)
	if out != l.DType() {
		b = b.WithOutputDType(out)
	}
	return b.General(contractL, batchL, contractR, batchR)
}

// until lists 0..n-1.
func until(n int) []int {
	axes := make([]int, n)
	for i := range axes {
		axes[i] = i
	}
	return axes
}
