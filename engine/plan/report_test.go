package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/engine/sharding"
	"weft/engine/tpu"
	"weft/pjrt"
)

func TestArgumentsAreTheSumOfShards(t *testing.T) {
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 4})
	require.NoError(t, err)
	params := []engine.Param{
		{Name: "w", DType: dtypes.Float32, Dims: []int{8, 6}, Trainable: true, Spec: sharding.Split(2, 0, "fsdp")},
		{Name: "norm", DType: dtypes.Float32, Dims: []int{6}, Trainable: true},
		{Name: "table", DType: dtypes.BFloat16, Dims: []int{10, 8}, Spec: sharding.Split(2, 1, "fsdp")},
	}
	inputs := []engine.Input{{Name: "w"}, {Name: "w/m"}, {Name: "w/v"}, {Name: "norm"}, {Name: "norm/m"}, {Name: "norm/v"}, {Name: "table"},
		{Name: "ids", DType: dtypes.Int32, Dims: []int{4, 5}, Spec: sharding.Split(2, 0, "fsdp")}, {Name: "hyper", DType: dtypes.Float32, Dims: []int{3}}}
	h := Arguments(mesh, params, []engine.Slot{{Name: "m", DType: dtypes.BFloat16}, {Name: "v", DType: dtypes.Float32}}, inputs)
	require.Equal(t, HBM{ParametersBytes: 4 * (2*6 + 6), MomentsBytes: (2 + 4) * (2*6 + 6), FrozenBytes: 2 * 10 * 2, BatchBytes: 4*5 + 4*3}, h)
	require.EqualValues(t, 72+108+40+32, h.argumentBytes())
}

func TestClassesAddUpToThePeak(t *testing.T) {
	for _, live := range []sizes{{}, {gathered: 300, gradient: 100, activation: 50, temporary: 20}, {gathered: 3000, activation: 1000}} {
		h := HBM{ParametersBytes: 100, MomentsBytes: 200, FrozenBytes: 30, BatchBytes: 10}
		h.fill(pjrt.CompiledMemoryStats{Argument: 350, Output: 260, Alias: 250, Temp: 1000, GeneratedCode: 77}, live)
		require.EqualValues(t, 350+10+1000+77, h.PeakBytes)
		require.EqualValues(t, 10, h.PaddingBytes)
		require.Equal(t, h.PeakBytes, h.ParametersBytes+h.MomentsBytes+h.FrozenBytes+h.BatchBytes+h.PaddingBytes+h.OutputsBytes+
			h.GatheredBytes+h.GradientsBytes+h.ActivationsBytes+h.TemporariesBytes+h.CodeBytes)
		require.GreaterOrEqual(t, h.TemporariesBytes, int64(0))
	}
}

func TestExceeded(t *testing.T) {
	oom := func(message string) error {
		return fmt.Errorf("compile: %w", &pjrt.Error{Code: pjrt.ResourceExhausted, Message: message, Op: "compile"})
	}
	e := exceeded(oom("E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO temporaries (82.5G) exceeds available HBM (31.24G)."))
	require.NotNil(t, e)
	require.EqualValues(t, 82.5*(1<<30), e.UsedBytes)
	e = exceeded(oom("XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 40.00G of 31.24G hbm. Exceeded hbm capacity by 8.76G."))
	require.NotNil(t, e)
	require.EqualValues(t, 40<<30, e.UsedBytes)
	require.NotNil(t, exceeded(oom("something else")))
	require.Nil(t, exceeded(errors.New("RESOURCE_EXHAUSTED")))
	require.Nil(t, exceeded(&pjrt.Error{Code: pjrt.Internal}))
	require.Nil(t, exceeded(nil))
}

func TestReportOfWhatDoesNotFit(t *testing.T) {
	top, err := tpu.Parse("v6e:1x1")
	require.NoError(t, err)
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 1})
	require.NoError(t, err)
	c := &Compiled{
		Lowered: &engine.Lowered{Mesh: mesh}, Topology: top, LimitBytes: 1000,
		Exceeded: &Exceeded{UsedBytes: 5800, Message: "no room"},
	}
	params := []engine.Param{{Name: "w", DType: dtypes.Float32, Dims: []int{100}, Trainable: true}}
	r, err := Analyze(c, Facts{Params: params, Slots: []engine.Slot{{Name: "m", DType: dtypes.Float32}}, UsefulFLOPs: 7})
	require.NoError(t, err)
	require.False(t, r.Fits)
	require.Equal(t, "no room", r.Error)
	require.EqualValues(t, 5800, r.HBM.PeakBytes)
	require.EqualValues(t, 5000, r.HBM.TemporariesBytes)
	_, err = c.Save(t.TempDir())
	require.ErrorContains(t, err, "does not fit")
	require.NoError(t, c.Close())

	raw, err := json.Marshal(r)
	require.NoError(t, err)
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &fields))
	for _, name := range []string{"fits", "compile_s", "hbm", "flops", "hbm_bytes", "wire_bytes", "collectives", "roofline", "estimate", "assumptions"} {
		require.Contains(t, fields, name)
	}
	require.JSONEq(t, `[]`, string(fields["collectives"]))
}
