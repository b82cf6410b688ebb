package pjrt

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// The bytes are written out by hand from compile_options.proto, xla.proto and xla_data.proto.
func TestCompileOptionsMarshal(t *testing.T) {
	const build = "08ffffffffffffffffff01" // device_ordinal = -1
	for _, c := range []struct {
		name string
		opts CompileOptions
		want string
	}{
		{"zero", CompileOptions{}, "1a0f" + build + "2001" + "2801"},
		{"spmd with shardy", CompileOptions{NumPartitions: 4, UseSPMD: true, UseShardy: true},
			"1a14" + build + "2001" + "2804" + "3001" + "980101"},
		{"assignment of 2 replicas of 3 partitions", CompileOptions{NumReplicas: 2, NumPartitions: 3, DeviceAssignment: []int{0, 1, 2, 3, 4, 200}},
			"1a28" + build + "2002" + "2803" + "4a17" + "0802" + "1003" + "1a040a020003" + "1a040a020104" + "1a050a0302c801"},
		{"effort", CompileOptions{OptimizationLevel: EffortO0, MemoryFittingLevel: EffortO3, ExecTimeEffort: -0.5, MemoryFitEffort: 1},
			"1a21" + build + "2001" + "2801" + "a501000000bf" + "ad010000803f" + "c00109" + "c80127"},
		{"flags", CompileOptions{AliasPassthrough: true, DeduplicateHLO: true, Portable: true, PropagateToOutputs: []bool{true}, PropagateToParameters: []bool{false, true}},
			"1a1b" + build + "2001" + "2801" + "4001" + "5001" + "620101" + "9201020001" + "2001"},
		{"env options in the order of their names", CompileOptions{EnvOptions: map[string]any{"s": "v", "b": true, "o": false, "i": 3, "f": 1.0}},
			"1a0f" + build + "2001" + "2801" +
				"3a07" + "0a0162" + "12021001" +
				"3a0e" + "0a0166" + "120921000000000000f03f" +
				"3a07" + "0a0169" + "12021803" +
				"3a07" + "0a016f" + "12021000" +
				"3a08" + "0a0173" + "12030a0176"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.opts.Marshal()
			require.NoError(t, err)
			require.Equal(t, c.want, hex.EncodeToString(got))
		})
	}
}

func TestCompileOptionsErrors(t *testing.T) {
	for _, c := range []struct {
		opts CompileOptions
		want string
	}{
		{CompileOptions{NumPartitions: 4, DeviceAssignment: []int{0, 1}}, "device assignment has 2 devices; 1 replicas of 4 partitions need 4"},
		{CompileOptions{NumPartitions: 2, DeviceAssignment: []int{0, -3}}, "device assignment has id -3 at place 1"},
		{CompileOptions{NumReplicas: -1}, "neither can be negative"},
		{CompileOptions{EnvOptions: map[string]any{"x": []int{1}}}, `env option "x" has type []int`},
	} {
		_, err := c.opts.Marshal()
		require.ErrorContains(t, err, c.want)
	}
}

func TestDType(t *testing.T) {
	require.Equal(t, DType(13), BFloat16) // PJRT_Buffer_Type_BF16
	require.Equal(t, DType(23), Token)
	require.Equal(t, DType(31), Uint1)
	for _, c := range []struct {
		dt   DType
		name string
		size int
	}{{Bool, "i1", 1}, {Float32, "f32", 4}, {BFloat16, "bf16", 2}, {Complex128, "complex<f64>", 16}, {Uint1, "ui1", 0}, {DType(77), "dtype(77)", 0}, {DType(-1), "dtype(-1)", 0}} {
		require.Equal(t, c.name, c.dt.String())
		require.Equal(t, c.size, c.dt.Size())
	}
	n, err := ByteSize(Float32, []int{2, 3})
	require.NoError(t, err)
	require.Equal(t, 24, n)
	n, err = ByteSize(Float64, []int{0, 1 << 40})
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = ByteSize(Int4, []int{2})
	require.ErrorContains(t, err, "i4")
	_, err = ByteSize(Int8, []int{2, -1})
	require.ErrorContains(t, err, "negative")
	_, err = ByteSize(Int8, []int{1 << 40, 1 << 40})
	require.ErrorContains(t, err, "too large")
}
