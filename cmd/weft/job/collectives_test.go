package job

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/engine/collectives"
	"weft/engine/sharding"
	"weft/internal/golden"
	"weft/pjrt/pjrttest"
)

func TestParseSizes(t *testing.T) {
	got, err := parseSizes("64KiB, 1MiB,2GiB,512,3k,7B")
	require.NoError(t, err)
	require.Equal(t, []int{64 << 10, 1 << 20, 2 << 30, 512, 3 << 10, 7}, got)
	for _, bad := range []string{"", "1MiB,", "1.5MiB", "MiB", "-1MiB", "0", "1MB", "1TiB", "99999999999999999999", "9999999GiB", "64 KiB", "1xiB"} {
		_, err := parseSizes(bad)
		require.ErrorContains(t, err, "is no size: give a number of bytes", bad)
	}
}

// sliceReport is the outcome on one host of 2 of a TPU7x slice of 16 devices.
func sliceReport(host int) *CollectivesReport {
	r := &CollectivesReport{IP: []string{"10.72.3.20", "10.72.14.20"}[host], LeftOut: []int{1 << 30}}
	r.Devices, r.ExpectedSum, r.Confirmed = 16, 136, 16
	for i := range 8 {
		r.Ranks = append(r.Ranks, collectives.RankResult{
			Rank: collectives.Rank{Rank: 8*host + i, Worker: host, Local: i}, AllReduceSum: []float32{136, 136, 136, 136}, MaxAbsDiff: 0.00247,
		})
	}
	return r
}

// The lines are those of the published guide, with weft in place of TorchTPU: each host prints its own ranks, the host of
// rank 0 the closing line, unless something is wrong somewhere.
func TestCollectivesGolden(t *testing.T) {
	var b strings.Builder
	write := func(r *CollectivesReport) { require.NoError(t, WriteCollectives(&b, r)) }
	b.WriteString("-- host 0\n")
	write(sliceReport(0))
	b.WriteString("-- host 1\n")
	write(sliceReport(1))
	b.WriteString("-- host 0, when a rank of host 1 is wrong\n")
	r := sliceReport(0)
	r.Confirmed = 15
	write(r)
	b.WriteString(r.Err().Error() + "\n-- host 1, whose rank 9 is wrong, in the second slice of two\n")
	r = sliceReport(1)
	r.Confirmed = 15
	for i := range r.Ranks {
		r.Ranks[i].Slice, r.Ranks[i].Worker = 1, 0
	}
	r.Ranks[1].AllReduceSum = []float32{136, 127, 136, 136}
	r.Ranks[1].Faults = []string{"all_reduce_sum: expected [136.0, 136.0, 136.0, 136.0], got [136.0, 127.0, 136.0, 136.0]"}
	write(r)
	b.WriteString(r.Err().Error() + "\n-- bandwidth\n")
	var input *InputError
	require.False(t, errors.As(r.Err(), &input), "a wrong result is exit code 1")
	require.NoError(t, WriteMeasurementHead(&b, sliceReport(0)))
	for _, m := range []collectives.Measurement{
		{Collective: "all-gather", Bytes: 1 << 20, TimeS: 12.34e-6, AlgorithmBandwidth: 85e9, BusBandwidth: 79.7e9, Checked: true, Compiled: []collectives.Found{{Kind: "all-gather", Count: 1}}},
		{Collective: "reduce-scatter", Bytes: 256 << 20, TimeS: 1.234567e-3, AlgorithmBandwidth: 217e9, BusBandwidth: 203e9, Compiled: []collectives.Found{{Kind: "reduce-scatter", Count: 2}}},
		{Collective: "all-reduce", Bytes: 1 << 30, TimeS: 1.5, AlgorithmBandwidth: 0.7e9, BusBandwidth: 1.3e9},
	} {
		require.NoError(t, WriteMeasurement(&b, &m))
	}
	golden.Equal(t, "collectives.golden", []byte(b.String()))
}

func TestOwnIP(t *testing.T) {
	t.Setenv("TPU_WORKER_HOSTNAMES", "10.0.0.4,10.0.0.5")
	t.Setenv("TPU_WORKER_ID", "1")
	require.Equal(t, "10.0.0.5", ownIP())
	t.Setenv("TPU_WORKER_HOSTNAMES", "a.svc,b.svc") // names: the address itself is printed, as the guide does
	require.NotNil(t, net.ParseIP(ownIP()))
}

// logicalHosts opens two logical hosts of two devices.
func logicalHosts(t *testing.T) *engine.LogicalHosts {
	t.Helper()
	mesh, err := sharding.NewMesh(sharding.Axis{Name: engine.FSDPAxis, Size: 4})
	require.NoError(t, err)
	h, err := engine.OpenLogicalHosts(engine.Options{
		Plugin: pjrttest.Plugin(t, "cpu"), Mesh: mesh, ClientOptions: map[string]any{"cpu_device_count": int64(4)},
	}, 2)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// Two hosts check and measure together; one that was given other flags than the other is refused by both, instead of
// leaving it waiting.
func TestCollectivesOnHosts(t *testing.T) {
	h := logicalHosts(t)
	for _, repeats := range [][2]int{{1, 1}, {1, 2}} {
		var reports [2]*CollectivesReport
		var failed [2]error
		var lines [2]strings.Builder
		var g sync.WaitGroup
		for host := range 2 {
			g.Go(func() {
				c := CollectivesConfig{Seed: 42, Bandwidth: true, Repeats: repeats[host]}
				rt := h.Runtime(host)
				reports[host], failed[host] = c.run(rt, []int{1}, func(r *CollectivesReport) { failed[host] = WriteCollectives(&lines[host], r) }, func(*collectives.Measurement) {})
				failed[host] = errors.Join(failed[host], rt.Close())
			})
		}
		g.Wait()
		require.Equal(t, 3, strings.Count(lines[0].String(), "\n"), "two ranks and the closing line: %s", lines[0].String())
		require.Equal(t, 2, strings.Count(lines[1].String(), "\n"), lines[1].String())
		require.Contains(t, lines[1].String(), "Rank  3 (worker_id=1, local_rank=1, ip=")
		for host, r := range reports {
			if repeats[0] == repeats[1] {
				require.NoError(t, failed[host])
				require.Len(t, r.Bandwidth, 3)
				continue
			}
			require.ErrorContains(t, failed[host], fmt.Sprintf("host %d measures with --sizes [1] --warmup 0 --repeats %d, this host with --sizes [1] --warmup 0 --repeats %d", 1-host, repeats[1-host], repeats[host]))
			require.Empty(t, r.Bandwidth)
		}
	}
}
