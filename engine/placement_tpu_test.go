package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"weft/engine/hlo"
	"weft/engine/sharding"
	"weft/engine/transform"
	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// On every kind of slice, the mesh chosen for it lets the compiler keep the reduction of a gradient as reduce-scatters.
// No chip is present.
func TestReductionsOnTPUSlices(t *testing.T) { pjrttest.TPU(t, reductionsOnSlices) }

func reductionsOnSlices(t *testing.T, p *pjrt.Plugin) {
	for _, c := range []struct {
		topology, mesh, sums string
	}{
		{"v6e:4x4", "fsdp_y=4, fsdp_x=4", "1 × reduce-scatter %[1]s[512,1024]\n1 × reduce-scatter %[1]s[128,1024]\n"},
		{"v6e:2x4", "fsdp_y=4, fsdp_x=2", "1 × reduce-scatter %[1]s[512,1024]\n1 × reduce-scatter %[1]s[256,1024]\n"},
		{"v5e:2x4", "fsdp_y=4, fsdp_x=2", "1 × reduce-scatter %[1]s[512,1024]\n1 × reduce-scatter %[1]s[256,1024]\n"},
		{"v5p:2x2x2", "fsdp_z=2, fsdp_y=2, fsdp_x=2",
			"1 × reduce-scatter %[1]s[1024,1024]\n1 × reduce-scatter %[1]s[512,1024]\n1 × reduce-scatter %[1]s[256,1024]\n"},
		{"tpu7x:2x2x2", "fsdp=16", "1 × reduce-scatter %[1]s[128,1024]\n"},
	} {
		t.Run(c.topology, func(t *testing.T) {
			top, err := p.NewTopology(c.topology, nil)
			require.NoError(t, err)
			devices, err := top.Devices()
			require.NoError(t, err)
			mesh, err := FSDPMesh(devices, len(devices))
			require.NoError(t, err)
			require.Equal(t, c.mesh, mesh.String())
			for name, reduce := range map[string]dtypes.DType{"f32": dtypes.Float32, "bf16": dtypes.BFloat16} {
				require.ElementsMatch(t, splitLines(fmt.Sprintf(c.sums, name)), splitLines(reduction(t, top, mesh, reduce)))
			}
			require.NoError(t, top.Destroy())
		})
	}
}

// reduction lists what the gradient of a weight [2048, 1024] communicates.
func reduction(t *testing.T, top *pjrt.Topology, mesh sharding.Mesh, reduce dtypes.DType) string {
	t.Helper()
	split := sharding.Split(2, 0, mesh.AxisNames()...)
	inputs := []Input{
		{Name: "dy", DType: dtypes.BFloat16, Dims: []int{1024, 2048}, Spec: split},
		{Name: "x", DType: dtypes.BFloat16, Dims: []int{1024, 1024}, Spec: split},
	}
	low, err := Lower(mesh, "gradient", inputs, func(in []*graph.Node) []Output {
		d := transform.ReducedDot{ContractLHS: []int{0}, ContractRHS: []int{0}, LHS: split, RHS: split, Out: split, Reduce: reduce}
		return []Output{{Node: transform.ReduceScatterDot(in[0], in[1], d), Spec: split}}
	})
	require.NoError(t, err)
	a, err := CompileAhead(top, "test", low, pjrt.EffortO0)
	require.NoError(t, err)
	format, program, err := a.Executable.OptimizedProgram()
	require.NoError(t, err)
	require.NoError(t, a.Destroy())
	m, err := hlo.Parse(format, program)
	require.NoError(t, err)
	list, err := m.Collectives()
	require.NoError(t, err)
	return hlo.FormatCollectives(list)
}

func splitLines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }
