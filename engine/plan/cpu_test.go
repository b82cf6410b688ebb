package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/hlo"
	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// compileCPU compiles StableHLO text on the CPU plugin and returns the optimised program.
func compileCPU(t *testing.T, text string, devices int) (*hlo.Module, pjrt.CompiledMemoryStats) {
	t.Helper()
	c := pjrttest.Client(t, "cpu", devices)
	ids := make([]int, devices)
	for i := range ids {
		ids[i] = c.Devices()[i].ID()
	}
	exe, err := c.Compile([]byte(text), pjrt.CompileOptions{NumPartitions: devices, DeviceAssignment: ids, UseSPMD: devices > 1, UseShardy: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, exe.Destroy()) }()
	inner, err := exe.Executable()
	require.NoError(t, err)
	defer func() { require.NoError(t, inner.Destroy()) }()
	m, memory, err := read(inner)
	require.NoError(t, err)
	return m, memory
}

// loopText multiplies a matrix by itself in a loop of so many trips.
func loopText(trips int) string {
	return fmt.Sprintf(`module @loop {
  func.func public @main(%%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %%zero = stablehlo.constant dense<0> : tensor<i32>
    %%out:2 = stablehlo.while(%%i = %%zero, %%y = %%x) : tensor<i32>, tensor<64x64xf32>
     cond {
      %%n = stablehlo.constant dense<%d> : tensor<i32>
      %%more = stablehlo.compare LT, %%i, %%n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %%more : tensor<i1>
    } do {
      %%one = stablehlo.constant dense<1> : tensor<i32>
      %%next = stablehlo.add %%i, %%one : tensor<i32>
      %%z = stablehlo.dot_general %%y, %%x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      stablehlo.return %%next, %%z : tensor<i32>, tensor<64x64xf32>
    }
    return %%out#1 : tensor<64x64xf32>
  }
}`, trips)
}

func TestLoopOnCPU(t *testing.T) {
	for _, trips := range []int{1, 7, 35} {
		m, memory := compileCPU(t, loopText(trips), 1)
		w, err := measure(m, nil, 1)
		require.NoError(t, err)
		require.InDelta(t, trips*2*64*64*64, w.flops.products, 0)
		require.Empty(t, w.unknownLoops)
		require.EqualValues(t, 64*64*4, memory.Argument)
	}
}

// gatherText is x·w1·w2 with the weights split over four devices and gathered for use, as FSDP does.
const gatherText = `module @gather attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["fsdp"=4]>
  func.func public @main(%x: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>},
      %w1: tensor<32x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}]>},
      %w2: tensor<128x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>})
      -> (tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %g1 = sdy.sharding_constraint %w1 <@mesh, [{}, {}]> : tensor<32x128xf32>
    %g2 = sdy.sharding_constraint %w2 <@mesh, [{}, {}]> : tensor<128x32xf32>
    %h = stablehlo.dot_general %x, %g1, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x128xf32>) -> tensor<64x128xf32>
    %s = sdy.sharding_constraint %h <@mesh, [{"fsdp"}, {}]> : tensor<64x128xf32>
    %y = stablehlo.dot_general %s, %g2, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x32xf32>) -> tensor<64x32xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<f32>
    return %y, %sum : tensor<64x32xf32>, tensor<f32>
  }
}`

// Two layers: each weight is gathered once, the sum is reduced once, and a device multiplies its rows.
func TestTwoLayersOnFourCPUDevices(t *testing.T) {
	m, memory := compileCPU(t, gatherText, 4)
	require.EqualValues(t, 4, m.Partitions)
	w, err := measure(m, nil, 4)
	require.NoError(t, err)
	require.InDelta(t, 2*2*16*32*128, w.flops.products, 0)
	require.EqualValues(t, 4*(64*32+32*128+128*32)/4, memory.Argument, "the shards")
	got := map[string]Collective{}
	for _, c := range w.network.collectives() {
		got[c.Kind] = c
	}
	const weights = 2 * 32 * 128 * 4
	require.EqualValues(t, weights, got[hlo.AllGather].PayloadBytes)
	require.EqualValues(t, weights*3/4, got[hlo.AllGather].Bytes)
	require.EqualValues(t, 2, got[hlo.AllGather].Count)
	require.EqualValues(t, 4, got[hlo.AllReduce].PayloadBytes)
	require.EqualValues(t, 2*4*3/4, got[hlo.AllReduce].Bytes)
	require.Len(t, got, 2)
}

// A slice of a stack in a loop is read layer by layer: all of the stack once, not once a trip.
func TestTrafficOfAScanOnCPU(t *testing.T) {
	const layers, side = 16, 128
	text := strings.NewReplacer("LAYERS", fmt.Sprint(layers), "SIDE", fmt.Sprint(side)).Replace(`module @scan {
  func.func public @main(%w: tensor<LAYERSxSIDExSIDExf32>, %x: tensor<SIDExSIDExf32>) -> tensor<SIDExSIDExf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %out:3 = stablehlo.while(%i = %zero, %y = %x, %v = %w) : tensor<i32>, tensor<SIDExSIDExf32>, tensor<LAYERSxSIDExSIDExf32>
     cond {
      %n = stablehlo.constant dense<LAYERS> : tensor<i32>
      %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %start = stablehlo.constant dense<0> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %slice = stablehlo.dynamic_slice %v, %i, %start, %start, sizes = [1, SIDE, SIDE] : (tensor<LAYERSxSIDExSIDExf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1xSIDExSIDExf32>
      %layer = stablehlo.reshape %slice : (tensor<1xSIDExSIDExf32>) -> tensor<SIDExSIDExf32>
      %z = stablehlo.dot_general %y, %layer, contracting_dims = [1] x [0] : (tensor<SIDExSIDExf32>, tensor<SIDExSIDExf32>) -> tensor<SIDExSIDExf32>
      stablehlo.return %next, %z, %v : tensor<i32>, tensor<SIDExSIDExf32>, tensor<LAYERSxSIDExSIDExf32>
    }
    return %out#1 : tensor<SIDExSIDExf32>
  }
}`)
	m, _ := compileCPU(t, text, 1)
	w, err := measure(m, nil, 1)
	require.NoError(t, err)
	require.InDelta(t, layers*2*side*side*side, w.flops.products, 0)
	const matrix = 4 * side * side
	require.GreaterOrEqual(t, w.hbm.read, float64(2*layers*matrix), "each trip reads a layer and the activation")
	require.Less(t, w.hbm.read, float64(5*layers*matrix), "and never the stack")
}
