package pjrt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/internal/hostmem"
	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

// memory is host memory with these bytes.
func memory(t testing.TB, raw []byte) *hostmem.Memory {
	t.Helper()
	m, err := hostmem.New(int64(len(raw)))
	require.NoError(t, err)
	copy(m.Bytes(), raw)
	return m
}

// give is put without a copy. The memory is returned to look at what the plugin does there.
func give(t testing.TB, c *pjrt.Client, raw []byte, dt pjrt.DType, dims []int, device int) (*pjrt.Buffer, []byte) {
	t.Helper()
	m := memory(t, raw)
	seen := m.Bytes()
	b, err := c.BufferFromHostZeroCopy(m, dt, dims, c.AddressableDevices()[device])
	require.NoError(t, err)
	return b, seen
}

// requireHeld waits until the plugin has given back all memory but this. It may do so from a thread of its own.
func requireHeld(t testing.TB, want int64) {
	t.Helper()
	require.Eventually(t, func() bool { return hostmem.Held() == want }, time.Minute, time.Millisecond, "host memory is not returned")
}

func TestZeroCopyRoundTrip(t *testing.T) {
	eachCPU(t, 16, func(t *testing.T, c *pjrt.Client) {
		require.True(t, c.ZeroCopy())
		held, handles := hostmem.Held(), pjrt.LiveHandles()
		random := rand.NewChaCha8([32]byte{7})
		for i, dt := range hostTypes {
			for _, dims := range [][]int{nil, {5}, {2, 3}, {2, 3, 4}, {1000, 37}} {
				raw := randomBytes(t, random, dt, dims)
				b, _ := give(t, c, raw, dt, dims, i%16)
				require.Equal(t, dt, b.DType())
				require.Same(t, c.Devices()[i%16], b.Device())
				require.Equal(t, raw, read(t, b), "%s%v", dt, dims)
				require.Greater(t, hostmem.Held(), held, "the buffer lives in it")
				require.NoError(t, b.Destroy())
				requireHeld(t, held)
			}
		}
		require.Equal(t, handles, pjrt.LiveHandles())
	})
}

// A donated buffer's memory becomes the output's, without a copy: the program writes there. It is returned with the last of them.
func TestZeroCopyDonation(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		held := hostmem.Held()
		l := compile(t, c, double, pjrt.CompileOptions{})
		a, seen := give(t, c, floats(1, 2, 3, 4, 5, 6), pjrt.Float32, []int{2, 3}, 0)
		for i, want := range [][]float32{{2, 4, 6, 8, 10, 12}, {4, 8, 12, 16, 20, 24}, {8, 16, 24, 32, 40, 48}} {
			outs := run(t, l, [][]*pjrt.Buffer{{a}}, pjrt.ExecuteOptions{})
			require.True(t, a.IsDeleted())
			require.NoError(t, a.Destroy())
			a = outs[0][0]
			require.Equal(t, want, readFloats(t, a))
			require.Equal(t, floats(want...), seen, "run %d writes into the memory that was given", i)
			require.Greater(t, hostmem.Held(), held)
		}
		require.NoError(t, a.Destroy())
		requireHeld(t, held)
	})
}

// A program that does not take the buffer over writes elsewhere.
func TestZeroCopyNotDonated(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		held := hostmem.Held()
		l := compile(t, c, double, pjrt.CompileOptions{})
		raw := floats(1, 2, 3, 4, 5, 6)
		a, seen := give(t, c, raw, pjrt.Float32, []int{2, 3}, 0)
		outs := run(t, l, [][]*pjrt.Buffer{{a}}, pjrt.ExecuteOptions{NonDonatable: []int{0}})
		require.False(t, a.IsDeleted())
		require.Equal(t, raw, seen)
		require.Equal(t, []float32{2, 4, 6, 8, 10, 12}, readFloats(t, outs[0][0]))
		require.NoError(t, a.Destroy())
		requireHeld(t, held)
		require.Equal(t, []float32{2, 4, 6, 8, 10, 12}, readFloats(t, outs[0][0]), "the output has memory of its own")
		destroyAll(t, outs)
	})
}

func TestZeroCopyShardedDonation(t *testing.T) {
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		held := hostmem.Held()
		l := compile(t, c, shardedSum, shardyOptions())
		args, seen := make([][]*pjrt.Buffer, 4), make([][]byte, 4)
		for d := range args {
			b, s := give(t, c, floats(float32(2*d), float32(2*d+1)), pjrt.Float32, []int{2}, d)
			args[d], seen[d] = []*pjrt.Buffer{b}, s
		}
		outs := run(t, l, args, pjrt.ExecuteOptions{LaunchID: 1})
		for d, out := range outs {
			require.Equal(t, []float32{28}, readFloats(t, out[1]))
			require.Equal(t, []float32{float32(4 * d), float32(4*d + 2)}, readFloats(t, out[0]))
			require.Equal(t, floats(float32(4*d), float32(4*d+2)), seen[d])
		}
		destroyAll(t, append(args, outs...))
		requireHeld(t, held)
	})
}

// sums is a slow program that reads its argument, 64 times over.
const sums = `module @sums { func.func public @main(%a: tensor<1048576xf32>) -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<64> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:3 = stablehlo.while(%i = %i0, %x = %a, %s = %zero) : tensor<i32>, tensor<1048576xf32>, tensor<f32>
    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }
    do { %j = stablehlo.add %i, %one : tensor<i32>
      %t = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [0] : (tensor<1048576xf32>, tensor<f32>) -> tensor<f32>
      %u = stablehlo.add %s, %t : tensor<f32>
      stablehlo.return %j, %x, %u : tensor<i32>, tensor<1048576xf32>, tensor<f32> }
    return %r#2 : tensor<f32> } }`

