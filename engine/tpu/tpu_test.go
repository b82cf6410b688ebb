package tpu

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/internal/property"
)

func topology(t require.TestingT, name string) Topology {
	top, err := Parse(name)
	require.NoError(t, err)
	return top
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name                  string
		devices, hosts, links int
		wrap                  bool
	}{
		{"v6e:1x1", 1, 1, 0, false},
		{"v6e:4x4", 16, 4, 2, false},
		{"V6E:2x4", 8, 2, 2, false},
		{"v5e:16x16", 256, 64, 4, true},
		{"v5p:2x2x1", 4, 1, 2, false},
		{"v5p:2x2x2", 8, 2, 3, false},
		{"v5p:2x4x4", 32, 8, 3, false},
		{"v5p:4x4x4", 64, 16, 6, true},
		{"v5p:8x12x16", 1536, 384, 6, true},
		{"tpu7x:2x2x2", 16, 2, 3, false},
		{"tpu7x:4x4x4", 128, 16, 6, true},
	} {
		top := topology(t, c.name)
		require.Equal(t, c.devices, top.Devices(), c.name)
		require.Equal(t, c.hosts, top.Hosts(), c.name)
		require.Equal(t, c.links, top.Links(), c.name)
		require.Equal(t, c.wrap, top.PluginOptions()["wrap"] != nil, c.name)
	}
	mixed := topology(t, "v6e:8x16")
	require.Equal(t, []Axis{{8, false}, {16, true}}, mixed.Axes())
	require.Equal(t, map[string]any{"wrap": []int64{0, 1, 0}}, mixed.PluginOptions())

	two, err := topology(t, "v6e:4x4").WithSlices(2)
	require.NoError(t, err)
	require.Equal(t, "2 × v6e:4x4", two.String())
	require.Equal(t, 32, two.Devices())
	require.Equal(t, 8, two.Hosts())
	require.Equal(t, map[string]any{"num_slices": int64(2)}, two.PluginOptions())
	_, err = two.WithSlices(0)
	require.ErrorContains(t, err, "0 slices of v6e:4x4")
}

func TestParseJob(t *testing.T) {
	for _, c := range [][3]string{{"4x4", "TPU-V6E", "v6e:4x4"}, {"2x2x2", "tpu-v7x", "tpu7x:2x2x2"}, {"2x4", "TPU-V5LITEPOD", "v5e:2x4"}} {
		top, err := ParseJob(c[0], c[1])
		require.NoError(t, err)
		require.Equal(t, c[2], top.String())
	}
	_, err := ParseJob("4x4", "TPU-V99")
	require.ErrorContains(t, err, "v6e (TPU-V6E)")
}

func TestUnknownTopologiesListTheKnown(t *testing.T) {
	for _, name := range []string{"v6e", "v9:4x4", "v6e:5x77", "v6e:4x2", "v6e:2x2x2", "v6e:", "v6e:4x-4", "tpu7x:3x3x3", "v5p:2x2", "v5p:20x4x4", ":"} {
		_, err := Parse(name)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "\n")
		require.Contains(t, err.Error(), "x", name)
	}
	_, err := Parse("v6e:3x3")
	require.ErrorContains(t, err, "its slices are 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16")
	_, err = Parse("v9:4x4")
	require.ErrorContains(t, err, "tpu7x: 2x2x1, 2x2x2,")
}

func TestChips(t *testing.T) {
	for _, c := range Chips {
		for _, kind := range c.DeviceKinds {
			found, ok := ChipOfKind(kind)
			require.True(t, ok)
			require.Same(t, c, found)
		}
		require.InDelta(t, 1.8e9, c.ClockHz, 0.5e9, "the clock of a matrix unit of a %s", c.Name)
		require.Greater(t, c.PeakBF16PerDevice()/c.HBMBandwidthPerDevice(), 100.0, "FLOPs a byte")
	}
	_, ok := ChipOfKind("cpu")
	require.False(t, ok)
}

