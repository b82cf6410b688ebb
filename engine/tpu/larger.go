package tpu

import (
	"cmp"
	"slices"
)

// Larger lists the slices of the same chip with more chips, the smallest first, as many of them as this topology has.
func (t Topology) Larger() []Topology {
	var out []Topology
	for _, dims := range t.Chip.shapes {
		if l := (Topology{Chip: t.Chip, Dims: dims, Slices: t.Slices}); l.Devices() > t.Devices() {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b Topology) int { return cmp.Compare(a.Devices(), b.Devices()) })
	return out
}
