package pjrt_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/pjrt"
	"weft/pjrt/pjrttest"
)

func TestExecuteOnOneDevice(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, double, pjrt.CompileOptions{})
		require.Equal(t, 1, l.NumOutputs())
		a := put(t, c, floats(1, 2, 3, 4, 5, 6), pjrt.Float32, []int{2, 3}, 0)
		outs := run(t, l, [][]*pjrt.Buffer{{a}}, pjrt.ExecuteOptions{})
		require.True(t, a.IsDeleted(), "the program donates its argument")
		require.Equal(t, []int{2, 3}, outs[0][0].Dims())
		require.Equal(t, []float32{2, 4, 6, 8, 10, 12}, readFloats(t, outs[0][0]))
		require.Error(t, a.ToHost(make([]byte, 24)))
		require.NoError(t, a.Destroy())
		destroyAll(t, outs)
	})
}

func TestNonDonatableArgumentsSurvive(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, double, pjrt.CompileOptions{})
		a := put(t, c, floats(1, 2, 3, 4, 5, 6), pjrt.Float32, []int{2, 3}, 0)
		outs := run(t, l, [][]*pjrt.Buffer{{a}}, pjrt.ExecuteOptions{NonDonatable: []int{0}})
		require.False(t, a.IsDeleted())
		require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, readFloats(t, a))
		require.Equal(t, []float32{2, 4, 6, 8, 10, 12}, readFloats(t, outs[0][0]))
		destroyAll(t, append(outs, []*pjrt.Buffer{a}))
	})
}

func TestExecuteShardedWithDonation(t *testing.T) {
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, shardedSum, shardyOptions())
		require.Equal(t, c.Devices(), l.AddressableDevices())
		args := shards(t, c)
		outs := run(t, l, args, pjrt.ExecuteOptions{LaunchID: 1})
		for d, out := range outs {
			require.True(t, args[d][0].IsDeleted())
			require.Equal(t, []int{2}, out[0].Dims(), "the shard's shape")
			require.Same(t, c.Devices()[d], out[0].Device())
			require.Equal(t, []float32{float32(4 * d), float32(4*d + 2)}, readFloats(t, out[0]))
			require.Equal(t, []float32{28}, readFloats(t, out[1]), "the sum over all devices")
		}
		destroyAll(t, append(args, outs...))
	})
}

// A program may run on some of the devices, in an order of its own.
func TestDeviceAssignment(t *testing.T) {
	const program = `module @half attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %b = stablehlo.add %a, %a : tensor<2xf32>
    return %b : tensor<2xf32> } }`
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, program, pjrt.CompileOptions{NumPartitions: 2, DeviceAssignment: []int{3, 1}, UseSPMD: true, UseShardy: true})
		require.Len(t, l.AddressableDevices(), 2)
		args := make([][]*pjrt.Buffer, 2)
		for i, d := range l.AddressableDevices() {
			require.Contains(t, []int{1, 3}, d.ID())
			args[i] = []*pjrt.Buffer{put(t, c, floats(float32(d.ID())), pjrt.Float32, []int{1}, d.ID())}
		}
		outs := run(t, l, args, pjrt.ExecuteOptions{})
		for i, d := range l.AddressableDevices() {
			require.Same(t, d, outs[i][0].Device())
			require.Equal(t, []float32{float32(2 * d.ID())}, readFloats(t, outs[i][0]))
		}
		destroyAll(t, append(args, outs...))
	})
}

func TestExecuteErrors(t *testing.T) {
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		before := pjrt.LiveHandles()
		l, err := c.Compile([]byte(shardedSum), shardyOptions())
		require.NoError(t, err)
		args := shards(t, c)
		gone := put(t, c, floats(1, 2), pjrt.Float32, []int{2}, 0)
		require.NoError(t, gone.Destroy())
		for _, tc := range []struct {
			args [][]*pjrt.Buffer
			want string
		}{
			{args[:2], "arguments for 2 devices; the program runs on 4"},
			{[][]*pjrt.Buffer{args[0], args[1], args[2], {}}, "0 arguments for device 3, 1 for device 0"},
			{[][]*pjrt.Buffer{args[0], {nil}, args[2], args[3]}, "argument 0 of device 1 is nil"},
			{[][]*pjrt.Buffer{{gone}, args[1], args[2], args[3]}, "argument 0 of device 0: pjrt: the buffer was destroyed"},
		} {
			_, _, err := l.Execute(tc.args, pjrt.ExecuteOptions{})
			require.ErrorContains(t, err, tc.want)
		}
		require.NoError(t, l.Destroy())
		_, _, err = l.Execute(args, pjrt.ExecuteOptions{})
		require.ErrorContains(t, err, "the executable was destroyed")
		destroyAll(t, args)
		require.Equal(t, before, pjrt.LiveHandles())
	})
}

