package collectives

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"weft/engine"
	"weft/engine/hlo"
	"weft/engine/sharding"
	"weft/internal/fixture"
	"weft/pjrt/pjrttest"
)

// open opens virtual devices in a mesh of the given axes.
func open(t *testing.T, axes ...sharding.Axis) *engine.Runtime {
	t.Helper()
	mesh, err := sharding.NewMesh(axes...)
	require.NoError(t, err)
	rt, err := engine.Open(engine.Options{
		Plugin: pjrttest.Plugin(t, "cpu"), Mesh: mesh, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		ClientOptions: map[string]any{"cpu_device_count": int64(mesh.NumDevices())},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	return rt
}

// fixtureBlock is the block of the fixture, which torch made with the guide's seed, and its output.
func fixtureBlock(t *testing.T) (*Block, []float32) {
	t.Helper()
	x := fixture.Tensors(t, fixture.Dir(t, "feedforward", "feedforward.safetensors"))
	require.Equal(t, []int{guideIntermediate, guideHidden}, x["w1"].Dims)
	require.Equal(t, []int{guideBatch, guideHidden}, x["x"].Dims)
	b := &Block{Hidden: guideHidden, Intermediate: guideIntermediate, Batch: guideBatch, W1: x["w1"].Floats, W2: x["w2"].Floats, X: x["x"].Floats}
	return b, x["output"].Floats
}

// The host's reference is torch's output.
func TestReferenceIsTorchs(t *testing.T) {
	b, output := fixtureBlock(t)
	diff, fault := compare(output, b.Reference(), b.Hidden, tolerance{1e-6, 1e-6})
	require.Empty(t, fault)
	require.Less(t, diff, 1e-6)
	require.Equal(t, b.Reference(), b.padded(24).Reference(), "padding changes nothing")
	require.Equal(t, 528, b.padded(24).Intermediate)
}

// The guide's check on meshes of several shapes: the fixture's weights on every device, in both precisions, and the sum.
func TestCheckOnVirtualDevices(t *testing.T) {
	b, output := fixtureBlock(t)
	for name, axes := range map[string][]sharding.Axis{
		"one":             {{Name: "fsdp", Size: 1}},
		"three":           {{Name: "fsdp", Size: 3}}, // which do not share 512 rows evenly
		"four":            {{Name: "fsdp", Size: 4}},
		"sixteen in rows": {{Name: "fsdp_y", Size: 4}, {Name: "fsdp_x", Size: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			rt := open(t, axes...)
			n := rt.Mesh().NumDevices()
			got, err := b.run(rt, Highest)
			require.NoError(t, err)
			require.Len(t, got, n)
			for p, values := range got {
				for i, v := range values {
					require.InDelta(t, output[i], v, 1e-5, "device %d, element %d", p, i)
				}
			}
			r, err := Check(rt, b)
			require.NoError(t, err)
			require.NoError(t, r.Err())
			require.True(t, r.First())
			require.Equal(t, n, r.Confirmed)
			require.Len(t, r.Ranks, n)
			require.Less(t, r.MaxAbsDiff(), 1e-5)
			for i, rank := range r.Ranks {
				require.Equal(t, Rank{Rank: i, Local: i, Position: i}, rank.Rank)
				require.Equal(t, slices.Repeat([]float32{float32(n*(n+1)) / 2}, 4), rank.AllReduceSum)
				require.Less(t, rank.MaxAbsDiffFloat32, 1e-5)
			}
		})
	}
}

// What is wrong is found, and named with the rank, what was expected and what came.
func TestFaultsAreFound(t *testing.T) {
	rt := open(t, sharding.Axis{Name: "fsdp", Size: 4})
	for name, c := range map[string]struct {
		change func(c *checker)
		want   []string
	}{
		"a device adds something else": {
			func(c *checker) { c.value = func(r Rank) float32 { return float32(r.Rank + 1 + r.Rank/3) } },
			[]string{
				"rank 0 (worker_id=0, local_rank=0): all_reduce_sum: expected [10.0, 10.0, 10.0, 10.0], got [11.0, 11.0, 11.0, 11.0]",
				"rank 3 (worker_id=0, local_rank=3): all_reduce_sum",
			},
		},
		"the reduction is another": {
			func(c *checker) { c.operation = "maximum" }, []string{"expected [10.0, 10.0, 10.0, 10.0], got [4.0, 4.0, 4.0, 4.0]"},
		},
		"no number": {
			func(c *checker) { c.value = func(Rank) float32 { return float32(math.NaN()) } }, []string{"got [NaN, NaN, NaN, NaN]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checker := newChecker(rt, Draw(42))
			c.change(checker)
			r, err := checker.run()
			require.NoError(t, err)
			require.Less(t, r.Confirmed, 4)
			for _, want := range c.want {
				require.ErrorContains(t, r.Err(), want)
			}
		})
	}
	t.Run("another process", func(t *testing.T) {
		program, err := rt.CompileLowered(LowerAllReduce(rt.Mesh(), vectorLength))
		require.NoError(t, err)
		defer program.Destroy()
		// Two ranks are right here; of the other two nothing is known, as when another process found a fault.
		r := &Result{Devices: 4, Ranks: []RankResult{{}, {Rank: Rank{Rank: 1, Position: 1}}}}
		require.NoError(t, newChecker(rt, Draw(42)).confirm(program, r))
		require.Equal(t, 2, r.Confirmed)
		require.EqualError(t, r.Err(), "2 of 4 ranks confirm a right result; the ranks of this host are right: see the output of the other hosts for those that are not")
	})
}

// An error names so many ranks and counts the others.
func TestErrorIsBounded(t *testing.T) {
	r := &Result{Devices: 100}
	for i := range 100 {
		r.Ranks = append(r.Ranks, RankResult{Rank: Rank{Rank: i}, Faults: []string{"wrong"}})
	}
	require.Equal(t, maxNamed, strings.Count(r.Err().Error(), ": wrong"))
	require.ErrorContains(t, r.Err(), "and 92 more")
}

// Each collective gives what it must, and is compiled as what it is.
func TestMeasure(t *testing.T) {
	for name, axes := range map[string][]sharding.Axis{
		"four":           {{Name: "fsdp", Size: 4}},
		"eight in lines": {{Name: "fsdp_y", Size: 2}, {Name: "fsdp_x", Size: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			rt := open(t, axes...)
			n := rt.Mesh().NumDevices()
			for _, kind := range Kinds {
				m, err := Measure(rt, kind, 1, 1, 3)
				require.NoError(t, err)
				require.Equal(t, SizeUnit(n), m.Bytes)
				require.True(t, m.Checked)
				require.Positive(t, m.MinS)
				require.LessOrEqual(t, m.MinS, m.TimeS)
				require.NotEmpty(t, m.Compiled, kind)
				for _, f := range m.Compiled {
					require.Equal(t, kind, f.Kind)
					require.Equal(t, "f32", f.DType)
				}
				require.EqualValues(t, m.Bytes, m.Compiled[0].Bytes)
			}
		})
	}
}

// A result that is not what it must be is found in a measurement too.
func TestMeasureFindsFaults(t *testing.T) {
	rt := open(t, sharding.Axis{Name: "fsdp", Size: 4})
	ranks := Ranks(rt)
	rows := SizeUnit(4) / 4 / lanes
	low, err := Lower(rt.Mesh(), hlo.ReduceScatter, rows)
	require.NoError(t, err)
	program, err := rt.CompileLowered(low)
	require.NoError(t, err)
	defer program.Destroy()
	in := low.Inputs[0]
	good := pattern(ranks, hlo.ReduceScatter)
	x, err := rt.NewArray(in.DType, in.Dims, in.Spec, func(r sharding.Region, dst []byte) error {
		if err := good(r, dst); err != nil || r.Start[0] != 1 {
			return err
		}
		putFloats(dst[4*(lanes*20+5):], []float32{0}) // device 1, row 20, column 5
		return nil
	})
	require.NoError(t, err)
	defer x.Destroy()
	m := &Measurement{Collective: hlo.ReduceScatter, Bytes: SizeUnit(4), Repeats: 1}
	err = m.time(program, x, ranks, 0)
	require.EqualError(t, err, "rank 2 (worker_id=0, local_rank=2) has a wrong result in row 20, column 5: expected 210.0, got 168.0: train on none of this slice before its hardware is checked")
}

func TestBandwidths(t *testing.T) {
	for kind, bus := range map[string]float64{hlo.AllGather: 750, hlo.ReduceScatter: 750, hlo.AllReduce: 1500} {
		m := Measurement{Collective: kind, Bytes: 2000}
		m.figures([]float64{5, 1, 2, 2}, 4)
		require.Equal(t, []float64{1, 2, 1000, bus}, []float64{m.MinS, m.TimeS, m.AlgorithmBandwidth, m.BusBandwidth})
	}
	require.Equal(t, 65536, RoundSize(1, 16))
	require.Equal(t, 1<<20, RoundSize(1<<20, 16))
	require.Equal(t, 12*4096*86, RoundSize(1<<22, 12))
	require.Equal(t, 1<<20, MaxSizeOf(26<<20, 4))
}

// described is a device of the test: its id and its slice.
type described struct{ id, slice int }

func (d described) ID() int                    { return d.id }
func (d described) Attributes() map[string]any { return map[string]any{"slice_index": int64(d.slice)} }

// Ranks count host by host, whatever the order of the mesh: in a slice of 4x4 chips on hosts of 2x2 a row of chips
// belongs to two hosts.
func TestRanks(t *testing.T) {
	var chips []described // two rows of four chips, two hosts of 2x2
	var hosts []int
	for id := range 8 {
		chips, hosts = append(chips, described{id: id}), append(hosts, id%4/2)
	}
	var got []int
	for i, r := range ranksOf(chips, hosts) {
		require.Equal(t, i, r.Position)
		require.Equal(t, r.Rank, 4*r.Worker+r.Local)
		require.Equal(t, hosts[i], r.Worker)
		got = append(got, r.Rank)
	}
	require.Equal(t, []int{0, 1, 4, 5, 2, 3, 6, 7}, got)

	// Two slices of two hosts: processes are counted on, workers are not.
	ranks := ranksOf([]described{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 1}, {5, 1}, {6, 1}, {7, 1}}, []int{0, 0, 1, 1, 2, 2, 3, 3})
	require.Equal(t, Rank{Rank: 6, Slice: 1, Worker: 1, Local: 0, Position: 6}, ranks[6])
	require.Equal(t, Rank{Rank: 4, Slice: 1, Position: 4}, ranks[4])
	require.Equal(t, "rank 6 (slice=1, worker_id=1, local_rank=0)", ranks[6].String())
}

// hosts opens four logical hosts of four devices.
func hosts(t *testing.T) *engine.LogicalHosts {
	t.Helper()
	mesh, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 16})
	require.NoError(t, err)
	h, err := engine.OpenLogicalHosts(engine.Options{
		Plugin: pjrttest.Plugin(t, "cpu"), Mesh: mesh, ClientOptions: map[string]any{"cpu_device_count": int64(16)},
	}, 4)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// each runs the check, and measurements, on every host at once.
