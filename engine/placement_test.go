package engine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine/sharding"
)

// slice lists the devices of a slice as libtpu does: ids count x first, the list goes host by host of 2×2 chips.
func slice(kind string, cores, x, y, z int64) []standing {
	var out []standing
	for id := range x * y * z * cores {
		chip := id / cores
		out = append(out, standing{id: int(id), kind: kind, placed: true, core: id % cores, x: chip % x, y: chip / x % y, z: chip / x / y})
	}
	slices.SortStableFunc(out, func(a, b standing) int {
		return int((a.z*y+a.y/2)*x+a.x/2) - int((b.z*y+b.y/2)*x+b.x/2)
	})
	return out
}

func TestMeshFollowsTheSlice(t *testing.T) {
	unplaced := []standing{{id: 3}, {id: 1}, {id: 0}, {id: 2}}
	for name, c := range map[string]struct {
		devices []standing
		n       int
		axes    []sharding.Axis
		ids     []int
	}{
		"CPU":           {unplaced, 4, nil, []int{0, 1, 2, 3}},
		"fewer":         {unplaced, 2, nil, []int{0, 1}},
		"v6e 2x2":       {slice("TPU v6 lite", 1, 2, 2, 1), 4, []sharding.Axis{{Name: "fsdp_y", Size: 2}, {Name: "fsdp_x", Size: 2}}, []int{0, 1, 2, 3}},
		"v6e 2x4":       {slice("TPU v6 lite", 1, 2, 4, 1), 8, []sharding.Axis{{Name: "fsdp_y", Size: 4}, {Name: "fsdp_x", Size: 2}}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"half of a 2x4": {slice("TPU v6 lite", 1, 2, 4, 1), 4, []sharding.Axis{{Name: "fsdp_y", Size: 2}, {Name: "fsdp_x", Size: 2}}, []int{0, 1, 2, 3}},
		"no box":        {slice("TPU v6 lite", 1, 2, 4, 1), 3, nil, []int{0, 1, 2}},
		"a line":        {slice("TPU v5", 1, 1, 1, 4), 4, []sharding.Axis{{Name: "fsdp_z", Size: 4}}, []int{0, 1, 2, 3}},
		"v5p 2x2x2": {slice("TPU v5", 1, 2, 2, 2), 8,
			[]sharding.Axis{{Name: "fsdp_z", Size: 2}, {Name: "fsdp_y", Size: 2}, {Name: "fsdp_x", Size: 2}}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"tpu7x 2x2x1": {slice("TPU7x", 2, 2, 2, 1), 8, nil, []int{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			var taken []standing
			var ids []int
			for _, i := range meshOrder(c.devices, c.n) {
				taken, ids = append(taken, c.devices[i]), append(ids, c.devices[i].id)
			}
			require.Equal(t, c.ids, ids)
			require.Equal(t, c.axes, torusAxes(taken))
		})
	}
}

// Ids that do not count along the axes give way to where the devices stand.
func TestMeshOrderIsByPlace(t *testing.T) {
	devices := []standing{
		{id: 0, placed: true}, {id: 1, placed: true, y: 1}, {id: 2, placed: true, x: 1}, {id: 3, placed: true, x: 1, y: 1},
	}
	require.Equal(t, []int{0, 2, 1, 3}, meshOrder(devices, 4))
	devices[2].slice, devices[0].slice = 0, 1
	require.Equal(t, []int{2, 1, 3, 0}, meshOrder(devices, 4), "slice by slice")
}
