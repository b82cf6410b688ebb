package pjrt_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// eachCPU runs a test on a client of every CPU plugin.
func eachCPU(t *testing.T, devices int, test func(t *testing.T, c *pjrt.Client)) {
	for _, name := range pjrttest.CPUPlugins {
		t.Run(name, func(t *testing.T) {
			test(t, pjrttest.Client(t, name, devices))
		})
	}
}

func floats(values ...float32) []byte {
	out := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(v))
	}
	return out
}

// read fetches a buffer.
func read(t testing.TB, b *pjrt.Buffer) []byte {
	t.Helper()
	n, err := pjrt.ByteSize(b.DType(), b.Dims())
	require.NoError(t, err)
	dst := make([]byte, n)
	require.NoError(t, b.ToHost(dst))
	return dst
}

func readFloats(t testing.TB, b *pjrt.Buffer) []float32 {
	t.Helper()
	require.Equal(t, pjrt.Float32, b.DType())
	raw := read(t, b)
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

func put(t testing.TB, c *pjrt.Client, raw []byte, dt pjrt.DType, dims []int, device int) *pjrt.Buffer {
	t.Helper()
	b, err := c.BufferFromHost(raw, dt, dims, c.AddressableDevices()[device])
	require.NoError(t, err)
	return b
}

func compile(t testing.TB, c *pjrt.Client, code string, opts pjrt.CompileOptions) *pjrt.LoadedExecutable {
	t.Helper()
	l, err := c.Compile([]byte(code), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Destroy()) })
	return l
}

// run executes once, awaits and destroys the events.
func run(t testing.TB, l *pjrt.LoadedExecutable, args [][]*pjrt.Buffer, opts pjrt.ExecuteOptions) [][]*pjrt.Buffer {
	t.Helper()
	outs, done, err := l.Execute(args, opts)
	require.NoError(t, err)
	require.NoError(t, pjrt.AwaitAll(done))
	return outs
}

// requireCode checks that an error comes from the plugin with that code.
func requireCode(t testing.TB, want pjrt.Code, err error) {
	t.Helper()
	var e *pjrt.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Code, e.Error())
}

// double is a program of one device: twice its argument, which is donated.
const double = `module @double {
  func.func public @main(%a: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2x3xf32> {
    %b = stablehlo.add %a, %a : tensor<2x3xf32>
    return %b : tensor<2x3xf32>
  }
}`

// shardedSum is a program of four devices: the donated argument, split over them, times two; and its sum, which needs an all-reduce.
const shardedSum = `module @sharded_sum attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["fsdp"=4]>
  func.func public @main(
      %a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}]>, tf.aliasing_output = 0 : i32})
      -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %twice = stablehlo.add %a, %a : tensor<8xf32>
    return %twice, %sum : tensor<8xf32>, tensor<f32>
  }
}`

// shardyOptions are those of a program on the first four devices.
func shardyOptions() pjrt.CompileOptions {
	return pjrt.CompileOptions{NumPartitions: 4, DeviceAssignment: []int{0, 1, 2, 3}, UseSPMD: true, UseShardy: true}
}

// shards puts 0…7 onto four devices.
func shards(t testing.TB, c *pjrt.Client) [][]*pjrt.Buffer {
	t.Helper()
	args := make([][]*pjrt.Buffer, 4)
	for d := range args {
		args[d] = []*pjrt.Buffer{put(t, c, floats(float32(2*d), float32(2*d+1)), pjrt.Float32, []int{2}, d)}
	}
	return args
}
