package engine

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
	"weft/pjrt"
	"weft/pjrt/plugin"
)

// What is compiled ahead of time and kept is what a run on the same devices finds.
func TestAheadWarmsTheCache(t *testing.T) {
	dir := t.TempDir()
	rt := openCPU(t, 2, dir, slog.New(slog.NewTextHandler(io.Discard, nil)))
	inputs := []Input{{Name: "x", DType: dtypes.Float32, Dims: []int{8, 4}, Spec: sharding.Split(2, 0, "fsdp")}}
	low, err := Lower(rt.Mesh(), "twice", inputs, func(in []*graph.Node) []Output {
		return []Output{{Node: graph.Add(in[0], in[0]), Spec: inputs[0].Spec}}
	})
	require.NoError(t, err)

	top, err := rt.client.TopologyDescription()
	require.NoError(t, err)
	devices, err := AheadDevices(top, 2)
	require.NoError(t, err)
	require.Equal(t, []int{rt.devices[0].ID(), rt.devices[1].ID()}, []int{devices[0].ID(), devices[1].ID()})
	_, err = AheadDevices(top, 3)
	require.ErrorContains(t, err, "the mesh needs 3 devices, the topology has 2")

	info, err := plugin.Ensure(t.Context(), "cpu", os.Stderr)
	require.NoError(t, err)
	ahead, err := CompileAhead(top, info.SHA256, low, pjrt.EffortDefault)
	require.NoError(t, err)
	defer func() { require.NoError(t, ahead.Destroy()) }()
	path, err := ahead.Save(dir)
	require.NoError(t, err)
	require.Equal(t, dir, filepath.Dir(path))

	program, err := rt.CompileLowered(low)
	require.NoError(t, err)
	defer program.Destroy()
	require.True(t, program.FromCache)
}
