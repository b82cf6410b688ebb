// Package arch is what every model architecture offers: what the registry opens, what the loader and the exporter of
// checkpoints ask, and the options that all architectures share.
package arch

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"weft/engine"
	"weft/engine/nn"
	"weft/engine/sharding"
)

// Values of Options.Remat.
const (
	// RematNone keeps every activation that the backward pass needs.
	RematNone = "none"
	// RematFull keeps each layer's input only and computes the layer again in the backward pass.
	RematFull = "full"
)

// Options are the choices that do not change a model's mathematics.
type Options struct {
	// Policy has the mesh, the axes that split the batch and the compute dtype.
	Policy nn.Policy
	// Scan runs repeated groups of layers by one compiled body, over stacked parameters.
	Scan bool
	// Remat is RematNone or RematFull.
	Remat string
	// Gathers is how often a step gathers a split weight of the layers: 2, for the forward and again for the backward
	// pass, or 1, which keeps the whole weights of all layers in the compute dtype between the passes. 0 is 2.
	Gathers int
	// Freeze has patterns of names of tensors that are not trained: `*` and `?` as in a shell, matched against the
	// checkpoint's name or the name without `model.` and `.weight`. nil freezes the architecture's default, an empty
	// list nothing.
	Freeze []string
	// FrozenDType is the dtype of frozen tensors on the devices; 0 is the one that config.json declares.
	FrozenDType dtypes.DType
	// ShardAxes are the mesh axes that split the parameters, major first; nil are Policy.DataAxes.
	ShardAxes []string
	// MinShardElements is the size below which a tensor is replicated; 0 is the architecture's default.
	MinShardElements int
}

// Info is what others need to know of a model.
type Info struct {
	// Name is what a user calls the architecture, as "Gemma 4".
	Name string
	// VocabSize bounds the token ids; MaxPositions is the longest sequence that the model was made for.
	VocabSize, MaxPositions int
	// BOS and EOS are token ids; Pad is -1 when the model has none.
	BOS, EOS []int
	Pad      int
	// DType is the dtype that the checkpoint's configuration declares.
	DType dtypes.DType
}

// Architecture is a parsed configuration.
type Architecture interface {
	Info() Info
	// New declares the model. An error names the option at fault.
	New(Options) (Model, error)
}

// Extra says what a tensor of a checkpoint is to a model that has no parameter for it.
type Extra int

const (
	// Unexpected tensors are a fault: the checkpoint is another model's.
	Unexpected Extra = iota
	// Untouched tensors are skipped on purpose, and carried over when the model is exported.
	Untouched
	// Derived tensors repeat a parameter, and are left out when the model is exported: they would be stale.
	Derived
)

// Model is the mathematics of a model, with what its checkpoints need.
type Model interface {
	engine.Model
	// Logits returns float32 [B, T, V] from int32 ids and mask [B, T].
	Logits(weights map[string]*graph.Node, ids, mask *graph.Node) *graph.Node
	// UsefulFLOPs is the arithmetic that one training step of batch rows of seqLen tokens needs, over all devices: what a
	// program does beyond it is recomputation and waste.
	UsefulFLOPs(batch, seqLen int) float64
	// Init writes the random values of one region of a parameter in its dtype. They depend on the seed, the tensor and
	// the position only.
	Init(p engine.Param, r sharding.Region, seed uint64, dst []byte) error
	// TextPrefixes lists what checkpoints put in the place of the leading `model.` of Param.Sources, likeliest first.
	TextPrefixes() []string
	// Classify tells what a tensor without a parameter is. name is spelled as in the file; text as in Param.Sources, ""
	// when the name has none of the prefixes.
	Classify(name, text string) Extra
}
