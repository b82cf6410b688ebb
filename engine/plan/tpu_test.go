package plan

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/sharding"
	"weft/engine/tpu"
	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// inChild runs the test in a process of its own with libtpu.
func inChild(t *testing.T, body func(t *testing.T, p Plugin)) {
	t.Helper()
	pjrttest.TPU(t, func(t *testing.T, p *pjrt.Plugin) { body(t, Plugin{Plugin: p, ID: "test"}) })
}

// What package tpu says of a slice is what libtpu says: devices, where they stand, memory.
func TestTopologiesAgreeWithLibtpu(t *testing.T) {
	inChild(t, func(t *testing.T, p Plugin) {
		for _, name := range []string{"v5e:1x1", "v5e:2x4", "v6e:4x4", "v6e:8x16", "v6e:16x16", "v5p:2x2x2", "v5p:4x4x8", "tpu7x:2x2x1", "tpu7x:2x2x2", "tpu7x:4x4x4"} {
			for slices := 1; slices <= 2; slices++ {
				top, err := tpu.Parse(name)
				require.NoError(t, err)
				top, err = top.WithSlices(slices)
				require.NoError(t, err)
				described, limit, err := Describe(p, top)
				require.NoError(t, err, top)
				require.InEpsilon(t, top.Chip.HBMBytesPerDevice(), limit, 0.03, top)
				devices, err := described.Devices()
				require.NoError(t, err)
				hosts := map[int]bool{}
				for _, d := range devices {
					hosts[d.ProcessIndex()] = true
				}
				require.Len(t, hosts, top.Hosts(), top)
				if slices == 1 {
					attributes, err := described.Attributes()
					require.NoError(t, err)
					want := []int64{0, 0, 0}
					for i, a := range top.Axes() {
						if a.Wrap {
							want[i] = 1
						}
					}
					require.Equal(t, want, attributes["wrap"], top)
				}
				require.NoError(t, described.Destroy())
			}
		}
	})
}

// lowered is a program from text, for 16 devices.
func lowered(t *testing.T, text string, inputs ...engine.Input) *engine.Lowered {
	t.Helper()
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 16})
	require.NoError(t, err)
	return &engine.Lowered{Name: "test", Text: []byte(text), Mesh: mesh, Inputs: inputs}
}

// scanText runs eight layers, each of which gathers its weight: 64 rows a device of 512, [8, 512, 512] weights.
const scanText = `module @scan attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["fsdp"=16]>
  func.func public @main(%x: tensor<1024x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>},
      %w: tensor<8x512x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>})
      -> (tensor<1024x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %out:3 = stablehlo.while(%i = %zero, %y = %x, %v = %w) : tensor<i32>, tensor<1024x512xbf16>, tensor<8x512x512xbf16>
     cond {
      %n = stablehlo.constant dense<8> : tensor<i32>
      %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %start = stablehlo.constant dense<0> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %slice = stablehlo.dynamic_slice %v, %i, %start, %start, sizes = [1, 512, 512] : (tensor<8x512x512xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x512x512xbf16>
      %layer = stablehlo.reshape %slice : (tensor<1x512x512xbf16>) -> tensor<512x512xbf16>
      %split = sdy.sharding_constraint %layer <@mesh, [{"fsdp"}, {}]> : tensor<512x512xbf16>
      %whole = sdy.sharding_constraint %split <@mesh, [{}, {}]> : tensor<512x512xbf16>
      %rows = sdy.sharding_constraint %y <@mesh, [{"fsdp"}, {}]> : tensor<1024x512xbf16>
      %z = stablehlo.dot_general %rows, %whole, contracting_dims = [1] x [0] : (tensor<1024x512xbf16>, tensor<512x512xbf16>) -> tensor<1024x512xbf16>
      stablehlo.return %next, %z, %v : tensor<i32>, tensor<1024x512xbf16>, tensor<8x512x512xbf16>
    }
    return %out#1 : tensor<1024x512xbf16>
  }
}`

