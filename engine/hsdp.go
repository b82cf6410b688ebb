package engine

import (
	"fmt"

	"weft/engine/sharding"
	"weft/pjrt"
)

// ReplicaAxis is the axis of a mesh whose positions are slices: it splits the batch, while every slice has all parameters,
// split over its own devices by the other axes.
const ReplicaAxis = "replica"

// HSDPMesh chooses the mesh of several equal slices: ReplicaAxis over the slices, which the data center network joins, and
// within each the axes of FSDPMesh, returned as shardAxes. With one slice there is no ReplicaAxis.
func HSDPMesh(devices []*pjrt.DeviceDescription, slices int) (mesh sharding.Mesh, shardAxes []string, err error) {
	n := len(devices)
	if slices < 1 || n%slices != 0 {
		return mesh, nil, fmt.Errorf("%d devices are not %d equal slices", n, slices)
	}
	ordered := meshDevices(devices, n)
	if slices == 1 {
		mesh, err = FSDPMesh(ordered, n)
		return mesh, mesh.AxisNames(), err
	}
	for i, s := range standings(ordered) {
		if want := int64(i / (n / slices)); s.slice != want {
			return mesh, nil, fmt.Errorf("device %d says that it is in slice %d, not in slice %d of %d equal ones: use one slice", s.id, s.slice, want, slices)
		}
	}
	within, err := FSDPMesh(ordered[:n/slices], n/slices)
	if err != nil {
		return mesh, nil, err
	}
	mesh, err = sharding.NewMesh(append([]sharding.Axis{{Name: ReplicaAxis, Size: slices}}, within.Axes...)...)
	return mesh, within.AxisNames(), err
}