func TestPlacesAreDistinct(t *testing.T) {
	two, err := topology(t, "tpu7x:2x2x4").WithSlices(2)
	require.NoError(t, err)
	seen := map[Place]bool{}
	for i := range two.Devices() {
		seen[two.Place(i)] = true
	}
	require.Len(t, seen, two.Devices())
	require.Equal(t, Place{Slice: 1, Chip: [3]int{1, 0, 2}, Core: 1}, two.Place(32+1+2*(1+2*(0+2*2))))
}

func ids(n ...int64) []int64 { return n }

// upTo lists the ids from 0 to n-1.
func upTo(n int64) (out []int64) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// The figures of the design: two all-gathers and one reduce-scatter of 2.2795e9 bfloat16 parameters.
func TestBoundOfTheDesign(t *testing.T) {
	const bytes = 2 * 2.2795e9
	for name, want := range map[string]float64{"v6e:4x4": 64.1e-3, "tpu7x:2x2x2": 39.9e-3} {
		top := topology(t, name)
		f, err := top.Group(Ring, upTo(int64(top.Devices())), bytes)
		require.NoError(t, err)
		load := top.NewLoad()
		load.Add(f, 3)
		require.InDelta(t, want, load.Seconds(), 0.05e-3, name)
		require.InDelta(t, want/0.9, 3*(top.Seconds(f, 0.9)-float64(f.Hops)*HopSeconds-f.OnChip/(0.9*max(1, top.Chip.OnChipBandwidth))), 0.1e-3, name)
	}
}