// A scan compiled for a slice that is not there: the trip count, which a TPU's program does not carry, its products,
// written as convolutions, its gathers, its shards, and an entry of the compile cache.
func TestPlanOfAScanOnLibtpu(t *testing.T) {
	inChild(t, func(t *testing.T, p Plugin) {
		top, err := tpu.Parse("v6e:4x4")
		require.NoError(t, err)
		inputs := []engine.Input{
			{Name: "x", DType: dtypes.BFloat16, Dims: []int{1024, 512}, Spec: sharding.Split(2, 0, "fsdp")},
			{Name: "w", DType: dtypes.BFloat16, Dims: []int{8, 512, 512}, Spec: sharding.Split(3, 1, "fsdp")},
		}
		c, err := Compile(t.Context(), p, top, lowered(t, scanText, inputs...), pjrt.EffortO0)
		require.NoError(t, err)
		params := []engine.Param{{Name: "w", DType: dtypes.BFloat16, Dims: []int{8, 512, 512}, Spec: inputs[1].Spec}}
		r, err := Analyze(c, Facts{Params: params, UsefulFLOPs: 16 * 8 * 2 * 64 * 512 * 512, TokensPerStep: 1024})
		require.NoError(t, err)
		require.True(t, r.Fits)
		require.InDelta(t, 8*2*64*512*512, r.FLOPs.Executed, 0)
		require.InDelta(t, r.FLOPs.Useful, r.FLOPs.Executed, 0)
		require.EqualValues(t, 8*32*512*2, r.HBM.FrozenBytes)
		require.EqualValues(t, 64*512*2, r.HBM.BatchBytes)
		require.EqualValues(t, c.Memory.Argument, r.HBM.FrozenBytes+r.HBM.BatchBytes+r.HBM.PaddingBytes)
		require.GreaterOrEqual(t, r.HBM.PaddingBytes, int64(0))
		var gathered int64
		for _, x := range r.Collectives {
			require.Equal(t, hlo.AllGather, x.Kind)
			require.Equal(t, "xy", x.Axes)
			gathered += x.Count
		}
		require.EqualValues(t, 8, gathered)
		require.EqualValues(t, 8*512*512*2*15/16, r.WireBytes)
		require.InDelta(t, float64(r.WireBytes)/200e9, r.Roofline.ICIS, 1e-9)
		require.Equal(t, "ici", r.Roofline.Bound)
		require.Greater(t, r.Estimate.StepSHigh, r.Estimate.StepSLow)
		require.Contains(t, strings.Join(r.Assumptions, "\n"), "a corner has 2 ICI links of 100 GB/s")
		_, err = c.Save(t.TempDir())
		require.ErrorContains(t, err, "another effort")
		require.NoError(t, c.Close())

		c, err = Compile(t.Context(), p, top, lowered(t, scanText, inputs...), pjrt.EffortDefault)
		require.NoError(t, err)
		path, err := c.Save(t.TempDir())
		require.NoError(t, err)
		require.FileExists(t, path)
		require.NoError(t, c.Close())
		require.Zero(t, pjrt.LiveHandles()["topology"]+pjrt.LiveHandles()["executable"])
	})
}

// A program that needs more memory than a chip has is a plan that does not fit, not an error.
func TestPlanOfWhatDoesNotFitOnLibtpu(t *testing.T) {
	const text = `module @huge attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["fsdp"=16]>
  func.func public @main(%x: tensor<65536x16xf32>) -> (tensor<f32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : (tensor<65536x16xf32>, tensor<65536x16xf32>) -> tensor<65536x65536xf32>
    %kept = stablehlo.optimization_barrier %y : tensor<65536x65536xf32>
    %z = stablehlo.dot_general %kept, %kept, contracting_dims = [1] x [0] : (tensor<65536x65536xf32>, tensor<65536x65536xf32>) -> tensor<65536x65536xf32>
    %z2, %k2 = stablehlo.optimization_barrier %z, %kept : tensor<65536x65536xf32>, tensor<65536x65536xf32>
    %a = stablehlo.reduce(%z2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<65536x65536xf32>, tensor<f32>) -> tensor<f32>
    %b = stablehlo.reduce(%k2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<65536x65536xf32>, tensor<f32>) -> tensor<f32>
    return %a, %b : tensor<f32>, tensor<f32>
  }
}`
	inChild(t, func(t *testing.T, p Plugin) {
		top, err := tpu.Parse("v6e:4x4")
		require.NoError(t, err)
		c, err := Compile(t.Context(), p, top, lowered(t, text, engine.Input{Name: "x", DType: dtypes.Float32, Dims: []int{65536, 16}}), pjrt.EffortO0)
		require.NoError(t, err)
		require.NotNil(t, c.Exceeded)
		r, err := Analyze(c, Facts{})
		require.NoError(t, err)
		require.False(t, r.Fits)
		require.Greater(t, r.HBM.PeakBytes, r.HBM.LimitBytes)
		require.Contains(t, r.Error, "Ran out of memory")
		require.NotContains(t, r.Error, "\n")
	})
}

