package pjrt_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/pjrt"
)

func TestExecutableTellsWhatItIs(t *testing.T) {
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, shardedSum, shardyOptions())
		fingerprint, err := l.Fingerprint()
		require.NoError(t, err)
		require.NotEmpty(t, fingerprint)
		e, err := l.Executable()
		require.NoError(t, err)
		name, err := e.Name()
		require.NoError(t, err)
		require.Equal(t, "sharded_sum", name)
		for _, q := range []struct {
			get  func() (int, error)
			want int
		}{{e.NumReplicas, 1}, {e.NumPartitions, 4}, {e.NumOutputs, 2}} {
			got, err := q.get()
			require.NoError(t, err)
			require.Equal(t, q.want, got)
		}
		dtypes, err := e.OutputDTypes()
		require.NoError(t, err)
		require.Equal(t, []pjrt.DType{pjrt.Float32, pjrt.Float32}, dtypes)
		dims, err := e.OutputDims()
		require.NoError(t, err)
		require.Equal(t, [][]int{{2}, {}}, dims)
		stats, err := e.MemoryStats()
		require.NoError(t, err)
		require.Equal(t, int64(8), stats.Argument, "two floats on each device")
		require.Equal(t, int64(8), stats.Alias, "the donated argument")
		require.GreaterOrEqual(t, stats.Output, int64(12))
		require.Positive(t, stats.Peak)
		_, err = e.CostAnalysis() // the CPU plugins have none; libtpu's is tested with libtpu
		requireCode(t, pjrt.Unimplemented, err)
		_, err = e.GeneratedCodeSize()
		require.NoError(t, err)
		format, code, err := e.OptimizedProgram()
		require.NoError(t, err)
		require.Equal(t, "hlo_with_config", format)
		require.Contains(t, string(code), "all-reduce")
		require.Contains(t, string(code), "sharded_sum")
		require.NoError(t, e.Destroy())
		require.NoError(t, e.Destroy())
		_, err = e.Name()
		require.ErrorContains(t, err, "the executable was destroyed")
	})
}

func TestSerializeAndLoad(t *testing.T) {
	eachCPU(t, 4, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, shardedSum, shardyOptions())
		e, err := l.Executable()
		require.NoError(t, err)
		serialized, err := e.Serialize()
		require.NoError(t, err)
		require.NoError(t, e.Destroy())
		for name, opts := range map[string]*pjrt.CompileOptions{"as compiled": nil, "with options": new(shardyOptions())} {
			t.Run(name, func(t *testing.T) {
				again, err := c.Load(bytes.Clone(serialized), opts)
				require.NoError(t, err)
				require.Equal(t, l.AddressableDevices(), again.AddressableDevices())
				args := shards(t, c)
				outs := run(t, again, args, pjrt.ExecuteOptions{})
				require.True(t, args[0][0].IsDeleted(), "donation survives")
				require.Equal(t, []float32{28}, readFloats(t, outs[3][1]))
				destroyAll(t, append(args, outs...))
				require.NoError(t, again.Destroy())
			})
		}
	})
}

func TestLoadOfDamagedBytes(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, double, pjrt.CompileOptions{})
		e, err := l.Executable()
		require.NoError(t, err)
		serialized, err := e.Serialize()
		require.NoError(t, err)
		require.NoError(t, e.Destroy())
		before := pjrt.LiveHandles()
		for _, bad := range [][]byte{nil, []byte("hello"), serialized[:len(serialized)/2]} {
			_, err := c.Load(bad, nil)
			var pe *pjrt.Error
			require.ErrorAs(t, err, &pe)
		}
		require.Equal(t, before, pjrt.LiveHandles())
	})
}
