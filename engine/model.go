package engine

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine/sharding"
)

// Param declares one tensor of a model: a master weight that is trained, or a frozen tensor or buffer.
type Param struct {
	// Name is unique in the model.
	Name string
	// DType is the dtype it is stored in on the devices: Float32 for master weights, any float type for frozen ones.
	DType dtypes.DType
	// Dims is the global shape.
	Dims []int
	// Trainable tensors get a gradient and optimizer slots.
	Trainable bool
	// Spec splits it over the mesh.
	Spec sharding.Spec
	// Sources names the tensors of the checkpoint that it comes from. With more than one, the parameter is their
	// stack on axis 0, in this order.
	Sources []string
}

// BatchNodes are the inputs of one step, int32 [batch, seq] each, over the global batch.
type BatchNodes struct {
	// InputIDs are token ids, padded on the right.
	InputIDs *graph.Node
	// Labels are unshifted: position t+1 is the target of position t, and -100 is no target.
	Labels *graph.Node
	// Mask is 1 for a token, 0 for padding.
	Mask *graph.Node
}

// Model is the mathematics of a model, as the engine sees it.
type Model interface {
	// Params declares every tensor, in the order of the train state.
	Params() []Param
	// Loss returns the summed loss of the shifted targets of the global batch and their number, both float32
	// scalars. The weights are keyed by Param.Name and have the declared shapes.
	Loss(weights map[string]*graph.Node, batch BatchNodes) (sum, count *graph.Node)
}

// Slot is a tensor that an optimizer keeps for each trained parameter.
type Slot struct {
	Name string
	// DType is what it is kept as between steps: Float32, or a narrower one to which each new value is rounded.
	DType dtypes.DType
}

// Optimizer is the mathematics of one update of one tensor.
type Optimizer interface {
	// Slots are the tensors, of the parameter's shape and sharding, that it keeps for each parameter.
	Slots() []Slot
	// Hyper returns the scalars of update number step (1-based), computed on the host in float64.
	Hyper(step int) []float32
	// Update returns the new value of a float32 parameter and its slots. hyper are float32 scalars. The slots come and
	// go as float32, whatever they are kept as.
	Update(hyper []*graph.Node, param, grad *graph.Node, slots []*graph.Node) (newParam *graph.Node, newSlots []*graph.Node)
}