// What the compiler calls temporaries is all that a program takes: an argument that is updated in place once, one that is
// not and its result too.
func TestExceededCountsArgumentsOnLibtpu(t *testing.T) {
	const text = `module @huge attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%%s: tensor<%dx1048576xf32>%s, %%x: tensor<65536x16xf32>) -> (tensor<%[1]dx1048576xf32>, tensor<f32>) {
    %%zero = stablehlo.constant dense<0.0> : tensor<f32>
    %%y = stablehlo.dot_general %%x, %%x, contracting_dims = [1] x [1] : (tensor<65536x16xf32>, tensor<65536x16xf32>) -> tensor<65536x65536xf32>
    %%kept = stablehlo.optimization_barrier %%y : tensor<65536x65536xf32>
    %%a = stablehlo.reduce(%%kept init: %%zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<65536x65536xf32>, tensor<f32>) -> tensor<f32>
    %%n = stablehlo.add %%s, %%s : tensor<%[1]dx1048576xf32>
    return %%n, %%a : tensor<%[1]dx1048576xf32>, tensor<f32>
  }
}`
	const row = 1 << 22 // of the state, bytes
	inChild(t, func(t *testing.T, p Plugin) {
		top, err := tpu.Parse("v6e:4x4")
		require.NoError(t, err)
		for _, c := range []struct {
			name, donated string
			state, want   int64 // GiB
		}{
			{"in place", " {tf.aliasing_output = 0 : i32}", 20, 20 + 16},
			{"not in place", "", 20, 20 + 20}, // whose result may come after the others are gone
		} {
			inputs := []engine.Input{{Name: "s", DType: dtypes.Float32, Dims: []int{int(c.state << 30 / row), 1 << 20}}}
			compiled, err := Compile(t.Context(), p, top, lowered(t, fmt.Sprintf(text, c.state<<30/row, c.donated), inputs...), pjrt.EffortO0)
			require.NoError(t, err, c.name)
			require.NotNil(t, compiled.Exceeded, c.name)
			r, err := Analyze(compiled, Facts{})
			require.NoError(t, err, c.name)
			t.Logf("%s: %s", c.name, r.Error)
			require.InEpsilon(t, c.want<<30, r.HBM.PeakBytes, 0.02, c.name)
			require.Equal(t, r.HBM.PeakBytes, r.HBM.BatchBytes+r.HBM.TemporariesBytes)
		}
	})
}

func TestWrongInputIsOneLine(t *testing.T) {
	top, err := tpu.Parse("v6e:2x4")
	require.NoError(t, err)
	_, err = Compile(t.Context(), Plugin{}, top, lowered(t, ""), pjrt.EffortO0)
	require.EqualError(t, err, "the mesh fsdp=16 has 16 devices, v6e:2x4 has 8: they must agree")
	inChild(t, func(t *testing.T, p Plugin) {
		top, err := tpu.Parse("v6e:4x4")
		require.NoError(t, err)
		_, err = Compile(t.Context(), p, top, lowered(t, "module { bad }"), pjrt.EffortO0)
		require.ErrorContains(t, err, "compile the program test for tpu")
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		<-ctx.Done()
		_, err = Compile(ctx, p, top, lowered(t, scanText), pjrt.EffortO0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
