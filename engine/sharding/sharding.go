// Package sharding is the arithmetic of device meshes: which slice of a global tensor each device holds.
//
// A Mesh arranges device positions 0..N-1 in row-major order over named axes. A Spec (PartitionSpec in JAX) names,
// for each tensor dimension, the mesh axes that split it. Everything here is pure: no device, no I/O.
package sharding

import (
	"fmt"
	"slices"
	"strings"
)

// Axis is one named axis of a mesh.
type Axis struct {
	Name string
	Size int
}

// Mesh is an arrangement of devices. Position p of the mesh (row-major over Axes) is logical device p of a program;
// which physical device runs it is the runtime's device assignment.
type Mesh struct {
	Name string
	Axes []Axis
}

// NewMesh returns a mesh named "mesh" after checking its axes.
func NewMesh(axes ...Axis) (Mesh, error) {
	m := Mesh{Name: "mesh", Axes: axes}
	seen := map[string]bool{}
	for _, a := range axes {
		if a.Name == "" || a.Size < 1 || seen[a.Name] {
			return Mesh{}, fmt.Errorf("mesh axis %q of size %d: names must be unique and not empty, sizes at least 1", a.Name, a.Size)
		}
		seen[a.Name] = true
	}
	return m, nil
}

// NumDevices is the product of the axis sizes (1 for a mesh without axes).
func (m Mesh) NumDevices() int {
	n := 1
	for _, a := range m.Axes {
		n *= a.Size
	}
	return n
}

// AxisSize returns the size of the named axis, 0 when the mesh has no such axis.
func (m Mesh) AxisSize(name string) int {
	for _, a := range m.Axes {
		if a.Name == name {
			return a.Size
		}
	}
	return 0
}

// AxisNames lists the axes, major first.
func (m Mesh) AxisNames() []string {
	names := make([]string, len(m.Axes))
	for i, a := range m.Axes {
		names[i] = a.Name
	}
	return names
}

// Parts is the product of the sizes of the named axes: into how many parts they split a dimension. It is 0 when the
// mesh lacks one of them.
func (m Mesh) Parts(axes ...string) int {
	n := 1
	for _, a := range axes {
		n *= m.AxisSize(a)
	}
	return n
}

// Groups returns the sets of positions that differ along the named axes only, each in row-major order of the axes as
// they are named, the sets in the order of their first positions: the devices that a collective over those axes joins.
func (m Mesh) Groups(axes ...string) [][]int {
	var rest []string
	for _, a := range m.Axes {
		if !slices.Contains(axes, a.Name) {
			rest = append(rest, a.Name)
		}
	}
	n := m.Parts(axes...)
	all := m.NumDevices()
	out := make([][]int, all/max(n, 1))
	for i := range out {
		out[i] = make([]int, n)
	}
	for position := range all {
		out[m.indexAlong(rest, position)][m.indexAlong(axes, position)] = position
	}
	return out
}

// indexAlong is the row-major index of a position along the named axes.
func (m Mesh) indexAlong(axes []string, position int) int {
	coords := m.Coords(position)
	index := 0
	for _, name := range axes {
		for i, a := range m.Axes {
			if a.Name == name {
				index = index*a.Size + coords[i]
			}
		}
	}
	return index
}

// Coords returns the position of a device along every axis.
func (m Mesh) Coords(device int) []int {
	c := make([]int, len(m.Axes))
	for i := len(m.Axes) - 1; i >= 0; i-- {
		c[i] = device % m.Axes[i].Size
		device /= m.Axes[i].Size
	}
	return c
}

// String prints the mesh as `fsdp=4, model=2`.
func (m Mesh) String() string {
	parts := make([]string, len(m.Axes))
	for i, a := range m.Axes {
		parts[i] = fmt.Sprintf("%s=%d", a.Name, a.Size)
	}
	return strings.Join(parts, ", ")
}

// Spec names, for each tensor dimension, the mesh axes that split it, major first. A missing or empty entry is a
// dimension that is not split; an empty Spec is a replicated tensor.
type Spec [][]string

// Replicated is the Spec of a tensor that every device holds whole.
func Replicated() Spec { return nil }

// Split returns the Spec of a tensor of the given rank whose dimension dim is split over the axes.
func Split(rank, dim int, axes ...string) Spec {
	s := make(Spec, rank)
	s[dim] = axes
	return s
}

// Axes returns the mesh axes that split dimension dim.
func (s Spec) Axes(dim int) []string {
	if dim < len(s) {
		return s[dim]
	}
	return nil
}

// IsReplicated tells whether no dimension is split.
func (s Spec) IsReplicated() bool {
	for _, axes := range s {
		if len(axes) > 0 {
			return false
		}
	}
	return true
}

// Equal compares two specs, trailing unsplit dimensions aside.
func (s Spec) Equal(o Spec) bool {
	for d := range max(len(s), len(o)) {
		if !slices.Equal(s.Axes(d), o.Axes(d)) {
			return false
		}
	}
	return true
}