func TestTrafficOfGroups(t *testing.T) {
	v6e, v5p, v7 := topology(t, "v6e:4x4"), topology(t, "v5p:4x4x4"), topology(t, "tpu7x:2x2x1")
	two, err := v6e.WithSlices(2)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		topology Topology
		pattern  Pattern
		group    []int64
		want     Traffic
	}{
		"one device":         {v6e, Ring, ids(3), Traffic{}},
		"all of a mesh":      {v6e, Ring, upTo(16), Traffic{ICI: 15, Axes: 3, Hops: 6}},
		"a row":              {v6e, Ring, ids(4, 5, 6, 7), Traffic{ICI: 12, Axes: 1, Hops: 3}},
		"a column":           {v6e, Ring, ids(1, 5, 9, 13), Traffic{ICI: 12, Axes: 2, Hops: 3}},
		"a square":           {v6e, Ring, ids(0, 1, 4, 5), Traffic{ICI: 12, Axes: 3, Hops: 2}},
		"exchange in a row":  {v6e, Exchange, ids(4, 5, 6, 7), Traffic{PerLink: [3]float64{16, 0, 0}, Hops: 3}},
		"exchange in a mesh": {v6e, Exchange, upTo(16), Traffic{PerLink: [3]float64{16, 16, 0}, Hops: 6}},
		"exchange in a ring": {v5p, Exchange, ids(0, 1, 2, 3), Traffic{PerLink: [3]float64{8, 0, 0}, Hops: 2}},
		"a torus":            {v5p, Ring, upTo(64), Traffic{ICI: 16. * 63 / 64, Axes: 7, Hops: 6}},
		"halves of a chip":   {v7, Ring, ids(2, 3), Traffic{OnChip: 8}},
		"all halves":         {v7, Ring, upTo(8), Traffic{ICI: 12, Axes: 3, OnChip: 8, Hops: 2}},
		"first halves":       {v7, Ring, ids(0, 2, 4, 6), Traffic{ICI: 24, Axes: 3, Hops: 2}},
		"two slices":         {two, Ring, upTo(32), Traffic{ICI: 15, Axes: 3, DCN: 0.5, Hops: 6}},
		"across slices":      {two, Ring, ids(5, 21), Traffic{DCN: 8}},
		"exchange of slices": {two, Exchange, upTo(32), Traffic{PerLink: [3]float64{8, 8, 0}, DCN: 8, Hops: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.topology.Group(c.pattern, c.group, 16)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	_, err = v6e.Group(Ring, ids(0, 16), 1)
	require.ErrorContains(t, err, "device 16 is not one of the 16 of v6e:4x4")
}

func TestPermute(t *testing.T) {
	v6e, v5p, v7 := topology(t, "v6e:4x4"), topology(t, "v5p:4x4x4"), topology(t, "tpu7x:2x2x1")
	two, err := v6e.WithSlices(2)
	require.NoError(t, err)
	shift := func(n int64) (pairs [][2]int64) {
		for i := range n {
			pairs = append(pairs, [2]int64{i, (i + 1) % n})
		}
		return pairs
	}
	for name, c := range map[string]struct {
		topology Topology
		pairs    [][2]int64
		want     Traffic
	}{
		"a ring":             {v5p, shift(4), Traffic{PerLink: [3]float64{10, 0, 0}, Hops: 1}},
		"a line and back":    {v6e, shift(4), Traffic{PerLink: [3]float64{10, 0, 0}, Hops: 3}},
		"two over one link":  {v6e, [][2]int64{{0, 2}, {1, 3}}, Traffic{PerLink: [3]float64{20, 0, 0}, Hops: 2}},
		"round a corner":     {v6e, [][2]int64{{0, 5}}, Traffic{PerLink: [3]float64{10, 10, 0}, Hops: 2}},
		"within a chip":      {v7, [][2]int64{{0, 1}, {1, 0}}, Traffic{OnChip: 10}},
		"to itself":          {v6e, [][2]int64{{3, 3}}, Traffic{}},
		"to the other slice": {two, [][2]int64{{3, 19}}, Traffic{DCN: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.topology.Permute(c.pairs, 10)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	_, err = v6e.Permute([][2]int64{{0, -1}}, 1)
	require.Error(t, err)
}

// Rows first and then columns loads the rows' links with four times as much: taking turns halves the bound.
func TestLoadOfAxesOneByOne(t *testing.T) {
	top := topology(t, "v6e:4x4")
	phases := func(first, second []int64, load *Load, bytes float64) {
		for i, group := range [][]int64{first, second} {
			f, err := top.Group(Ring, group, bytes/[]float64{1, 4}[i])
			require.NoError(t, err)
			load.Add(f, 1)
		}
	}
	row, column := ids(0, 1, 2, 3), ids(0, 4, 8, 12)
	same, turns := top.NewLoad(), top.NewLoad()
	phases(row, column, same, 100e9)
	phases(row, column, same, 100e9)
	phases(row, column, turns, 100e9)
	phases(column, row, turns, 100e9)
	require.InDelta(t, 2*0.75, same.Seconds(), 1e-9)
	require.InDelta(t, 0.75+0.1875, turns.Seconds(), 1e-9)
	require.InDelta(t, same.Bytes(), turns.Bytes(), 1)
}

// A load never takes less time than any one of its parts, nor more than all of them one after the other.
func TestLoadIsBetweenMaxAndSum(t *testing.T) {
	property.Check(t, func(r *rapid.T) {
		top := topology(r, rapid.SampledFrom([]string{"v6e:4x4", "v6e:8x16", "v5p:4x4x4", "tpu7x:2x2x2"}).Draw(r, "topology"))
		load := top.NewLoad()
		var longest, all float64
		for range rapid.IntRange(1, 5).Draw(r, "communications") {
			start := rapid.Int64Range(0, int64(top.Devices())-2).Draw(r, "first")
			var group []int64
			for i := start; i < int64(top.Devices()); i += rapid.Int64Range(1, 9).Draw(r, "stride") {
				group = append(group, i)
			}
			f, err := top.Group(Pattern(rapid.IntRange(0, 1).Draw(r, "pattern")), group, 1e9)
			require.NoError(r, err)
			f.Hops = 0
			load.Add(f, 1)
			alone := top.NewLoad()
			alone.Add(f, 1)
			longest = max(longest, alone.Seconds())
			all += top.Seconds(f, 1)
		}
		require.GreaterOrEqual(r, load.Seconds()*(1+1e-9), longest)
		require.LessOrEqual(r, load.Seconds(), all*(1+1e-9))
	})
}
