package job

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"weft/engine/plan"
)

func planConfig() PlanConfig {
	return PlanConfig{
		ModelFlags: ModelFlags{ModelID: "gemma-4-E2B", Freeze: FreezeAuto, ParamDType: DTypeAuto, ComputeDType: "bfloat16", Remat: "none", Gathers: 1},
		BatchFlags: BatchFlags{MaxSeqLen: 512, BatchSizePerDevice: 4}, UpdateFlags: UpdateFlags{FirstMomentDType: DTypeFloat32}, Topology: "4x4", AcceleratorType: "TPU-V6E", NumSlices: 1, Effort: "O0",
	}
}

// What does not fit is changed a little first: how the program is written, then the batch, then the moments, then the slice.
func TestSmallestChanges(t *testing.T) {
	p := &planner{config: planConfig()}
	var names []string
	for i, v := range p.smallestChanges() {
		names = append(names, v.name)
		require.Equal(t, 2, v.config.Gathers)
		require.Equal(t, strings.Contains(v.name, "--first-moment-dtype"), v.config.FirstMomentDType == "bfloat16", v.name)
		require.Equal(t, i > 0, v.config.Remat == "full")
		require.False(t, v.config.Save)
	}
	const before = "--gathers 2 --remat full --scan "
	const halved = before + "--first-moment-dtype bfloat16"
	require.Equal(t, []string{
		"--gathers 2", "--gathers 2 --remat full", "--gathers 2 --remat full --scan", before + "--batch-size-per-device 2", before + "--batch-size-per-device 1",
		halved, halved + " --batch-size-per-device 2", halved + " --batch-size-per-device 1",
		before + "--topology v6e:4x8", before + "--topology v6e:8x8",
	}, names)
}

// One setting changes at a time, and none is planned twice.
func TestParseVariations(t *testing.T) {
	c := planConfig()
	c.Compare = []string{"batch=4,8", "remat=none,full", "batch-size-per-device=8", "scan=true", "gathers=1,2"}
	variations, err := parseVariations(c)
	require.NoError(t, err)
	var names []string
	for _, v := range variations {
		names = append(names, v.name)
	}
	require.Equal(t, []string{"", "batch=8", "remat=full", "scan=true", "gathers=2"}, names)
	require.Equal(t, 8, variations[1].config.BatchSizePerDevice)
	require.Equal(t, "none", variations[1].config.Remat)
	require.Equal(t, 2, variations[4].config.Gathers)
	for _, wrong := range []string{"gathers=3", "gathers=one"} {
		c.Compare = []string{wrong}
		_, err := parseVariations(c)
		require.ErrorContains(t, err, "give one of 1, 2")
	}
}

// The table stays within 100 columns, and says what was tried.
func TestPlanTable(t *testing.T) {
	p := &StepPlan{Model: "Gemma 4 (gemma-4-E2B)", TrainedParameters: 2_279_759_104, FrozenParameters: 2_348_810_275}
	p.Topology, p.Chip, p.Devices, p.Mesh = "2 × v6e:4x4", "TPU v6e (Trillium)", 32, "replica=2, fsdp_y=4, fsdp_x=4"
	p.WireBytes = 7e9
	p.HBM.LimitBytes, p.HBM.PeakBytes = 31<<30, 40<<30
	p.Collectives = []plan.Collective{{
		Kind: "collective-permute", DType: "bf16", Count: 1000, Bytes: 7e9, GroupSize: 16, Axes: "xyz+core", Async: true,
		Algorithm: "SingleInputAllReduceScatterFusion/StrategyRing",
	}}
	p.Assumptions = []string{strings.Repeat("word ", 100)}
	p.Tried = []Attempt{{Change: "--remat full", Compiled: true, PeakBytes: 35 << 30, LimitBytes: 31 << 30}, {Change: "--topology v6e:4x8", Compiled: true, Fits: true, PeakBytes: 20 << 30}}
	var b strings.Builder
	require.NoError(t, WritePlans(&b, []*StepPlan{p}))
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 100, line)
		require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"))
	}
	require.Contains(t, b.String(), "It does not fit: 40.00 GiB of a device's 31.00 GiB (129%).")
	require.Contains(t, b.String(), "--remat full: does not fit, 35.00 GiB")
	require.Contains(t, b.String(), "The smallest change tried that fits: --topology v6e:4x8")
	require.NoError(t, WritePlans(&b, []*StepPlan{p, p}))
}
