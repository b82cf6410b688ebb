package engine

import (
	"cmp"
	"fmt"
	"slices"

	"weft/engine/sharding"
	"weft/engine/tpu"
	"weft/pjrt"
)

// FSDPAxis is the axis of a mesh that splits batch and parameters over all devices alike. Meshes with an axis for each
// dimension of a slice have FSDPAxis + "_z", "_y" and "_x".
const FSDPAxis = "fsdp"

// FSDPMesh chooses the mesh in which n of a plugin's devices split batch and parameters: one axis for each dimension of
// the slice along which there are several chips, z first, so that every axis is a line or a ring of chips (Open and
// AheadDevices put the devices in that order). Gradients are then reduced along one line after the other.
//
// There is one axis only where the devices do not say where they stand (CPU), where they fill no box, and where the
// compiler itself lays a reduction on all links at once (TPU7x, whose sparse cores do it).
func FSDPMesh(devices []*pjrt.DeviceDescription, n int) (sharding.Mesh, error) {
	if len(devices) < n {
		return sharding.Mesh{}, fmt.Errorf("the mesh needs %d devices, there are %d: ask for fewer devices", n, len(devices))
	}
	axes := torusAxes(standings(meshDevices(devices, n)))
	if len(axes) < 2 {
		axes = []sharding.Axis{{Name: FSDPAxis, Size: n}}
	}
	return sharding.NewMesh(axes...)
}

// meshDevices returns the devices that a mesh of n takes, in the order of its positions.
func meshDevices(all []*pjrt.DeviceDescription, n int) []*pjrt.DeviceDescription {
	out := make([]*pjrt.DeviceDescription, 0, n)
	for _, i := range meshOrder(standings(all), n) {
		out = append(out, all[i])
	}
	return out
}

// standing is a device and where it stands: its slice, where there are several, and the chip and core in it.
type standing struct {
	id   int
	kind string
	// placed tells whether the device says where it stands.
	placed               bool
	slice, z, y, x, core int64
}

func standings(devices []*pjrt.DeviceDescription) []standing {
	out := make([]standing, len(devices))
	for i, d := range devices {
		out[i] = standing{id: d.ID(), kind: d.Kind()}
		if c, ok := d.Attributes()["coords"].([]int64); ok && len(c) == 3 {
			out[i].placed, out[i].z, out[i].y, out[i].x = true, c[2], c[1], c[0]
			out[i].core, _ = d.Attributes()["core_on_chip"].(int64)
			out[i].slice, _ = d.Attributes()["slice_index"].(int64)
		}
	}
	return out
}

// meshOrder returns the indices of the n devices with the smallest ids, ordered by where they stand: slice by slice,
// z, y, x, then the core on a chip. Devices that do not say where they stand keep the order of their ids.
func meshOrder(all []standing, n int) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(all[i].id, all[j].id) })
	order = order[:min(n, len(order))]
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := all[i], all[j]
		return cmp.Or(cmp.Compare(a.slice, b.slice), cmp.Compare(a.z, b.z), cmp.Compare(a.y, b.y), cmp.Compare(a.x, b.x), cmp.Compare(a.core, b.core))
	})
	return order
}

// wholeReductions are the chips whose compiler keeps a reduce-scatter over a plane or a cube of chips as one, over all
// links. For others it makes an all-reduce of it, so that they need it line by line (libtpu 0.0.52).
var wholeReductions = []string{"tpu7x"}

// torusAxes are the dimensions with several chips, z first; nil where one axis is right.
func torusAxes(devices []standing) []sharding.Axis {
	lines := []struct {
		name string
		seen map[int64]bool
	}{{"_z", map[int64]bool{}}, {"_y", map[int64]bool{}}, {"_x", map[int64]bool{}}}
	for _, d := range devices {
		if chip, known := tpu.ChipOfKind(d.kind); !d.placed || d.core != 0 || known && slices.Contains(wholeReductions, chip.Name) {
			return nil
		}
		for i, v := range []int64{d.z, d.y, d.x} {
			lines[i].seen[v] = true
		}
	}
	var axes []sharding.Axis
	n := 1
	for _, l := range lines {
		if size := len(l.seen); size > 1 {
			axes = append(axes, sharding.Axis{Name: FSDPAxis + l.name, Size: size})
			n *= size
		}
	}
	if n != len(devices) {
		return nil
	}
	return axes
}
