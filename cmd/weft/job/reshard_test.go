package job

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
	"weft/engine"
	"weft/engine/sharding"
	"weft/engine/trainer"
	"weft/optim"
	"weft/pjrt"
	"weft/pjrt/plugin"
)

// holder is a model that only holds parameters: split along rows or columns, not at all, and a frozen one.
type holder struct {
	mesh  sharding.Mesh
	dtype dtypes.DType
}

func (h holder) Params() []engine.Param {
	axes := make([]string, 0, 2)
	for _, a := range h.mesh.Axes {
		axes = append(axes, a.Name)
	}
	split := func(name string, dims ...int) engine.Param {
		return engine.Param{Name: name, DType: h.dtype, Dims: dims, Trainable: true, Spec: sharding.LargestDivisible(h.mesh, axes, dims, 0)}
	}
	return []engine.Param{
		split("embed", 64, 24), split("down", 24, 64), split("stack", 3, 32, 16), split("norm", 7),
		{Name: "frozen", DType: h.dtype, Dims: []int{8}},
	}
}

func (holder) Loss(map[string]*graph.Node, engine.BatchNodes) (sum, count *graph.Node) {
	panic("no step")
}

// value is that of one element of a tensor, by its place in the whole.
func value(name string, at int) float32 {
	r := rand.New(rand.NewPCG(uint64(len(name)), uint64(at)))
	return float32(r.NormFloat64()) * float32(name[len(name)-1])
}

// whole is a tensor's float32 bytes.
func whole(name string, dims []int) []byte {
	n := 1
	for _, d := range dims {
		n *= d
	}
	out := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(value(name, i)))
	}
	return out
}

// part copies a region of a tensor of elements of 4 bytes.
func part(all []byte, dims []int, r sharding.Region, dst []byte) error {
	index := make([]int, len(dims))
	for at := 0; at < len(dst); at += 4 {
		flat := 0
		for d := range dims {
			flat = flat*dims[d] + r.Start[d] + index[d]
		}
		copy(dst[at:at+4], all[4*flat:])
		for d := len(dims) - 1; d >= 0; d-- {
			if index[d]++; index[d] < r.Size[d] {
				break
			}
			index[d] = 0
		}
	}
	return nil
}

// openHolder makes the state on devices of a mesh, all values zero.
func openHolder(t *testing.T, dtype dtypes.DType, axes ...sharding.Axis) (*engine.Runtime, *engine.State) {
	t.Helper()
	info, err := plugin.Ensure(context.Background(), "cpu", os.Stderr)
	require.NoError(t, err)
	p, err := pjrt.Load(info.Path)
	require.NoError(t, err)
	mesh, err := sharding.NewMesh(axes...)
	require.NoError(t, err)
	rt, err := engine.Open(engine.Options{Plugin: p, PluginID: info.SHA256, Mesh: mesh,
		ClientOptions: map[string]any{"cpu_device_count": int64(mesh.NumDevices())}})
	require.NoError(t, err)
	schedule, err := optim.NewSchedule("constant", 1e-3, 0, 0, 1)
	require.NoError(t, err)
	opt, err := optim.NewAdamW(schedule, 0.9, 0.999, 1e-8, 0)
	require.NoError(t, err)
	state, err := rt.NewState(holder{mesh, dtype}, opt, func(engine.Param, sharding.Region, []byte) error { return nil })
	require.NoError(t, err)
	return rt, state
}

// A state saved from 16 devices is, on 1, 2, 4 and 8 of them, on meshes of two axes and back on 16, the same bit by bit;
// where the parameters are bfloat16 they are the nearest numbers, and the moments, which stay float32, the same.
func TestSaveOn16DevicesLoadElsewhere(t *testing.T) {
	manager, err := checkpoint.Open(checkpoint.OS{}, t.TempDir(), checkpoint.Options{})
	require.NoError(t, err)
	rt, state := openHolder(t, dtypes.Float32, sharding.Axis{Name: "fsdp", Size: 16})
	all := func(engine.Entry) bool { return true }
	require.NoError(t, state.Restore(all, func(e engine.Entry, r sharding.Region, dst []byte) error {
		return part(whole(e.Name, e.Array.Dims), e.Array.Dims, r, dst)
	}))
	async := checkpoint.NewAsync(manager, checkpoint.AsyncOptions{})
	require.NoError(t, async.Save(t.Context(), &checkpoint.Snapshot{Step: 5, State: stateTensors(state)}))
	// The devices are gone before the writer is done, as buffers are that a step was given.
	state.Destroy()
	require.NoError(t, rt.Close())
	require.NoError(t, async.Close(t.Context()))
	entry, ok, err := manager.Latest()
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, manager.Verify(entry))

	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		for _, axes := range [][]sharding.Axis{
			{{Name: "fsdp", Size: 1}}, {{Name: "fsdp", Size: 2}}, {{Name: "fsdp", Size: 4}}, {{Name: "fsdp", Size: 8}}, {{Name: "fsdp", Size: 16}},
			{{Name: "replica", Size: 2}, {Name: "fsdp", Size: 4}}, {{Name: "data", Size: 4}, {Name: "fsdp", Size: 4}},
		} {
			t.Run(fmt.Sprintf("%s on %v", dtype, axes), func(t *testing.T) {
				rt, state := openHolder(t, dtype, axes...)
				reader, err := manager.OpenState(entry)
				require.NoError(t, err)
				require.NoError(t, restore(state, reader, trainer.Position{Step: 5}))
				require.NoError(t, reader.Close())
				require.Equal(t, 5, state.Step)
				trained := 0
				for _, e := range state.Entries() {
					if !e.Param.Trainable {
						continue
					}
					trained++
					want := whole(e.Name, e.Array.Dims)
					if e.Array.DType == dtypes.BFloat16 {
						narrow := make([]byte, len(want)/2)
						require.NoError(t, safetensors.F32ToBF16(narrow, want))
						want = narrow
					}
					got, err := e.Array.Read()
					require.NoError(t, err)
					require.True(t, string(want) == string(got), e.Name)
				}
				require.Equal(t, 12, trained)
				state.Destroy()
				require.NoError(t, rt.Close())
			})
		}
	}
	require.NoError(t, manager.Close())
}
