package pjrt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// manyBuffers is a program with n donated scalars, each returned plus one.
func manyBuffers(n, partitions int) string {
	var params, body, results, types []string
	for i := range n {
		params = append(params, fmt.Sprintf(`%%a%d: tensor<f32> {tf.aliasing_output = %d : i32}`, i, i))
		body = append(body, fmt.Sprintf("    %%b%d = stablehlo.add %%a%d, %%one : tensor<f32>", i, i))
		results = append(results, fmt.Sprintf("%%b%d", i))
		types = append(types, "tensor<f32>")
	}
	return fmt.Sprintf(`module @many attributes {mhlo.num_partitions = %d : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%s) -> (%s) {
    %%one = stablehlo.constant dense<1.0> : tensor<f32>
%s
    return %s : %s
  }
}`, partitions, strings.Join(params, ", "), strings.Join(types, ", "), strings.Join(body, "\n"), strings.Join(results, ", "), strings.Join(types, ", "))
}

// BenchmarkExecute is the host's cost of a step: 16 devices, 500 donated buffers each, results awaited and the old handles destroyed.
func BenchmarkExecute(b *testing.B) {
	const devices, buffers = 16, 500
	c := pjrttest.Client(b, "cpu", devices)
	l, err := c.Compile([]byte(manyBuffers(buffers, devices)), pjrt.CompileOptions{NumPartitions: devices, UseSPMD: true, UseShardy: true})
	require.NoError(b, err)
	args := make([][]*pjrt.Buffer, devices)
	for d, dev := range l.AddressableDevices() {
		for range buffers {
			buf, err := c.BufferFromHost(make([]byte, 4), pjrt.Float32, nil, dev)
			require.NoError(b, err)
			args[d] = append(args[d], buf)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		outs, done, err := l.Execute(args, pjrt.ExecuteOptions{})
		require.NoError(b, err)
		require.NoError(b, pjrt.AwaitAll(done))
		destroyAll(b, args)
		args = outs
	}
	destroyAll(b, args)
	require.NoError(b, l.Destroy())
}

func destroyAll(t testing.TB, buffers [][]*pjrt.Buffer) {
	t.Helper()
	for _, list := range buffers {
		for _, b := range list {
			require.NoError(t, b.Destroy())
		}
	}
}
