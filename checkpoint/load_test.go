package checkpoint_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
	"weft/engine"
	"weft/engine/sharding"
	"weft/internal/hostmem"
	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// large is a model of which some shards are large enough to live in the memory that they are read into: all but one on a single
// device, "rows" and, as it is replicated, "whole" on 16.
type large struct{ mesh sharding.Mesh }

func (m large) Params() []engine.Param {
	var axes []string
	for _, a := range m.mesh.Axes {
		axes = append(axes, a.Name)
	}
	split := func(name string, dtype dtypes.DType, dims ...int) engine.Param {
		return engine.Param{Name: name, DType: dtype, Dims: dims, Trainable: true, Spec: sharding.LargestDivisible(m.mesh, axes, dims, 0)}
	}
	return []engine.Param{
		split("rows", dtypes.Float32, 4096, 1040), split("columns", dtypes.BFloat16, 1032, 1024), split("stack", dtypes.Float32, 3, 512, 700),
		split("whole", dtypes.Float32, 7, 38001), split("norm", dtypes.Float32, 2048),
	}
}

func (large) Loss(map[string]*graph.Node, engine.BatchNodes) (sum, count *graph.Node) {
	panic("no step")
}

// counted has a slot, which holds what is loaded into them.
type counted struct{}

func (counted) Slots() []engine.Slot { return []engine.Slot{{Name: "a", DType: dtypes.Float32}} }
func (counted) Hyper(int) []float32  { return nil }
func (counted) Update([]*graph.Node, *graph.Node, *graph.Node, []*graph.Node) (*graph.Node, []*graph.Node) {
	panic("no step")
}

// open makes the state on devices of a mesh, all values zero.
func open(t *testing.T, name string, axes ...sharding.Axis) (*engine.Runtime, *engine.State) {
	t.Helper()
	mesh, err := sharding.NewMesh(axes...)
	require.NoError(t, err)
	rt, err := engine.Open(engine.Options{Plugin: pjrttest.Plugin(t, name), Mesh: mesh, ClientOptions: map[string]any{"cpu_device_count": int64(mesh.NumDevices())}})
	require.NoError(t, err)
	state, err := rt.NewState(large{mesh}, counted{}, func(engine.Param, sharding.Region, []byte) error { return nil })
	require.NoError(t, err)
	return rt, state
}

// tensorBytes are a tensor's, by its name; half of the numbers are no more than their place.
func tensorBytes(e engine.Entry) []byte {
	out := make([]byte, (sharding.Region{Size: e.Array.Dims}).Elements()*e.Array.DType.Size())
	x := uint64(len(e.Name))*0x9e3779b97f4a7c15 + uint64(e.Name[0])
	for i := 0; i+8 <= len(out); i += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint32(out[i:], math.Float32bits(float32(i)))
		binary.LittleEndian.PutUint32(out[i+4:], uint32(x))
	}
	return out
}

// cut copies a region out of a tensor of rank 1 to 3.
func cut(whole []byte, dims []int, r sharding.Region, dst []byte, size int) {
	for len(dims) < 3 {
		dims = append([]int{1}, dims...)
		r = sharding.Region{Start: append([]int{0}, r.Start...), Size: append([]int{1}, r.Size...)}
	}
	run := r.Size[2] * size
	for i := range r.Size[0] {
		for j := range r.Size[1] {
			from := (((r.Start[0]+i)*dims[1]+r.Start[1]+j)*dims[2] + r.Start[2]) * size
			copy(dst[:run], whole[from:])
			dst = dst[run:]
		}
	}
}

func requireValues(t *testing.T, state *engine.State, want map[string][]byte) {
	t.Helper()
	for _, e := range state.Entries() {
		for _, s := range e.Array.Shards() {
			part, got := make([]byte, e.Array.LocalBytes()), make([]byte, e.Array.LocalBytes())
			cut(want[e.Name], e.Array.Dims, s.Region, part, e.Array.DType.Size())
			require.NoError(t, s.Read(got))
			if string(part) != string(got) {
				require.Failf(t, "wrong bytes", "%s on device %d", e.Name, s.Position)
			}
		}
	}
}

// A state of shards that are read into the memory they stay in is, saved from 16 devices and loaded on any number of them, the same
// bit by bit. What it held before is returned to the system, and in the end all of it is.
func TestLoadWithoutACopy(t *testing.T) {
	names := map[dtypes.DType]safetensors.DType{dtypes.Float32: safetensors.F32, dtypes.BFloat16: safetensors.BF16}
	manager, err := checkpoint.Open(checkpoint.OS{}, t.TempDir(), checkpoint.Options{})
	require.NoError(t, err)
	held, handles := hostmem.Held(), pjrt.LiveHandles()
	rt, state := open(t, "cpu", sharding.Axis{Name: "fsdp", Size: 16})
	want := map[string][]byte{}
	snapshot := &checkpoint.Snapshot{Step: 5}
	for _, e := range state.Entries() {
		want[e.Name] = tensorBytes(e)
		tensor := checkpoint.Tensor{Name: e.Name, DType: names[e.Array.DType], Shape: e.Array.Dims}
		for _, s := range e.Array.OwnedShards() {
			tensor.Shards = append(tensor.Shards, checkpoint.Shard{Start: s.Region.Start, Size: s.Region.Size, Fetch: func(dst []byte) error {
				cut(want[e.Name], e.Array.Dims, s.Region, dst, e.Array.DType.Size())
				return nil
			}})
		}
		snapshot.State = append(snapshot.State, tensor)
	}
	entry, err := manager.Save(t.Context(), snapshot)
	require.NoError(t, err)
	state.Destroy()
	require.NoError(t, rt.Close())

	for _, name := range pjrttest.CPUPlugins {
		for _, axes := range [][]sharding.Axis{
			{{Name: "fsdp", Size: 1}}, {{Name: "fsdp", Size: 2}}, {{Name: "fsdp", Size: 4}}, {{Name: "fsdp", Size: 8}}, {{Name: "fsdp", Size: 16}},
			{{Name: "replica", Size: 2}, {Name: "fsdp", Size: 4}},
		} {
			t.Run(fmt.Sprintf("%s on %v", name, axes), func(t *testing.T) {
				rt, state := open(t, name, axes...)
				for range 2 { // the second replaces what the first loaded
					reader, err := manager.OpenState(entry)
					require.NoError(t, err)
					require.NoError(t, state.Restore(func(engine.Entry) bool { return true }, func(e engine.Entry, r sharding.Region, dst []byte) error {
						return reader.ReadRegion(e.Name, r.Start, r.Size, dst)
					}))
					require.NoError(t, reader.Close())
					requireValues(t, state, want)
					owned := int64(0)
					for _, e := range state.Entries() {
						if e.Array.LocalBytes() >= 1<<20 {
							owned += int64(e.Array.LocalBytes() * len(e.Array.OwnedShards()))
						}
					}
					require.NotZero(t, owned)
					require.GreaterOrEqual(t, hostmem.Held()-held, owned, "the large shards are where they were read")
				}
				state.Destroy()
				require.NoError(t, rt.Close())
				require.Eventually(t, func() bool { return hostmem.Held() <= held }, time.Minute, time.Millisecond, "host memory is not returned")
				require.Equal(t, handles, pjrt.LiveHandles())
			})
		}
	}
}
