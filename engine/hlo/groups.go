package hlo

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxDevices bounds the devices of a collective, so that a damaged file cannot ask for memory without end. The largest
// slices have some ten thousand.
const maxDevices = 1 << 20

// appendGroup reads a ReplicaGroup.
func appendGroup(groups [][]int64, data []byte) ([][]int64, error) {
	var ids []int64
	err := lists(data, map[protowire.Number]*[]int64{1: &ids})
	return append(groups, ids), err
}

// parseDeviceList reads a CollectiveDeviceListProto: groups written out, or as a transposed and reshaped iota.
func parseDeviceList(data []byte) ([][]int64, error) {
	var groups [][]int64
	err := fields(data, func(num protowire.Number, v value) (err error) {
		switch num {
		case 1:
			groups, err = appendGroup(groups, v.bytes)
		case 2:
			groups, err = parseIota(v.bytes)
		}
		return err
	})
	return groups, err
}

// parseIota reads an IotaReplicaGroupListProto: the devices 0..n-1 reshaped, transposed, and cut in groups.
func parseIota(data []byte) ([][]int64, error) {
	var count, size int64
	var dims, perm []int64
	err := fields(data, func(num protowire.Number, v value) (err error) {
		switch num {
		case 1:
			count = v.int()
		case 2:
			size = v.int()
		case 3:
			dims, err = v.ints(dims)
		case 4:
			perm, err = v.ints(perm)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(perm) == 0 { // of one dimension
		perm = make([]int64, len(dims))
		for i := range perm {
			perm[i] = int64(i)
		}
	}
	order, err := transposedIota(dims, perm)
	if err != nil {
		return nil, err
	}
	if size <= 0 || saturatingMul(count, size) != int64(len(order)) {
		return nil, fmt.Errorf("a list of %d devices for %d groups of %d", len(order), count, size)
	}
	return cut(order, size), nil
}

func cut(order []int64, size int64) [][]int64 { return slices.Collect(slices.Chunk(order, int(size))) }

// transposedIota returns the elements of iota reshaped to dims and transposed by perm, in row-major order.
func transposedIota(dims, perm []int64) ([]int64, error) {
	total := int64(1)
	strides := make([]int64, len(dims))
	for d := len(dims) - 1; d >= 0; d-- {
		strides[d] = total
		total = saturatingMul(total, dims[d])
	}
	sorted := slices.Sorted(slices.Values(perm))
	for i, p := range sorted {
		if p != int64(i) {
			return nil, fmt.Errorf("devices are transposed by %v, which is no permutation", perm)
		}
	}
	if len(perm) != len(dims) || total < 1 || total > maxDevices {
		return nil, fmt.Errorf("devices are reshaped to %v and transposed by %v: want as many of each, of at most %d devices", dims, perm, maxDevices)
	}
	order := make([]int64, 0, total)
	index := make([]int64, len(perm))
	for range total {
		var at int64
		for i, p := range perm {
			at += index[i] * strides[p]
		}
		order = append(order, at)
		for i := len(perm) - 1; i >= 0; i-- {
			if index[i]++; index[i] < dims[perm[i]] {
				break
			}
			index[i] = 0
		}
	}
	return order, nil
}

// axisPart is the part of a mesh's axis that comes after a part of size pre; size 0 is the whole axis.
type axisPart struct{ axis, pre, size int64 }

// within tells whether p, one of the parts that an axis was cut in, belongs to r.
func (p axisPart) within(r axisPart) bool {
	return p.axis == r.axis && (r.size == 0 || p.pre >= r.pre && p.pre*p.size <= saturatingMul(r.pre, r.size))
}

// parseMeshAxes reads a MeshAxesReplicaGroupListProto, the form that Shardy gives: a mesh and those of its axes, or
// parts of axes, along which the devices of a group lie, major first.
func parseMeshAxes(data []byte) ([][]int64, error) {
	var dims, ids []int64
	var refs []axisPart
	err := fields(data, func(num protowire.Number, v value) (err error) {
		switch num {
		case 1:
			dims, ids, err = parseMesh(v.bytes)
		case 2:
			r := axisPart{pre: 1}
			err = fields(v.bytes, func(num protowire.Number, v value) error {
				switch num {
				case 1:
					r.axis = v.int()
				case 2:
					return numbers(v.bytes, map[protowire.Number]*int64{1: &r.pre, 2: &r.size})
				}
				return nil
			})
			refs = append(refs, r)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return meshGroups(dims, ids, refs)
}

// parseMesh reads a MeshProto: the sizes of its axes, and the devices where they are not in order.
func parseMesh(data []byte) (dims, ids []int64, err error) {
	err = fields(data, func(num protowire.Number, v value) (err error) {
		switch num {
		case 1:
			var size int64
			err = numbers(v.bytes, map[protowire.Number]*int64{2: &size})
			dims = append(dims, size)
		case 2:
			ids, err = v.ints(ids)
		}
		return err
	})
	return dims, ids, err
}

// meshGroups lists the devices of each group: it cuts the axes in the parts that refs name, moves those to the end and
// cuts the devices there.
func meshGroups(dims, ids []int64, refs []axisPart) ([][]int64, error) {
	parts, err := cutAxes(dims, refs)
	if err != nil {
		return nil, err
	}
	var last []int64
	size := int64(1)
	for _, r := range refs {
		for at, p := range parts {
			if p.within(r) && !slices.Contains(last, int64(at)) {
				last = append(last, int64(at))
				size = saturatingMul(size, p.size)
			}
		}
	}
	var perm, split []int64
	for at, p := range parts {
		split = append(split, p.size)
		if !slices.Contains(last, int64(at)) {
			perm = append(perm, int64(at))
		}
	}
	order, err := transposedIota(split, append(perm, last...))
	if err != nil {
		return nil, err
	}
	if len(ids) > 0 && len(ids) != len(order) {
		return nil, fmt.Errorf("a mesh of %d devices lists %d", len(order), len(ids))
	}
	if len(ids) > 0 {
		for i, o := range order {
			order[i] = ids[o]
		}
	}
	return cut(order, size), nil
}

// cutAxes cuts every axis wherever a part that refs name begins or ends.
func cutAxes(dims []int64, refs []axisPart) ([]axisPart, error) {
	var parts []axisPart
	cuts := make([][]int64, len(dims))
	for axis, n := range dims {
		cuts[axis] = []int64{1, n}
	}
	for _, r := range refs {
		if r.axis < 0 || r.axis >= int64(len(dims)) {
			return nil, fmt.Errorf("a group along axis %d of a mesh with %d axes", r.axis, len(dims))
		}
		if r.size > 0 {
			cuts[r.axis] = append(cuts[r.axis], r.pre, saturatingMul(r.pre, r.size))
		}
	}
	for axis, c := range cuts {
		slices.Sort(c)
		c = slices.Compact(c)
		for i := range len(c) - 1 {
			if c[i] < 1 || c[i+1]%c[i] != 0 || c[len(c)-1] != dims[axis] {
				return nil, fmt.Errorf("an axis of %d devices is cut at %v", dims[axis], c)
			}
			parts = append(parts, axisPart{int64(axis), c[i], c[i+1] / c[i]})
		}
	}
	return parts, nil
}