// Memory is not returned before a program that still reads it has ended, though its buffer was destroyed.
func TestZeroCopyOutlivesItsBuffer(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		held := hostmem.Held()
		l := compile(t, c, sums, pjrt.CompileOptions{})
		raw := bytes.Repeat(floats(1), 1<<20)
		binary.LittleEndian.PutUint32(raw[len(raw)-4:], math.Float32bits(2))
		for range 20 {
			a, _ := give(t, c, raw, pjrt.Float32, []int{1 << 20}, 0)
			outs, done, err := l.Execute([][]*pjrt.Buffer{{a}}, pjrt.ExecuteOptions{})
			require.NoError(t, err)
			require.NoError(t, a.Destroy())
			require.NoError(t, pjrt.AwaitAll(done))
			require.Equal(t, []float32{128}, readFloats(t, outs[0][0]))
			destroyAll(t, outs)
		}
		requireHeld(t, held)
	})
}

// Many goroutines give, use and free memory at once, and the plugin gives it back on threads of its own and of Go's.
func TestZeroCopyFromManyGoroutines(t *testing.T) {
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		held, handles := hostmem.Held(), pjrt.LiveHandles()
		l, err := c.Compile([]byte(double), pjrt.CompileOptions{DeviceAssignment: []int{0}})
		require.NoError(t, err)
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for g := range errs {
			wg.Go(func() {
				for i := range 200 {
					if errs[g] = giveAndFree(c, l, byte(g), i); errs[g] != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.NoError(t, l.Destroy())
		requireHeld(t, held)
		require.Equal(t, handles, pjrt.LiveHandles())
	})
}

func giveAndFree(c *pjrt.Client, l *pjrt.LoadedExecutable, fill byte, i int) error {
	m, err := hostmem.New(24)
	if err != nil {
		return err
	}
	for j := range m.Bytes() {
		m.Bytes()[j] = fill
	}
	b, err := c.BufferFromHostZeroCopy(m, pjrt.Float32, []int{2, 3}, c.Devices()[i%2*3])
	if err != nil || i%2 == 1 {
		return errors.Join(err, b.Destroy())
	}
	outs, done, err := l.Execute([][]*pjrt.Buffer{{b}}, pjrt.ExecuteOptions{})
	if err != nil {
		return err
	}
	return errors.Join(pjrt.AwaitAll(done), b.Destroy(), outs[0][0].Destroy())
}

// A client may be closed as soon as its buffers are destroyed, and opened again.
func TestZeroCopyAndClose(t *testing.T) {
	for _, name := range pjrttest.CPUPlugins {
		t.Run(name, func(t *testing.T) {
			held, handles := hostmem.Held(), pjrt.LiveHandles()
			for range 10 {
				c, err := pjrttest.Plugin(t, name).NewClient(map[string]any{"cpu_device_count": 2})
				require.NoError(t, err)
				l, err := c.Compile([]byte(double), pjrt.CompileOptions{})
				require.NoError(t, err)
				a, _ := give(t, c, floats(1, 2, 3, 4, 5, 6), pjrt.Float32, []int{2, 3}, 0)
				require.ErrorContains(t, c.Close(), "are alive; destroy them first")
				outs, done, err := l.Execute([][]*pjrt.Buffer{{a}}, pjrt.ExecuteOptions{})
				require.NoError(t, err)
				require.NoError(t, pjrt.AwaitAll(done))
				destroyAll(t, append(outs, []*pjrt.Buffer{a}))
				require.NoError(t, l.Destroy())
				require.NoError(t, c.Close())
				requireHeld(t, held)
			}
			require.Equal(t, handles, pjrt.LiveHandles())
		})
	}
}

// Memory that no buffer is made of is freed at once.
func TestZeroCopyErrors(t *testing.T) {
	eachCPU(t, 2, func(t *testing.T, c *pjrt.Client) {
		other := pjrttest.Client(t, "cpu", 1)
		closed, err := c.Plugin().NewClient(map[string]any{"cpu_device_count": 1})
		require.NoError(t, err)
		dev := closed.Devices()[0]
		require.NoError(t, closed.Close())
		held, handles := hostmem.Held(), pjrt.LiveHandles()
		for _, tc := range []struct {
			name   string
			client *pjrt.Client
			bytes  int
			dt     pjrt.DType
			dims   []int
			dev    *pjrt.Device
			want   string
		}{
			{"too few bytes", c, 8, pjrt.Float32, []int{3}, c.Devices()[0], "8 bytes given for f32[3], which takes 12"},
			{"too many bytes", c, 16, pjrt.Float32, []int{3}, c.Devices()[0], "16 bytes given for f32[3], which takes 12"},
			{"no bytes", c, 0, pjrt.Float32, []int{0}, c.Devices()[0], "no memory given"},
			{"narrow type", c, 8, pjrt.Int4, []int{16}, c.Devices()[0], "convert them"},
			{"another client's device", c, 12, pjrt.Float32, []int{3}, other.Devices()[0], "not an addressable device"},
			{"no device", c, 12, pjrt.Float32, []int{3}, nil, "not an addressable device"},
			{"closed client", closed, 12, pjrt.Float32, []int{3}, dev, "closed"},
		} {
			m, err := hostmem.New(int64(tc.bytes))
			require.NoError(t, err)
			_, err = tc.client.BufferFromHostZeroCopy(m, tc.dt, tc.dims, tc.dev)
			require.ErrorContains(t, err, tc.want, tc.name)
			require.Empty(t, m.Bytes(), tc.name)
			require.Equal(t, held, hostmem.Held(), tc.name)
		}
		require.Equal(t, handles, pjrt.LiveHandles())
	})
}