func TestExecuteOfAWrongShape(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, double, pjrt.CompileOptions{})
		a := put(t, c, floats(1, 2, 3), pjrt.Float32, []int{3}, 0)
		before := pjrt.LiveHandles()
		_, _, err := l.Execute([][]*pjrt.Buffer{{a}}, pjrt.ExecuteOptions{})
		requireCode(t, pjrt.InvalidArgument, err)
		require.Equal(t, before, pjrt.LiveHandles())
		require.NoError(t, a.Destroy())
	})
}

func TestCompileErrors(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		before := pjrt.LiveHandles()
		for _, tc := range []struct {
			name, code string
			opts       pjrt.CompileOptions
			want       string
		}{
			{"empty", "", pjrt.CompileOptions{}, ""},
			{"not MLIR", "hello", pjrt.CompileOptions{}, "StableHLO"},
			{"unknown op", "module { bad }", pjrt.CompileOptions{}, "custom op 'bad' is unknown"},
			{"more partitions than devices", shardedSum, pjrt.CompileOptions{NumPartitions: 4, UseSPMD: true, UseShardy: true}, ""},
			{"device that is not there", double, pjrt.CompileOptions{DeviceAssignment: []int{99}}, ""},
			{"unknown env option", double, pjrt.CompileOptions{EnvOptions: map[string]any{"xla_no_such_option": true}}, "xla_no_such_option"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				_, err := c.Compile([]byte(tc.code), tc.opts)
				var e *pjrt.Error
				require.ErrorAs(t, err, &e)
				require.NotEqual(t, pjrt.OK, e.Code)
				require.ErrorContains(t, err, tc.want)
				require.NotContains(t, err.Error(), "\n")
			})
		}
		require.Equal(t, before, pjrt.LiveHandles())
	})
}

// A thousand steps of a donated state leave as many handles as there were.
func TestThousandStepsLeakNothing(t *testing.T) {
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, shardedSum, shardyOptions())
		state := shards(t, c)
		before := pjrt.LiveHandles()
		for step := range 1000 {
			outs, done, err := l.Execute(state, pjrt.ExecuteOptions{LaunchID: step})
			require.NoError(t, err)
			loss := make([]byte, 4)
			require.NoError(t, outs[0][1].ToHost(loss))
			require.NoError(t, pjrt.AwaitAll(done))
			destroyAll(t, state)
			for d := range outs {
				require.NoError(t, outs[d][1].Destroy())
				state[d] = outs[d][:1]
			}
			require.Equal(t, before, pjrt.LiveHandles(), "after step %d", step)
		}
		destroyAll(t, state)
	})
}

func TestConcurrentExecutes(t *testing.T) {
	c := pjrttest.Client(t, "cpu", 1)
	l := compile(t, c, double, pjrt.CompileOptions{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 50 {
				v := float32(g + 1)
				a, err := c.BufferFromHost(floats(v, v, v, v, v, v), pjrt.Float32, []int{2, 3}, c.Devices()[0])
				if err != nil {
					t.Error(err)
					return
				}
				outs, done, err := l.Execute([][]*pjrt.Buffer{{a}}, pjrt.ExecuteOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				got := make([]byte, 24)
				if err := outs[0][0].ToHost(got); err != nil || string(got) != string(floats(2*v, 2*v, 2*v, 2*v, 2*v, 2*v)) {
					t.Errorf("goroutine %d: %v, %v", g, got, err)
				}
				if err := pjrt.AwaitAll(done); err != nil {
					t.Error(err)
				}
				for _, b := range []*pjrt.Buffer{a, outs[0][0]} {
					if err := b.Destroy(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// An argument that an earlier run consumed is refused before any device starts: the others would wait for it in the all-reduce.
func TestDonatedArgumentsAreRefused(t *testing.T) {
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, shardedSum, shardyOptions())
		args, other := shards(t, c), shards(t, c)
		destroyAll(t, run(t, l, args, pjrt.ExecuteOptions{}))
		_, _, err := l.Execute([][]*pjrt.Buffer{other[0], args[1], other[2], other[3]}, pjrt.ExecuteOptions{})
		require.ErrorContains(t, err, "argument 0 of device 1 was donated to an earlier run")
		outs := run(t, l, other, pjrt.ExecuteOptions{})
		require.Equal(t, []float32{28}, readFloats(t, outs[0][1]), "nothing was started before")
		destroyAll(t, append(args, append(other, outs...)...))
	})
}
