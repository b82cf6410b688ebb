package plan

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine"
	. "weft/engine/internal/hlotest" //nolint:revive // modules are written in its words
	"weft/engine/sharding"
)

// A loop whose body gathers a layer's weight, writes its gradient into a stack and keeps one temporary.
func TestLiveAtPeak(t *testing.T) {
	stack, layer, whole := F32(4, 256), F32(1, 256), F32(1024)
	carry := Tuple(stack, stack, F32(256)) // weights, gradients, activation
	element := func(id, of, i int64, shape Msg) Msg { return Op(id, "gte", "get-tuple-element", shape, of).Num(13, i) }
	body := Func(2, "body", Param(1, 0, carry), element(2, 1, 0, stack), element(3, 1, 1, stack), element(4, 1, 2, F32(256)),
		Constant(5, 0), Op(6, "slice", "dynamic-slice", layer, 2, 5), Op(7, "ag", "all-gather", whole, 6),
		Op(8, "big", "broadcast", F32(512), 4), Op(9, "vmem", "broadcast", In(1, F32(4096)), 4),
		Op(10, "g", "custom-call", layer, 7, 8, 9), Op(11, "dus", "dynamic-update-slice", stack, 3, 10, 5),
		Op(12, "x", "copy", F32(256), 4), Op(13, "out", "tuple", carry, 2, 11, 12))
	condition := Func(3, "condition", Param(1, 0, carry), Op(2, "c", "custom-call", Pred))
	entry := Func(1, "main", Param(1, 0, stack), Op(2, "zeros", "broadcast", stack), Op(3, "x", "broadcast", F32(256)),
		Op(4, "init", "tuple", carry, 1, 2, 3), Op(5, "loop", "while", carry, 4).Calls(2, 3), element(6, 5, 1, stack),
		Op(7, "update", "add", stack, 1, 6))
	m := parse(t, Program(1, body, condition, entry))

	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 4})
	require.NoError(t, err)
	params := []engine.Param{{Name: "w", DType: dtypes.Float32, Dims: []int{4, 1024}, Trainable: true, Spec: sharding.Split(2, 1, "fsdp")}}
	got := liveAtPeak(m, knownShapes(mesh, params))
	require.EqualValues(t, 4096, got[gathered], "one layer's weight")
	require.EqualValues(t, 4096, got[gradient], "the stack of gradients; the slice is not there yet, or instead of it")
	require.EqualValues(t, 1024, got[activation], "what the loop carries; the argument is not a temporary")
	require.EqualValues(t, 2048+1024, got[temporary], "the broadcast and the slice, not what lies in vector memory")
}

// A loop that puts whole weights in a stack for the backward pass: the stack is what is gathered, not an activation.
func TestKeptWeightsAreGathered(t *testing.T) {
	shards, whole, layer := F32(4, 2, 64), F32(4, 8, 64), F32(1, 8, 64)
	carry := Tuple(shards, whole)
	element := func(id, of, i int64, shape Msg) Msg { return Op(id, "gte", "get-tuple-element", shape, of).Num(13, i) }
	body := Func(2, "body", Param(1, 0, carry), element(2, 1, 0, shards), element(3, 1, 1, whole), Constant(4, 0),
		Op(5, "slice", "dynamic-slice", F32(1, 2, 64), 2, 4), Op(6, "ag", "all-gather", layer, 5),
		Op(7, "dus", "dynamic-update-slice", whole, 3, 6, 4), Op(8, "out", "tuple", carry, 2, 7))
	condition := Func(3, "condition", Param(1, 0, carry), Op(2, "c", "custom-call", Pred))
	entry := Func(1, "main", Param(1, 0, shards), Op(2, "zeros", "broadcast", whole), Op(3, "init", "tuple", carry, 1, 2),
		Op(4, "loop", "while", carry, 3).Calls(2, 3), element(5, 4, 1, whole), Op(6, "use", "custom-call", F32(4), 5))

	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 4})
	require.NoError(t, err)
	params := []engine.Param{{Name: "w", DType: dtypes.Float32, Dims: []int{4, 8, 64}, Trainable: true, Spec: sharding.Split(3, 1, "fsdp")}}
	got := liveAtPeak(parse(t, Program(1, body, condition, entry)), knownShapes(mesh, params))
	require.EqualValues(t, 4*(4*8*64+8*64), got[gathered], "all layers, and the one just gathered")
	require.Zero(t, got[activation])
	require.Zero(t, got[gradient])
}