func each(t *testing.T, h *engine.LogicalHosts, change func(host int, c *checker)) []*Result {
	t.Helper()
	results := make([]*Result, 4)
	var g errgroup.Group
	for host := range results {
		g.Go(func() (err error) {
			rt := h.Runtime(host)
			defer func() { err = errors.Join(err, rt.Close()) }()
			c := newChecker(rt, Draw(42))
			change(host, c)
			if results[host], err = c.run(); err != nil {
				return err
			}
			for _, kind := range Kinds {
				m, err := Measure(rt, kind, 1, 0, 1)
				if err != nil || !m.Checked {
					return fmt.Errorf("%s: %v", kind, err)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	return results
}

// Several hosts, each of which sees only its own ranks, together come to the guide's output.
func TestCheckOnHosts(t *testing.T) {
	for host, r := range each(t, hosts(t), func(int, *checker) {}) {
		require.NoError(t, r.Err())
		require.Equal(t, 16, r.Devices)
		require.Equal(t, 16, r.Confirmed)
		require.Equal(t, host == 0, r.First())
		require.Len(t, r.Ranks, 4)
		for i, rank := range r.Ranks {
			require.Equal(t, Rank{Rank: 4*host + i, Worker: host, Local: i, Position: 4*host + i}, rank.Rank)
			require.Equal(t, []float32{136, 136, 136, 136}, rank.AllReduceSum)
		}
	}
}

// What one host finds wrong, each host learns: none says that all is well.
func TestFaultOnOneHost(t *testing.T) {
	results := each(t, hosts(t), func(host int, c *checker) {
		if host == 2 {
			c.want = func() []float64 { return make([]float64, len(c.block.X)) }
		}
	})
	for host, r := range results {
		require.Equal(t, 12, r.Confirmed)
		if host != 2 {
			require.ErrorContains(t, r.Err(), "12 of 16 ranks confirm a right result")
			continue
		}
		require.ErrorContains(t, r.Err(), "rank 8 (worker_id=2, local_rank=0): feed-forward output at default precision, row ")
		require.ErrorContains(t, r.Err(), "expected 0 within 0.01 + 0.001·|expected|, got ")
	}
}

func TestFormat(t *testing.T) {
	require.Equal(t, "[136.0, 0.5, NaN, +Inf, -3.0]", FormatFloats([]float32{136, 0.5, float32(math.NaN()), float32(math.Inf(1)), -3}))
	require.Equal(t, "nothing", FormatFound(nil))
	require.Equal(t, "2 × reduce-scatter + 1 × all-gather", FormatFound([]Found{{Kind: hlo.ReduceScatter, Count: 2}, {Kind: hlo.AllGather, Count: 1}}))
}

// A wrong feed-forward output names its place.
func TestCompare(t *testing.T) {
	want := []float64{1, -2, 3, 4}
	diff, fault := compare([]float32{1.001, -2, 3.02, 4}, want, 2, tolerances[Default])
	require.InDelta(t, 0.02, diff, 1e-6)
	require.Equal(t, "row 1, column 0: expected 3 within 0.01 + 0.001·|expected|, got 3.02", fault)
	diff, fault = compare([]float32{1, -2, 3.012, 4}, want, 2, tolerances[Default])
	require.InDelta(t, 0.012, diff, 1e-6)
	require.Empty(t, fault)
	diff, fault = compare([]float32{1, float32(math.NaN()), 3, 4}, want, 2, tolerances[Default])
	require.True(t, math.IsInf(diff, 1))
	require.Contains(t, fault, "row 0, column 1: expected -2 within 0.01 + 0.001·|expected|, got NaN")
	_, fault = compare(nil, want, 2, tolerances[Default])
	require.Equal(t, "expected 4 elements, got 0", fault)
}