// DropLeading returns the spec without its first n dimensions: what one step of a scan sees of a stacked tensor.
func (s Spec) DropLeading(n int) Spec {
	if n >= len(s) {
		return nil
	}
	return s[n:]
}

// Stack returns the spec of n such tensors stacked on a new, unsplit leading dimension.
func (s Spec) Stack() Spec {
	if s.IsReplicated() {
		return nil
	}
	return append(Spec{nil}, s...)
}

// String prints the spec as `[fsdp, -]`, "replicated" when nothing is split.
func (s Spec) String() string {
	if s.IsReplicated() {
		return "replicated"
	}
	parts := make([]string, len(s))
	for i, axes := range s {
		parts[i] = strings.Join(axes, "×")
		if len(axes) == 0 {
			parts[i] = "-"
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Check reports a spec that the mesh or the tensor's dims cannot carry: an unknown axis, an axis used twice, a
// rank larger than the tensor's, or a dimension that does not divide evenly.
func (s Spec) Check(m Mesh, dims []int) error {
	if len(s) > len(dims) {
		return fmt.Errorf("sharding %v has rank %d, the tensor %v has %d", s, len(s), dims, len(dims))
	}
	used := map[string]bool{}
	for d, axes := range s {
		parts := 1
		for _, a := range axes {
			n := m.AxisSize(a)
			if n == 0 {
				return fmt.Errorf("sharding %v names axis %q, the mesh has %v", s, a, m)
			}
			if used[a] {
				return fmt.Errorf("sharding %v uses axis %q twice", s, a)
			}
			used[a] = true
			parts *= n
		}
		if dims[d]%parts != 0 {
			return fmt.Errorf("sharding %v splits dimension %d of %v in %d parts, which does not divide %d", s, d, dims, parts, dims[d])
		}
	}
	return nil
}

// Region is a hyper-rectangle of a tensor: Start and Size for each dimension.
type Region struct{ Start, Size []int }

// Elements is the number of elements of the region.
func (r Region) Elements() int {
	n := 1
	for _, s := range r.Size {
		n *= s
	}
	return n
}

// Equal compares two regions.
func (r Region) Equal(o Region) bool {
	return slices.Equal(r.Start, o.Start) && slices.Equal(r.Size, o.Size)
}

// ShardOf returns the region of a tensor of shape dims that the device at mesh position holds. The spec must have
// passed Check.
func (s Spec) ShardOf(m Mesh, dims []int, device int) Region {
	r := Region{Start: make([]int, len(dims)), Size: slices.Clone(dims)}
	for d := range dims {
		axes := s.Axes(d)
		r.Size[d] = dims[d] / m.Parts(axes...)
		r.Start[d] = m.indexAlong(axes, device) * r.Size[d]
	}
	return r
}

// ShardDims is the shape of one device's slice.
func (s Spec) ShardDims(m Mesh, dims []int) []int { return s.ShardOf(m, dims, 0).Size }

// Owners returns, in order of position, the first device that holds each distinct region of the tensor: the devices
// that must write it so that every element is written once.
func (s Spec) Owners(m Mesh, dims []int) []int {
	seen := map[string]bool{}
	var owners []int
	for d := range m.NumDevices() {
		key := fmt.Sprint(s.ShardOf(m, dims, d).Start)
		if !seen[key] {
			seen[key] = true
			owners = append(owners, d)
		}
	}
	return owners
}

// LargestDivisible is FSDP's choice for one tensor: the Spec that splits over the axes, major first, its largest
// dimension that the product of their sizes divides (the first of equals), or Replicated when the tensor has fewer than
// minElements elements, none divides, or the mesh lacks an axis. A dimension whose parts are whole tiles of a TPU goes
// before one whose parts are not: libtpu makes an all-reduce of the whole gradient of a reduce-scatter into parts of tiles.
func LargestDivisible(m Mesh, axes []string, dims []int, minElements int) Spec {
	n, best, bestTiling := 1, -1, 0
	parts := m.Parts(axes...)
	for d, v := range dims {
		n *= v
		if parts == 0 || v%parts != 0 {
			continue
		}
		t := tiling(v/parts, d == len(dims)-1)
		if best < 0 || t > bestTiling || t == bestTiling && v > dims[best] {
			best, bestTiling = d, t
		}
	}
	if best < 0 || n < minElements || parts <= 1 {
		return Replicated()
	}
	return Split(len(dims), best, axes...)
}

// tiling is 2 for a size of whole tiles in float32 and bfloat16, 1 in float32 only, else 0. A TPU's tile is 128 elements
// of the last dimension by 8 (float32) or 16 (bfloat16) of another; libtpu reduce-scatters bfloat16 in pairs of tiles only.
func tiling(size int, last bool) int {
	tile := 8
	if last {
		tile = 128
	}
	switch {
	case size%(2*tile) == 0:
		return 2
	case size%tile == 0:
		return 1
	}
	return 0
}
